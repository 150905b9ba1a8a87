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

/// Drops the user's values; a panic in it is logged, since nobody is there to get it.
pub(crate) fn dispose<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        log::error!(
            "a batch or item panicked while it was dropped: {}",
            text_of(payload.as_ref())
        );
    }
}

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
}
