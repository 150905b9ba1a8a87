//! Every call, in the order in which the calls began.

use crate::protocol::Record;

/// The most records that are kept: a test that makes more calls clears the log in between.
const LIMIT: usize = 1 << 20;

/// The records, and how many found no room.
#[derive(Debug)]
pub(crate) struct Log {
    records: Vec<Record>,
    /// How many records were cleared away: a ticket is a position in all that were ever begun.
    cleared: usize,
    pub(crate) lost: u64,
    limit: usize,
}

/// Where a call stands in the log, until it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket(Option<usize>);

impl Log {
    pub(crate) const fn new() -> Self {
        Self {
            records: Vec::new(),
            cleared: 0,
            lost: 0,
            limit: LIMIT,
        }
    }

    pub(crate) fn begin(&mut self, record: Record) -> Ticket {
        if self.records.len() == self.limit {
            self.lost += 1;
            return Ticket(None);
        }
        self.records.push(record);
        Ticket(Some(self.cleared + self.records.len() - 1))
    }

    /// The record of a call that has not ended, where it was kept and not cleared away since.
    pub(crate) fn record(&mut self, ticket: Ticket) -> Option<&mut Record> {
        let position = ticket.0?.checked_sub(self.cleared)?;
        self.records.get_mut(position)
    }

    /// The call that began last: that of whoever holds the driver.
    pub(crate) fn newest(&mut self) -> Option<&mut Record> {
        if self.lost > 0 {
            None
        } else {
            self.records.last_mut()
        }
    }

    pub(crate) fn at(&self, position: u64) -> Option<Record> {
        self.records.get(usize::try_from(position).ok()?).copied()
    }

    pub(crate) fn clear(&mut self) {
        self.cleared += self.records.len();
        self.records = Vec::new();
        self.lost = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_says_how_much_it_lost() {
        let mut log = Log {
            limit: 1,
            ..Log::new()
        };
        let kept = log.begin(Record::of("cuInit"));
        let lost = log.begin(Record::of("cuInit"));
        assert!(log.record(kept).is_some());
        assert!(log.record(lost).is_none());
        assert_eq!(
            (log.at(0).map(|it| it.code), log.at(1), log.lost),
            (Some(0), None, 1)
        );
    }

    #[test]
    fn a_call_that_outlives_a_clearing_marks_no_other() {
        let mut log = Log::new();
        let before = log.begin(Record::of("cuInit"));
        log.clear();
        let after = log.begin(Record::of("cuInit"));
        assert!(log.record(before).is_none());
        assert!(log.record(after).is_some());
    }
}
