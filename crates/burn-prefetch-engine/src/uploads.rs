//! One pass as its uploader sees it: assembled batches that may be uploaded now.

use std::sync::Arc;

use crate::feed::Feed;
use crate::pool::{Hand, Pool, Serve};
use crate::source::Source;

/// Who uploads a pass's batches, and how far ahead of its reader.
///
/// One thread for a device: its batches are uploaded one after the other, in one stream of work. The
/// pool may serve any number of passes.
#[derive(Clone, Debug)]
pub struct Uploader {
    /// The thread.
    pub pool: Arc<Pool>,
    /// How many batches may be uploaded and not yet returned; with 0 a batch is uploaded when
    /// `next()` asks for it.
    pub ahead: usize,
}

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
