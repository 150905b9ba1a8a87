//! Where passes stand, for whoever wants to save it while they run.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use burn_prefetch_engine::{Plan, Standing};

use crate::state::{Cut, Fingerprint, LoaderState};

/// Where one pass stands.
#[derive(Debug)]
pub(crate) struct Bookmark(Mutex<Place>);

#[derive(Debug)]
struct Place {
    epoch: usize,
    standing: Standing,
    phase: Phase,
}

/// How far a pass has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// So many batches are to be returned in all.
    Running { batches: usize },
    /// It ended with an error, and can be gone on with at the batch that failed.
    Failed,
    /// The place is the next epoch's start.
    Over,
}

impl Place {
    fn look(&mut self) {
        match self.phase {
            Phase::Running { batches } if self.standing.returned() >= batches => self.end(),
            Phase::Running { .. } | Phase::Failed | Phase::Over => {}
        }
    }

    fn end(&mut self) {
        self.epoch = self.epoch.saturating_add(1);
        self.standing = Standing::default();
        self.phase = Phase::Over;
    }
}

impl Bookmark {
    /// At what has been returned of an epoch of so many batches.
    pub(crate) fn new(epoch: usize, standing: Standing, batches: usize) -> Self {
        let phase = Phase::Running { batches };
        let mut place = Place {
            epoch,
            standing,
            phase,
        };
        place.look();
        Self(Mutex::new(place))
    }

    /// One more batch was returned.
    pub(crate) fn move_to(&self, standing: &Standing) {
        let mut place = self.place();
        place.standing.clone_from(standing);
        place.look();
    }

    /// The pass ended with an error.
    pub(crate) fn fail(&self) {
        self.place().phase = Phase::Failed;
    }

    /// Nobody reads the pass any more. Who drops it early is done with its epoch.
    pub(crate) fn close(&self) {
        let mut place = self.place();
        if matches!(place.phase, Phase::Running { .. }) {
            place.end();
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bookmarks of a loader and its copies, of which the last one counts.
#[derive(Debug)]
pub(crate) struct Shelf {
    plan: Plan,
    cut: Cut,
    fingerprint: OnceLock<Fingerprint>,
    last: Mutex<Option<Arc<Bookmark>>>,
}

impl Shelf {
    pub(crate) fn new(plan: Plan, cut: Cut) -> Self {
        Self {
            plan,
            cut,
            fingerprint: OnceLock::new(),
            last: Mutex::new(None),
        }
    }

    /// Made when it is first asked for.
    pub(crate) fn fingerprint(&self) -> &Fingerprint {
        self.fingerprint
            .get_or_init(|| Fingerprint::new(&self.plan, self.cut))
    }

    /// The state at a bookmark.
    pub(crate) fn state(&self, mark: &Bookmark) -> LoaderState {
        let place = mark.place();
        LoaderState::new(place.epoch, &place.standing, self.fingerprint().clone())
    }

    /// The bookmark of the pass that was begun last, if there was one.
    pub(crate) fn last(&self) -> Option<Arc<Bookmark>> {
        self.lock().clone()
    }

    /// From now on this is the last.
    pub(crate) fn put(&self, mark: &Arc<Bookmark>) {
        *self.lock() = Some(Arc::clone(mark));
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Bookmark>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
