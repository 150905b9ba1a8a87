//! A subscriber of `tracing` that is told of every span of the crate.

use std::collections::BTreeMap;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The numbers of a span, by the names of its fields.
pub type SpanFields = BTreeMap<&'static str, u64>;

/// Calls what it holds with the name and fields of each span that begins; only the crate's own.
#[derive(Debug)]
pub struct OnSpan<F>(pub F);

#[derive(Default)]
struct Fields(SpanFields);

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        panic!("{} is no number: {value:?}", field.name());
    }
}

impl<F: Fn(&'static str, SpanFields) + Send + Sync + 'static> Subscriber for OnSpan<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "burn_prefetch" && *metadata.level() == Level::DEBUG
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        (self.0)(attributes.metadata().name(), fields.0);
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn event(&self, _event: &Event<'_>) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}
