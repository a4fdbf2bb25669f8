//! What can be seen inside a running node without being part of it: leases as they leave their
//! shard, the event feed, the figures of shards, discovery, archive and outputs.
//!
//! - I1 The terms of owners and of the leases they grant only rise; no lease leaves twice.
//! - I5 The feed has one event of a kind for each version of a subject.
//! - I7 What the feed has shown stays, over crashes too: it was durable before it was seen.
//! - I8 Nobody has more under way than there is credit for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ractor::{ActorRef, Message};

use super::checkers::History;
use crate::config::Config;
use crate::policy::{invariants, placement};
use crate::protocol::shard::ShardView;
use crate::protocol::{Answer, ArchiveMsg, DiscoveryMsg, OutputMsg, Routes, ShardMsg, ask};
use crate::types::{CrawlEvent, Epoch, EventSeq, Lease, LeaseId, ShardId, Subject};

/// Events read at once.
const EVENTS: u16 = 1000;
/// An actor that does not answer so long is busy, and is asked another time.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Pages between parser and output at once, and batches of seeds.
const PAGES_UNDER_WAY: u32 = 1024 + 16;
/// Responses between fetcher and parser at once: each takes a kilobyte of credit at least.
const RESPONSES_UNDER_WAY: u32 = 64 << 10;

/// The record of a run's insides.
#[derive(Debug)]
pub(super) struct Inside {
    history: History,
    shards: u16,
    residents: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    credit: Option<u32>,
    owners: BTreeMap<ShardId, Term>,
    grants: BTreeMap<ShardId, Term>,
    left: BTreeSet<LeaseId>,
    feeds: BTreeMap<ShardId, BTreeMap<EventSeq, String>>,
    keys: BTreeSet<String>,
}

/// An owner's term, and the life of the node it was seen in.
#[derive(Clone, Copy, Debug)]
struct Term {
    epoch: Epoch,
    life: u64,
}

impl Term {
    /// I1: within a life terms do not fall; in the next one they are higher.
    fn follows(self, before: Self) -> bool {
        match self.life == before.life {
            true => self.epoch >= before.epoch,
            false => invariants::terms_rise(before.epoch, self.epoch),
        }
    }
}

impl Inside {
    /// Nothing has been seen yet.
    pub(super) fn new(history: History, config: &Config) -> Self {
        let residents = config.frontier.resident_hosts / u32::from(config.frontier.shards);
        Self { history, shards: config.frontier.shards, residents, state: Mutex::default() }
    }

    /// Leases that all shards together may have out.
    pub(super) fn set_credit(&self, credit: Option<usize>) {
        self.lock().credit = credit.and_then(|credit| u32::try_from(credit).ok());
    }

    /// A lease leaves its shard, durable.
    pub(super) fn lease_left(&self, lease: &Lease, life: u64) {
        let shard = placement::shard_of(lease.host.domain(), usize::from(self.shards));
        let mut state = self.lock();
        if !state.left.insert(lease.id) {
            self.history.violate(format_args!("I1: lease {} leaves twice", lease.id));
        }
        let term = Term { epoch: lease.epoch, life };
        if let Some(before) = state.grants.insert(shard, term).filter(|it| !term.follows(*it)) {
            let (now, then) = (term.epoch.0, before.epoch.0);
            self.history.violate(format_args!("I1: {shard} grants in term {now} after {then}"));
        }
    }

    /// A look at everything that answers.
    pub(super) async fn look(&self, routes: &Routes, life: u64) {
        let mut in_flight = 0;
        for (number, route) in (0..).zip(&routes.shards) {
            let Some(route) = route else { continue };
            if let Some(view) = within(&route.shard, ShardMsg::Observe).await {
                in_flight += view.in_flight;
                self.shard_seen(&view, life);
            }
            self.read_feed(ShardId(number), &route.shard).await;
            let view = within(&route.output, OutputMsg::Observe).await;
            self.bound("pages with an output", view.map(|it| it.waiting), PAGES_UNDER_WAY);
        }
        let credit = self.lock().credit.unwrap_or(0);
        self.bound("leases", Some(in_flight), credit);
        if let Some(discovery) = &routes.discovery {
            let view = within(discovery, DiscoveryMsg::Observe).await;
            self.bound("pages with discovery", view.map(|it| it.waiting), PAGES_UNDER_WAY);
        }
        if let Some(archive) = &routes.archive {
            let view = within(archive, ArchiveMsg::Observe).await;
            self.bound("responses", view.map(|it| it.waiting), RESPONSES_UNDER_WAY);
        }
    }

    fn bound(&self, what: &str, count: Option<u32>, bound: u32) {
        if let Some(count) = count.filter(|count| !invariants::within_bound(*count, bound)) {
            self.history.violate(format_args!("I8: {count} {what}, and at most {bound} may be"));
        }
    }

    fn shard_seen(&self, view: &ShardView, life: u64) {
        let term = Term { epoch: Epoch(view.epoch), life };
        let mut state = self.lock();
        let credit = state.credit.unwrap_or(0);
        let before = state.owners.insert(view.shard, term);
        drop(state);
        if let Some(before) = before.filter(|before| !term.follows(*before)) {
            let (shard, now, then) = (view.shard, term.epoch.0, before.epoch.0);
            self.history.violate(format_args!("I1: {shard} is owned in term {now} after {then}"));
        }
        if view.violations > 0 {
            let (shard, violations) = (view.shard, view.violations);
            self.history.violate(format_args!("I2: {shard} itself has seen {violations}"));
        }
        self.bound("resident hosts", Some(view.hosts_resident), self.residents + credit);
    }

    /// What has come into the feed of a shard since the last look.
    async fn read_feed(&self, number: ShardId, shard: &ActorRef<ShardMsg>) {
        loop {
            let last = self.lock().feeds.get(&number).and_then(|feed| feed.keys().last().copied());
            let after = last.unwrap_or(EventSeq(0));
            let read = |answer| ShardMsg::ReadEvents(after, EVENTS, answer);
            let Some(Ok(events)) = within(shard, read).await else { return };
            let full = events.len() == usize::from(EVENTS);
            for (seq, event) in events {
                self.event_seen(number, after, seq, key_of(&event));
            }
            if !full {
                return;
            }
        }
    }

    fn event_seen(&self, shard: ShardId, after: EventSeq, seq: EventSeq, key: String) {
        let mut state = self.lock();
        if seq <= after {
            self.history.violate(format_args!("I7: the feed of {shard} turns back at {}", seq.0));
        }
        if !state.keys.insert(key.clone()) {
            self.history.violate(format_args!("I5: the feed has it twice: {key}"));
        }
        state.feeds.entry(shard).or_default().insert(seq, key);
    }

    /// I7: what the feed has shown is in the stores when all is over.
    pub(super) fn compare(&self, shard: ShardId, stored: &BTreeMap<EventSeq, String>) {
        let state = self.lock();
        for (seq, key) in state.feeds.get(&shard).into_iter().flatten() {
            if stored.get(seq) != Some(key) {
                let (seq, found) = (seq.0, stored.get(seq));
                self.history.violate(format_args!(
                    "I7: the feed of {shard} showed {key} at {seq}, and now there is {found:?}"
                ));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What names an event for good (O5).
pub(super) fn key_of(event: &CrawlEvent) -> String {
    let kind = event.happening.kind();
    match &event.subject {
        Subject::Url { url, version, .. } => format!("{kind} {url} {version}"),
        Subject::Host { host_key, version } => format!("{kind} {host_key} {version}"),
        Subject::Rule { rule, version } => format!("{kind} {rule} {version}"),
    }
}

async fn within<M: Message, T: Send + 'static>(
    actor: &ActorRef<M>,
    question: impl FnOnce(Answer<T>) -> M,
) -> Option<T> {
    tokio::time::timeout(ANSWER_WITHIN, ask(actor, question)).await.ok().flatten()
}

#[cfg(test)]
mod tests;
