//! Which threads are the pool's workers, which were given up, and which are missing.

use std::sync::Arc;

use crate::activity::Activity;
use crate::report::Doing;
use crate::sync::{JoinHandle, Moment};

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
    /// Numbers below this are wanted; who has another leaves.
    wanted: usize,
    disowned: usize,
}

#[derive(Debug, Default)]
struct Post {
    generation: usize,
    running: bool,
    thread: Option<JoinHandle<()>>,
    activity: Arc<Activity>,
    /// The call that it was seen in last, and since when.
    seen: Option<(usize, Moment)>,
}

/// What a look at one worker showed.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) badge: Badge,
    pub(crate) activity: Arc<Activity>,
    /// Which call it is in.
    pub(crate) call: usize,
    pub(crate) doing: Doing,
    /// Since when it has been in that call, as far as anybody has looked.
    pub(crate) since: Moment,
}

impl Sight {
    /// Whether the worker is in the same call still.
    pub(crate) fn is_still_so(&self) -> bool {
        self.activity.read(0).0 == self.call
    }
}

impl Crew {
    pub(crate) fn of(size: usize) -> Self {
        Self {
            posts: (0..size).map(|_| Post::default()).collect(),
            wanted: size,
            disowned: 0,
        }
    }

    /// Wants another number of workers.
    pub(crate) fn resize(&mut self, wanted: usize) {
        self.wanted = wanted;
        let posts = self.posts.len().max(wanted);
        self.posts.resize_with(posts, Post::default);
    }

    /// Whether the thread has its number, and that is wanted.
    pub(crate) fn wants(&self, badge: Badge) -> bool {
        badge.number < self.wanted && self.has(badge)
    }

    /// How many workers run.
    pub(crate) fn running(&self) -> usize {
        self.posts.iter().filter(|post| post.running).count()
    }

    /// How many of them are inside user code.
    pub(crate) fn busy(&self) -> usize {
        let running = self.posts.iter().filter(|post| post.running);
        let busy = running.filter(|post| post.activity.read(0).1 != Doing::Idle);
        busy.count()
    }

    /// The workers that hold readers at the moment, and in which round.
    pub(crate) fn holding(&self) -> Vec<(Arc<Activity>, usize)> {
        let running = self.posts.iter().filter(|post| post.running);
        let holding = running.filter_map(|post| {
            let round = post.activity.holds()?;
            Some((Arc::clone(&post.activity), round))
        });
        holding.collect()
    }

    /// How many disowned threads have not ended yet.
    pub(crate) fn disowned(&self) -> usize {
        self.disowned
    }

    /// A number without a thread, under the badge of the one to be started.
    pub(crate) fn vacancy(&mut self) -> Option<(Badge, Arc<Activity>)> {
        let mut wanted = self.posts.iter().take(self.wanted);
        let number = wanted.position(|post| !post.running)?;
        let post = &mut self.posts[number];
        post.generation += 1;
        post.activity = Arc::default();
        post.seen = None;
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

    /// Looks at all workers that run, `now`, for the reader of a `pass`.
    pub(crate) fn look(&mut self, now: Moment, pass: usize) -> Vec<Sight> {
        let posts = self.posts.iter_mut().enumerate();
        let running = posts.filter(|(_, post)| post.running);
        let sights = running.map(|(number, post)| {
            let (call, doing) = post.activity.read(pass);
            let since = match post.seen {
                Some((seen, since)) if seen == call => since,
                Some(_) | None => now,
            };
            post.seen = Some((call, since));
            Sight {
                badge: Badge {
                    number,
                    generation: post.generation,
                },
                activity: Arc::clone(&post.activity),
                call,
                doing,
                since,
            }
        });
        sights.collect()
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
        assert_eq!(crew.look(Moment::now(), 0).len(), 2);
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

    #[test]
    fn a_look_knows_what_the_one_before_saw() {
        let mut crew = Crew::of(1);
        let (badge, activity) = crew.vacancy().expect("a number is free");
        let thread = spawn("prefetch-test".to_owned(), || ()).expect("the system has a thread");
        crew.started(badge, thread);
        activity.starting();
        let first = crew.look(Moment::now(), 0).remove(0);
        let second = crew.look(Moment::now(), 0).remove(0);
        assert_eq!((first.badge, first.call), (badge, second.call));
        let age = first.since.elapsed();
        assert!(second.since.elapsed() >= age);
        activity.idle();
        let third = crew.look(Moment::now(), 0).remove(0);
        assert_ne!(third.call, second.call);
        assert_eq!(third.doing, Doing::Idle);
    }
}
