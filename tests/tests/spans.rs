//! With the feature `tracing` there is a span for each fetch, assembly, upload and wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use burn::data::dataloader::DataLoader;
use burn_prefetch_tests::{Numbers, for_each_worker_count, loader};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// What was opened: a name, and its fields.
type Opened = (&'static str, BTreeMap<&'static str, u64>);

/// Writes down every span of this crate.
#[derive(Clone, Debug, Default)]
struct Collector(Arc<Mutex<Vec<Opened>>>);

impl Collector {
    fn take(&self, name: &str) -> Vec<BTreeMap<&'static str, u64>> {
        let mut all = self.0.lock().expect("a test has panicked");
        let spans = all.extract_if(.., |(opened, _)| *opened == name);
        spans.map(|(_, fields)| fields).collect()
    }
}

struct Fields(BTreeMap<&'static str, u64>);

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        panic!("{} is no number: {value:?}", field.name());
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "burn_prefetch" && *metadata.level() == Level::DEBUG
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields(BTreeMap::new());
        attributes.record(&mut fields);
        let mut all = self.0.lock().expect("a test has panicked");
        all.push((attributes.metadata().name(), fields.0));
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn event(&self, _event: &Event<'_>) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

#[test]
fn every_step_of_a_batch_is_a_span() {
    let collector = Collector::default();
    tracing::subscriber::set_global_default(collector.clone()).expect("it is the only one");
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

fn of_epoch_3(fields: &BTreeMap<&'static str, u64>) -> u64 {
    assert_eq!(fields["epoch"], 3);
    fields["batch"]
}
