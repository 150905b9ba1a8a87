//! Other people's panics as values: caught, on one line, and not printed.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives, or what it panicked with. For code that panics where it should return an
/// error, and that leaves nothing half done behind.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    let outer = QUIET.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    QUIET.set(outer);
    done.map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let words = text.unwrap_or("no reason given").split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// The reason in what an `unwrap` says of the error that it met: the innermost words in quotation
/// marks, or what is left without the method's name.
pub(crate) fn reason(said: &str) -> &str {
    let plain = said
        .split_once("on an `Err` value: ")
        .map(|(_, error)| error);
    let Some(error) = plain else {
        return said;
    };
    let quoted = error.split('"').skip(1).step_by(2);
    let words = quoted.filter(|words| words.contains(' '));
    words.last().unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_one_line_and_the_rest_goes_on() {
        let said = catch(|| panic!("no\n   network: {}", 7)).unwrap_err();
        assert_eq!(said, "no network: 7");
        assert_eq!(catch(|| 1), Ok(1));
        assert!(!QUIET.get());
    }

    #[test]
    fn the_reason_is_in_the_innermost_quotation_marks() {
        let said = "called `Result::unwrap()` on an `Err` value: reqwest::Error { url: \"http://x/\", \
                    source: Connect(\"dns error\", Custom { error: \"no such host there\" }) }";
        assert_eq!(reason(said), "no such host there");
        assert_eq!(
            reason("called `Option::unwrap()` on a `None` value"),
            "called `Option::unwrap()` on a `None` value"
        );
        assert_eq!(
            reason("called `Result::unwrap()` on an `Err` value: Closed"),
            "Closed"
        );
    }
}
