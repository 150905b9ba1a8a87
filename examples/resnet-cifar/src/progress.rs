//! The bar on the terminal; where stderr is none, nothing is drawn.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `steps` steps, headed by `name`.
pub(crate) fn bar(name: &str, steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{prefix:<22} {bar:30} {pos:>5}/{len} {elapsed_precise} {msg}",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(steps)
        .with_style(style)
        .with_prefix(name.to_owned())
}
