//! What holds whatever a test does, judged from the requests that were made.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Visit;
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
