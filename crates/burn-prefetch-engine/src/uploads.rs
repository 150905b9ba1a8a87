//! One pass as its uploader sees it: assembled batches that may be uploaded now.

use std::sync::Arc;

use crate::feed::Feed;
use crate::source::Source;
use crate::staff::{Hand, Serve};

/// A pass in the line of its uploader.
pub(crate) struct Uploads<S: Source>(pub(crate) Arc<Feed<S>>);

impl<S: Source> Serve for Uploads<S> {
    fn serve(&self, hand: &Hand<'_>) -> bool {
        self.0.upload(hand)
    }

    fn waiting_since(&self) -> usize {
        self.0.waiting_since()
    }

    fn alarm(&self) {
        self.0.alarm();
    }
}
