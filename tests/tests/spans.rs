//! With the feature `tracing` there is a span for each fetch, assembly, upload and wait.

use std::sync::{Arc, Mutex};

use burn::data::dataloader::DataLoader;
use burn_prefetch_tests::{Numbers, OnSpan, SpanFields, for_each_worker_count, loader};

/// Every span that has begun: its name and fields.
#[derive(Clone, Debug, Default)]
struct Collector(Arc<Mutex<Vec<(&'static str, SpanFields)>>>);

impl Collector {
    fn put(&self, name: &'static str, fields: SpanFields) {
        let mut all = self.0.lock().expect("a test has panicked");
        all.push((name, fields));
    }

    fn take(&self, name: &str) -> Vec<SpanFields> {
        let mut all = self.0.lock().expect("a test has panicked");
        let spans = all.extract_if(.., |(opened, _)| *opened == name);
        spans.map(|(_, fields)| fields).collect()
    }
}

#[test]
fn every_step_of_a_batch_is_a_span() {
    let collector = Collector::default();
    let spans = collector.clone();
    let subscriber = OnSpan(move |name, fields| spans.put(name, fields));
    tracing::subscriber::set_global_default(subscriber).expect("it is the only one");
    for_each_worker_count(move |workers| {
        let loader = loader(workers).batch_size(4).start_epoch(3);
        let loader = loader
            .try_build(Numbers(20))
            .expect("the settings are good");
        assert_eq!(loader.iter().count(), 5);
        let fetched = collector.take("fetch");
        let items: u64 = fetched.iter().map(|fields| fields["items"]).sum();
        assert_eq!(items, 20);
        for name in ["assemble", "upload"] {
            let mut batches: Vec<u64> = collector.take(name).iter().map(of_epoch_3).collect();
            batches.sort_unstable();
            assert_eq!(batches, [0, 1, 2, 3, 4], "{name}");
        }
        let waits: Vec<u64> = collector.take("wait").iter().map(of_epoch_3).collect();
        if workers == 0 {
            assert_eq!(waits, [0, 1, 2, 3, 4]);
        }
        assert!(waits.is_sorted() && waits.len() <= 5, "{waits:?}");
    });
}

fn of_epoch_3(fields: &SpanFields) -> u64 {
    assert_eq!(fields["epoch"], 3);
    fields["batch"]
}
