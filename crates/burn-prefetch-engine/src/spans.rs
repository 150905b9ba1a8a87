//! Spans around what is done for a batch, where somebody collects them: feature `tracing`.

/// Lasts as long as what it stands for; without the feature it is nothing.
#[must_use]
pub(crate) struct Span {
    #[cfg(feature = "tracing")]
    _entered: tracing::span::EnteredSpan,
}

/// One function for each kind of span, so that callers need not know of the feature.
macro_rules! spans {
    ($($(#[$doc:meta])* $name:ident($($field:ident),*);)*) => {$(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name($($field: usize),*) -> Span {
            #[cfg(not(feature = "tracing"))]
            let _ = ($($field),*);
            Span {
                #[cfg(feature = "tracing")]
                _entered: tracing::debug_span!(
                    target: "burn_prefetch",
                    stringify!($name),
                    $($field),*
                )
                .entered(),
            }
        }
    )*};
}

spans! {
    /// So many items of a batch, inside the dataset.
    fetch(epoch, batch, items);
    /// Inside the batcher.
    assemble(epoch, batch);
    /// On the way to the device.
    upload(epoch, batch);
    /// `next()`, for a batch that is not there.
    wait(epoch, batch);
}
