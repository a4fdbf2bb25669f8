//! Everything at once, from a seed: whatever happens, nothing is lost, doubled or early.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::frontier::testing::{Reply, Rig, Setting, Visit, Web, assert_polite, secs};
use crate::protocol::ShardMsg;
use crate::protocol::shard::{DeadSelection, HostOrder};
use crate::types::{HostKey, LeaseKind, LedgerRow, Outcome, Timestamp};
use crate::world::{Dice, SeededDice};

const HOSTS: usize = 8;
const PAGES: usize = 24;
const SEEDS: u64 = 12;

/// A web that fails now and then; what happens to a lease depends on its number and the seed only.
fn moody_web(seed: u64) -> Web {
    Arc::new(move |lease| {
        let mood = xxhash_rust::xxh3::xxh3_64_with_seed(&lease.id.0.to_be_bytes(), seed) % 24;
        let took = Duration::from_millis(mood * 11);
        let reply = match (&lease.kind, mood) {
            (LeaseKind::Robots { .. }, 0) => Reply::of(Outcome::Timeout),
            (LeaseKind::Robots { .. }, 1) => Reply::of(Outcome::ServerError),
            (LeaseKind::Robots { .. }, 2) => Reply {
                location: Some("https://elsewhere.example/robots.txt".to_owned()),
                ..Reply::of(Outcome::Redirect)
            },
            (LeaseKind::Robots { .. }, _) => Reply::of(Outcome::ClientError),
            (LeaseKind::Page, 0) => Reply::lost(),
            (LeaseKind::Page, 1) => Reply::of(Outcome::Timeout),
            (LeaseKind::Page, 2) => {
                Reply { retry_after: Some(secs(40)), ..Reply::of(Outcome::RateLimited) }
            }
            (LeaseKind::Page, 3) => Reply::of(Outcome::RateLimited),
            (LeaseKind::Page, _) => Reply::of(Outcome::Ok),
        };
        Reply { took, ..reply }
    })
}

struct Run {
    rig: Rig,
    dice: SeededDice,
    admitted: BTreeSet<String>,
    restarts: Vec<Timestamp>,
}

impl Run {
    async fn new(seed: u64) -> Self {
        let mut setting = Setting { credit: 5, resident_hosts: 4, ..Setting::default() };
        setting.parse_room = 3;
        setting.host.window = 8;
        setting.host.lease = secs(120);
        setting.address.min_delay = Duration::from_millis(30);
        setting.address.max_in_flight = 3;
        let rig = Rig::crawling(setting, moody_web(seed)).await;
        let dice = SeededDice::new(seed);
        Self { rig, dice, admitted: BTreeSet::new(), restarts: Vec::new() }
    }

    fn throw(&self, sides: u64) -> u64 {
        self.dice.throw() % sides
    }

    async fn act(&mut self) {
        match self.throw(20) {
            0..=5 => self.admit().await,
            6 => self.rig.dice.load(1),
            7 => {
                let slow = self.throw(3) * 300;
                self.rig.flaky.slow_ms.store(slow, Ordering::SeqCst);
            }
            8 => self.reopen(false).await,
            9 => self.reopen(true).await,
            10 => self.pause(true),
            11..=12 => self.pause(false),
            13 => self.order(true).await,
            14 => self.order(false).await,
            15 => self.rig.flaky.fails.store(true, Ordering::SeqCst),
            16 => self.retry_dead().await,
            _ => {}
        }
        let span = self.throw(6_000);
        self.rig.pass(Duration::from_millis(span)).await;
        self.rig.flaky.fails.store(false, Ordering::SeqCst);
    }

    async fn order(&self, paused: bool) {
        let host = self.throw(u64::try_from(HOSTS).unwrap());
        self.order_host(host, paused).await;
    }

    async fn order_host(&self, host: u64, paused: bool) {
        let order = HostOrder {
            host: HostKey::parse(&format!("https://h{host}.test")).unwrap(),
            paused: Some(paused),
            min_delay: None,
            max_in_flight: None,
            daily_pages: None,
        };
        let set = self.rig.ask(|answer| ShardMsg::Order(order, answer)).await;
        assert!(set.is_none_or(|set| set.paused == paused));
    }

    async fn retry_dead(&self) {
        self.rig.ask(|answer| ShardMsg::RetryDead(DeadSelection::All, answer)).await.unwrap();
    }

    /// From here on all goes well, and hosts that were parked are resumed.
    async fn calm_down(&self) {
        self.rig.dice.load(0);
        self.rig.flaky.slow_ms.store(0, Ordering::SeqCst);
        self.pause(false);
        for host in 0..u64::try_from(HOSTS).unwrap() {
            self.order_host(host, false).await;
        }
    }

    async fn admit(&mut self) {
        let host = self.throw(u64::try_from(HOSTS).unwrap());
        let urls: Vec<String> = (0..self.throw(9))
            .map(|_| format!("https://h{host}.test/{}", self.throw(PAGES.try_into().unwrap())))
            .collect();
        self.rig.admit(&urls).await;
        self.admitted.extend(urls);
    }

    async fn reopen(&mut self, clean: bool) {
        self.rig.dice.load(0);
        match clean {
            true => self.rig.close().await,
            false => self.rig.kill().await,
        }
        self.restarts.push(self.rig.now());
        self.rig.open().await;
    }

    fn pause(&self, paused: bool) {
        self.rig
            .shard()
            .send_message(ShardMsg::Pause(paused, crate::protocol::Answer::ignored()))
            .unwrap();
    }

    async fn check(&self, seed: u64) {
        let visits = self.rig.visits();
        assert_polite(&visits, secs(1));
        let pages: BTreeSet<String> = visits
            .iter()
            .filter(|visit| visit.is_page())
            .map(|visit| visit.url().to_owned())
            .collect();
        assert_eq!(pages, self.admitted, "seed {seed}: every page is visited");
        self.check_rows(seed).await;
        self.check_ledger(seed, &visits).await;
        let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
        for (_, event) in self.rig.events().await {
            let key = format!("{:?} {}", event.subject, event.happening.kind());
            *kinds.entry(key).or_default() += 1;
        }
        let doubled: Vec<_> = kinds.iter().filter(|(_, times)| **times > 1).collect();
        assert!(doubled.is_empty(), "seed {seed}: {doubled:?}");
        let view = self.rig.view().await;
        assert_eq!(view.urls.known, u64::try_from(self.admitted.len()).unwrap(), "seed {seed}");
        assert_eq!((view.violations, view.urls.sleeping), (0, 0));
    }

    async fn check_rows(&self, seed: u64) {
        let store = &self.rig.stores[0];
        assert!(store.open_leases().await.unwrap().is_empty(), "seed {seed}");
        assert!(store.to_parse(None, 9).await.unwrap().is_empty(), "seed {seed}");
        assert_eq!(store.next_due().await.unwrap(), None, "seed {seed}");
        for host in 0..HOSTS {
            let id = HostKey::parse(&format!("https://h{host}.test")).unwrap().id();
            for band in 0..4 {
                let (rows, _) = store.queue_window(id, band, None, 9).await.unwrap();
                assert!(rows.is_empty(), "seed {seed}");
            }
            if let Some((_, counts)) = store.host(id).await.unwrap() {
                let dead = store.dead(None, 1_000).await.unwrap();
                let dead = dead.iter().filter(|letter| letter.entry.id.host == id).count();
                assert_eq!((counts.queued, counts.deferred), (0, 0), "seed {seed}");
                assert_eq!(counts.dead, u64::try_from(dead).unwrap(), "seed {seed}");
            }
        }
    }

    async fn check_ledger(&self, seed: u64, visits: &[Visit]) {
        let store = &self.rig.stores[0];
        let (rows, _) = store.ledger(Timestamp::EPOCH, None, 100_000).await.unwrap();
        let mut granted = BTreeSet::new();
        let mut ended = BTreeSet::new();
        for (_, row) in rows {
            match row {
                LedgerRow::Granted { lease, .. } => assert!(granted.insert(lease.id)),
                LedgerRow::Ended { lease, .. } => assert!(ended.insert(lease), "seed {seed}: I5"),
            }
        }
        assert!(granted.is_subset(&ended), "seed {seed}: every grant ends");
        assert!(visits.iter().all(|visit| granted.contains(&visit.lease.id)), "I7");
        for visit in visits {
            let before = self.restarts.iter().filter(|at| **at <= visit.sent_at).max();
            assert!(before.is_none_or(|at| visit.sent_at >= *at), "seed {seed}: I3");
        }
    }
}

async fn run(seed: u64) {
    let mut run = Run::new(seed).await;
    for _ in 0..60 {
        run.act().await;
    }
    run.calm_down().await;
    run.rig.until_done(secs(20_000)).await;
    run.rig.pass(secs(3)).await;
    run.check(seed).await;
}

#[test]
fn whatever_happens_nothing_is_lost_doubled_or_early() {
    for seed in 0..SEEDS {
        // A runtime each: the engines of killed shards end with it.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(seed));
    }
}
