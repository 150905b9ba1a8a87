//! The border to the user's code: a panic there is a value here.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs user code; a panic comes back as its text.
///
/// What the code had borrowed is only dropped afterwards, never used again.
pub(crate) fn guard<T>(user: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(user)).map_err(|payload| {
        let text = text_of(payload.as_ref());
        dispose(payload);
        text
    })
}

/// Runs what is the loader's own but for a logger and a `tracing` subscriber in it, whose panic comes back
/// as its text. The model checker has neither: there a panic is a bug of ours, and goes on.
pub(crate) fn shield<T>(own: impl FnOnce() -> T) -> Result<T, String> {
    if cfg!(shuttle) { Ok(own()) } else { guard(own) }
}

/// Drops the user's values; a panic in it is logged, since nobody is there to get it.
///
/// What was thrown is the user's too, and may throw again when it is dropped; after a few times it
/// is leaked.
pub(crate) fn dispose<T>(value: T) {
    let mut thrown = catch_unwind(AssertUnwindSafe(|| drop(value))).err();
    for _ in 0..MOST_THROWN {
        let Some(payload) = thrown else { return };
        let text = text_of(payload.as_ref());
        let told =
            catch_unwind(|| log::error!("a batch or item panicked while it was dropped: {text}"));
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        thrown = dropped.and(told).err();
    }
    #[expect(
        clippy::mem_forget,
        reason = "dropping it has failed; nothing else can be done"
    )]
    std::mem::forget(thrown);
}

/// How many panics of one value's drop are caught, each thrown by what the last one threw.
const MOST_THROWN: usize = 8;

fn text_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without text".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_comes_back_as_its_text() {
        assert_eq!(guard(|| 1), Ok(1));
        assert_eq!(
            guard(|| panic!("at {}", 7)),
            Err::<(), _>("at 7".to_owned())
        );
        assert_eq!(guard(|| panic!("plain")), Err::<(), _>("plain".to_owned()));
        let odd = guard(|| std::panic::panic_any(7));
        assert_eq!(odd, Err::<(), _>("a panic without text".to_owned()));
    }

    #[test]
    fn a_panic_in_a_drop_stops_here() {
        struct Loud;
        impl Drop for Loud {
            fn drop(&mut self) {
                panic!("loud");
            }
        }
        dispose(Loud);
    }

    /// Throws a shorter chain when it is dropped.
    struct Chain(u32);

    impl Drop for Chain {
        fn drop(&mut self) {
            if self.0 > 0 {
                std::panic::panic_any(Chain(self.0 - 1));
            }
        }
    }

    #[test]
    fn what_is_thrown_may_throw_again() {
        for links in [1, 2, 5, 100] {
            dispose(Chain(links));
            let text = guard(|| std::panic::panic_any(Chain(links)));
            assert_eq!(text, Err::<(), _>("a panic without text".to_owned()));
        }
    }
}
