//! `pad_last`: every batch is full, and whoever weighs the loss knows which items are real.

use burn::data::dataloader::DataLoader;
use burn::data::dataloader::batcher::Batcher;
use burn::tensor::Device;
use burn_prefetch::{DataLoaderBuilder, real_mask};
use burn_prefetch_tests::{Numbers, for_each_case, for_each_worker_count, loader, pass};

/// A batch says of each item whether it is real.
struct Masked;

impl Batcher<usize, Vec<(usize, bool)>> for Masked {
    fn batch(&self, items: Vec<usize>, _device: &Device) -> Vec<(usize, bool)> {
        let mask = real_mask(items.len());
        items.into_iter().zip(mask).collect()
    }
}

#[test]
fn the_last_batch_is_filled_up_from_the_epochs_start() {
    for_each_worker_count(|workers| {
        let padded = || loader(workers).batch_size(4).pad_last(true);
        assert_eq!(pass(padded().build(Numbers(10)).as_ref())[2], [8, 9, 0, 1]);
        assert_eq!(
            pass(padded().build(Numbers(8)).as_ref()).len(),
            2,
            "nothing to fill"
        );
        assert_eq!(pass(padded().build(Numbers(1)).as_ref()), [[0, 0, 0, 0]]);
        assert!(pass(padded().build(Numbers(0)).as_ref()).is_empty());
        let shuffled = pass(padded().shuffle(3).build(Numbers(10)).as_ref());
        assert_eq!(shuffled[2][2..], shuffled[0][..2]);
    });
}

#[test]
fn batcher_and_training_loop_know_what_is_real() {
    for_each_worker_count(|workers| {
        let builder = DataLoaderBuilder::new(Masked)
            .num_workers(workers)
            .shuffle(3);
        let builder = builder.batch_size(4).pad_last(true);
        let loader = builder.try_build(Numbers(10)).unwrap();
        assert_eq!((loader.num_items(), loader.num_batches()), (10, 3));
        let mut batches = loader.iter_owned();
        for padding in [0, 0, 2] {
            let batch = batches.next().unwrap().unwrap();
            assert_eq!(batches.padding(), padding);
            let mask: Vec<_> = batch.iter().map(|(_, real)| *real).collect();
            assert_eq!(mask, [true, true, padding == 0, padding == 0]);
        }
        let mut real: Vec<_> = pass(&loader).concat();
        real.retain(|(_, real)| *real);
        let mut items: Vec<_> = real.into_iter().map(|(item, _)| item).collect();
        items.sort_unstable();
        assert_eq!(items, (0..10).collect::<Vec<_>>(), "each item is real once");
    });
}

#[test]
fn progress_counts_real_items_and_is_complete_at_the_end_only() {
    for_each_case([None, Some(3)], |workers, seed| {
        let builder = loader(workers).batch_size(4).pad_last(true);
        let builder = match seed {
            Some(seed) => builder.shuffle(seed),
            None => builder,
        };
        let loader = builder.build(Numbers(10));
        let mut pass = loader.iter();
        for processed in [4, 8, 10] {
            pass.next().unwrap().unwrap();
            let progress = pass.progress();
            assert_eq!(
                (progress.items_processed, progress.items_total),
                (processed, 10)
            );
            assert_eq!(progress.is_completed(), processed == 10);
        }
    });
}

#[test]
fn outside_a_loader_all_is_real() {
    assert_eq!(real_mask(3), [true; 3]);
}
