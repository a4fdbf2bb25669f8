//! R5: the order to remove what is stored of an exclusion, and how far it is.

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// What a purge has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Records of archive files.
    pub records: u64,
    /// Bytes of those, as they lay in the files.
    pub bytes: u64,
    /// Lines of indexes.
    pub index_lines: u64,
    /// Page records of outputs.
    pub page_records: u64,
}

impl Removed {
    /// Nothing.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
            index_lines: self.index_lines + other.index_lines,
            page_records: self.page_records + other.page_records,
        }
    }
}

/// The order, its progress and its result: what outlives the content, and holds nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeRecord {
    /// The id of the exclusion, which is made from the rule.
    pub id: String,
    /// `host:…`, `domain:…` or `surt:…`.
    pub rule: String,
    /// When it was ordered.
    pub ordered_at: Timestamp,
    /// When all was gone.
    pub done_at: Option<Timestamp>,
    /// What is gone for sure.
    pub removed: Removed,
    /// The file that is being rewritten, and what of it goes: written down before, so that what a
    /// crash interrupts is counted once.
    pub rewriting: Option<(String, Removed)>,
    /// URLs whose rows were cleared.
    pub urls: u64,
    /// Files that could not be read to their end: what lies behind that place is still there.
    pub unreadable: u32,
}

impl PurgeRecord {
    /// Whether it is a later order than the other, or the same one with more of it done.
    pub fn replaces(&self, other: &Self) -> bool {
        self.ordered_at > other.ordered_at || self.is_further_than(other)
    }

    /// Whether it is the same order, and more of it is done.
    pub fn is_further_than(&self, other: &Self) -> bool {
        let done = |order: &Self| {
            let begun = order.rewriting.as_ref().map(|(_, removed)| *removed);
            let removed = order.removed.and(begun.unwrap_or_default());
            (order.done_at.is_some(), removed.records + removed.page_records)
        };
        self.ordered_at == other.ordered_at && done(self) > done(other)
    }

    /// An order of which nothing is done yet.
    pub fn new(id: String, rule: String, ordered_at: Timestamp) -> Self {
        Self {
            id,
            rule,
            ordered_at,
            done_at: None,
            removed: Removed::default(),
            rewriting: None,
            urls: 0,
            unreadable: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_gives_way_to_a_later_one_and_to_itself_when_more_is_done() {
        let at = Timestamp::from_secs;
        let order = |secs| PurgeRecord::new("1f".to_owned(), "host:a.test".to_owned(), at(secs));
        let removed = |records| Removed { records, ..Removed::default() };
        let first = order(1);
        let begun = PurgeRecord { rewriting: Some(("a".to_owned(), removed(2))), ..first.clone() };
        let half = PurgeRecord { removed: removed(3), ..first.clone() };
        let done = PurgeRecord { done_at: Some(at(9)), ..first.clone() };
        let rising = [first, begun, half, done, order(20)];
        for (lower, one) in rising.iter().enumerate() {
            for (higher, other) in rising.iter().enumerate() {
                assert_eq!(other.replaces(one), higher > lower, "{other:?} {one:?}");
            }
        }
    }
}
