//! A wait that stands for work elsewhere: a device that trains, a store that answers.

use std::time::Duration;

#[expect(
    clippy::disallowed_methods,
    reason = "the wait is what is simulated; it synchronises nothing"
)]
pub(crate) fn pause(wait: Duration) {
    std::thread::sleep(wait);
}
