//! A batch is alive while it is made and until it is taken, whoever makes it.

use crate::support::{contender, count};

/// Of 16 pictures of 3 × 32 × 32: bytes with a class, and floats with a class.
const BATCH: u64 = 16 * (3072 + 1) + 16 * (3072 * 4 + 8);

const FEW: [&str; 8] = [
    "--images",
    "256",
    "--batch-size",
    "16",
    "--steps",
    "5",
    "--step-ms",
    "1",
];

#[test]
fn what_is_made_when_it_is_asked_for_is_one_batch_with_items_and_tensors() {
    for more in [
        ["--workers", "0"].as_slice(),
        &["--workers", "0", "--loader", "burn"],
        &["--workers", "2", "--prefetch", "0"],
        &["--workers", "2", "--prefetch", "1"],
        &["--workers", "1", "--prefetch-factor", "1"],
    ] {
        let row = contender(&[&FEW, more].concat());
        assert_eq!(count(&row, "peak_batches_alive"), 1, "{more:?}");
        assert_eq!(count(&row, "peak_batch_bytes"), BATCH, "{more:?}");
    }
}

#[test]
fn a_batch_that_is_a_whole_epoch_is_alive_too() {
    let more = ["--batch-size", "256", "--workers", "2", "--prefetch", "2"];
    let row = contender(&[&FEW[..2], &FEW[4..], &more].concat());
    assert_eq!(count(&row, "peak_batches_alive"), 1);
    assert_eq!(count(&row, "peak_batch_bytes"), 16 * BATCH);
}
