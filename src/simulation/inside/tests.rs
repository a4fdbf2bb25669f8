//! What is seen inside is judged.

use std::sync::Arc;

use super::*;
use crate::simulation::settings;
use crate::simulation::web::Web;
use crate::types::Timestamp;

fn inside() -> Inside {
    let config = settings::config().unwrap();
    let web = Arc::new(Web::new(1, 3, Timestamp::EPOCH));
    Inside::new(History::new(web, &config), &config)
}

#[track_caller]
fn found(inside: &Inside, what: &[&str]) {
    let (_, words) = inside.history.violations();
    assert_eq!(words.len(), what.len(), "{words:?}");
    for (words, what) in words.iter().zip(what) {
        assert!(words.contains(what), "{words}");
    }
}

#[test]
fn terms_that_fall_and_figures_beyond_their_bounds_are_found() {
    let inside = inside();
    inside.set_credit(Some(10));
    let view = |epoch| ShardView { epoch, ..ShardView::default() };
    inside.shard_seen(&view(1), 0);
    inside.shard_seen(&view(1), 0);
    inside.shard_seen(&view(2), 1);
    found(&inside, &[]);
    inside.shard_seen(&view(2), 2);
    found(&inside, &["owned in term 2 after 2"]);
    inside.shard_seen(&ShardView { violations: 1, hosts_resident: 900, ..view(3) }, 2);
    found(&inside, &["term 2", "itself has seen 1", "900 resident hosts"]);
}

#[test]
fn a_feed_that_repeats_turns_back_or_forgets_is_found() {
    let inside = inside();
    let seen = |after, seq, key: &str| {
        inside.event_seen(ShardId(0), EventSeq(after), EventSeq(seq), key.to_owned());
    };
    seen(0, 1, "fetched a 1");
    seen(1, 2, "fetched b 1");
    found(&inside, &[]);
    seen(2, 3, "fetched a 1");
    seen(3, 3, "fetched c 1");
    found(&inside, &["twice: fetched a 1", "turns back at 3"]);
    let stored = [(1, "fetched a 1"), (2, "fetched x 1"), (3, "fetched c 1")];
    let stored = stored.map(|(seq, key)| (EventSeq(seq), key.to_owned()));
    inside.compare(ShardId(0), &BTreeMap::from(stored));
    found(&inside, &["twice", "turns back", "showed fetched b 1 at 2"]);
}
