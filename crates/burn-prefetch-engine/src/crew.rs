//! Which threads are the pool's workers, which were given up, and which are missing.

use std::sync::Arc;

use crate::activity::Activity;
use crate::sync::JoinHandle;

/// What tells a worker's thread from those that had its number before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Badge {
    pub(crate) number: usize,
    pub(crate) generation: usize,
}

/// The numbers of a pool and who has them. No thread of its own, no lock.
///
/// Invariants: a number has at most one running thread; at most as many threads as there are
/// numbers are disowned and still running.
#[derive(Debug)]
pub(crate) struct Crew {
    posts: Vec<Post>,
    disowned: usize,
}

#[derive(Debug, Default)]
struct Post {
    generation: usize,
    running: bool,
    thread: Option<JoinHandle<()>>,
    activity: Arc<Activity>,
}

impl Crew {
    pub(crate) fn of(size: usize) -> Self {
        Self {
            posts: (0..size).map(|_| Post::default()).collect(),
            disowned: 0,
        }
    }

    /// How many workers run.
    pub(crate) fn running(&self) -> usize {
        self.posts.iter().filter(|post| post.running).count()
    }

    /// How many disowned threads have not ended yet.
    pub(crate) fn disowned(&self) -> usize {
        self.disowned
    }

    /// A number without a thread, under the badge of the one to be started.
    pub(crate) fn vacancy(&mut self) -> Option<(Badge, Arc<Activity>)> {
        let number = self.posts.iter().position(|post| !post.running)?;
        let post = &mut self.posts[number];
        post.generation += 1;
        post.activity = Arc::default();
        let badge = Badge {
            number,
            generation: post.generation,
        };
        Some((badge, Arc::clone(&post.activity)))
    }

    /// The thread runs. Gives back the handle of the one that had the number before and has ended.
    pub(crate) fn started(
        &mut self,
        badge: Badge,
        thread: JoinHandle<()>,
    ) -> Option<JoinHandle<()>> {
        let post = &mut self.posts[badge.number];
        post.running = true;
        post.thread.replace(thread)
    }

    /// Whether the thread still has its number.
    pub(crate) fn has(&self, badge: Badge) -> bool {
        let post = &self.posts[badge.number];
        post.generation == badge.generation && post.running
    }

    /// The thread ends.
    pub(crate) fn ended(&mut self, badge: Badge) {
        if self.has(badge) {
            self.posts[badge.number].running = false;
        } else {
            self.disowned -= 1;
        }
    }

    /// Takes its number from a thread that does not come back. Gives its handle, to be let go;
    /// `None` when there are too many such threads already, or it has not got the number.
    pub(crate) fn disown(&mut self, badge: Badge) -> Option<JoinHandle<()>> {
        if !self.has(badge) || self.disowned == self.posts.len() {
            return None;
        }
        self.disowned += 1;
        let post = &mut self.posts[badge.number];
        post.running = false;
        post.thread.take()
    }

    /// All workers that run, and where they write what they do.
    pub(crate) fn on_duty(&self) -> impl Iterator<Item = (Badge, &Arc<Activity>)> {
        let running = self
            .posts
            .iter()
            .enumerate()
            .filter(|(_, post)| post.running);
        running.map(|(number, post)| {
            let badge = Badge {
                number,
                generation: post.generation,
            };
            (badge, &post.activity)
        })
    }

    /// The handles of all threads that were not given up.
    pub(crate) fn take_threads(&mut self) -> Vec<JoinHandle<()>> {
        let threads = self.posts.iter_mut().filter_map(|post| post.thread.take());
        threads.collect()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::sync::spawn;

    fn hire(crew: &mut Crew) -> Badge {
        let (badge, _) = crew.vacancy().expect("a number is free");
        let thread = spawn("prefetch-test".to_owned(), || ()).expect("the system has a thread");
        assert!(crew.started(badge, thread).is_none());
        badge
    }

    #[test]
    fn a_disowned_thread_has_a_successor_under_its_number() {
        let mut crew = Crew::of(2);
        let (first, second) = (hire(&mut crew), hire(&mut crew));
        assert!(crew.vacancy().is_none());
        assert!(crew.disown(first).is_some());
        assert_eq!((crew.running(), crew.disowned()), (1, 1));
        let next = hire(&mut crew);
        assert_eq!(next.number, first.number);
        assert!(crew.has(next) && crew.has(second) && !crew.has(first));
        crew.ended(first);
        assert_eq!((crew.running(), crew.disowned()), (2, 0));
        assert_eq!(crew.on_duty().count(), 2);
    }

    #[test]
    fn no_more_are_disowned_than_there_are_numbers() {
        let mut crew = Crew::of(1);
        let first = hire(&mut crew);
        assert!(crew.disown(first).is_some());
        assert!(crew.disown(first).is_none(), "it has gone already");
        let second = hire(&mut crew);
        assert!(crew.disown(second).is_none());
        crew.ended(first);
        assert!(crew.disown(second).is_some());
    }
}
