//! What holds whatever a test does, judged from its requests; and what a parser says in the end.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Visit;
use crate::protocol::shard::{PublishedBatch, PublishedPage};
use crate::protocol::{Answer, ParseJob, ShardMsg};
use crate::types::Timestamp;

/// I2, judged from outside: per host one at a time, and a delay from each end to the next start.
pub(in crate::frontier) fn assert_polite(visits: &[Visit], delay: Duration) {
    let mut last: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut visits: Vec<&Visit> = visits.iter().collect();
    visits.sort_by_key(|visit| visit.sent_at);
    for visit in visits {
        let host = visit.lease.host.to_string();
        if let Some(ended_at) = last.get(&host) {
            let allowed = *ended_at + delay;
            assert!(
                visit.sent_at >= allowed,
                "{} at {}, not {allowed}",
                visit.url(),
                visit.sent_at
            );
        }
        last.insert(host, visit.ended_at);
        assert!(visit.sent_at >= visit.lease.not_before && visit.sent_at < visit.lease.expires_at);
    }
}

/// A parser is done with a page.
pub(in crate::frontier) fn published(job: ParseJob) -> ShardMsg {
    let page = PublishedPage { row: job.row, links: 0, duplicate_of: None, parser_version: 1 };
    let answer = Answer::ignored();
    ShardMsg::Published(Box::new(PublishedBatch { pages: vec![page], outputs: Vec::new(), answer }))
}
