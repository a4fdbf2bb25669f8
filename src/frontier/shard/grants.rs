//! A grant on its way out: name resolved, address checked and asked, lease made durable, then sent.
//!
//! - G-1 The address is checked before it is pinned (H4, I6).
//! - G-2 The lease's row is the ledger's (F5, B2). The entry stays in the queue until the lease has
//!   ended: whoever reads the queue leaves out what is leased, and a lease that comes back has
//!   nothing to put back.
//! - G-3 Only a durable lease is sent (I7).
//! - G-4 A row beside the ledger is never later than the oldest grant that is open, by the times
//!   that they have there.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tracing::debug;

use super::commit::Then;
use super::state::{Granted, Shard, Stage, fault};
use crate::policy::change::Change;
use crate::policy::host::{Errand, Grant};
use crate::protocol::shard::{HostRead, StoreReply};
use crate::protocol::{AddressMsg, Answer, FetchJob, HostMsg, ShardMsg};
use crate::storage::open_since;
use crate::types::{
    Completion, HostCounts, HostId, HostKey, HostRecord, Lease, LeaseId, LedgerRow, Outcome,
    Reason, Timestamp,
};
use crate::world::Resolved;

/// How often it is written since when grants are open.
const MARK_EVERY: Duration = Duration::from_secs(1);

impl Shard {
    /// A host granted a lease: its name is resolved next.
    pub(super) fn granted(&mut self, host: HostId, grant: Grant) {
        let Grant { lease, set_by, policy } = grant;
        self.domains.granted(lease.host.domain(), lease.not_before);
        let (id, name) = (lease.id, lease.host.host().to_owned());
        let excluded = self.exclusions.refuses(&lease, self.now());
        let lease = Arc::new(lease);
        self.leases.insert(
            id,
            Granted { host, lease, stage: Stage::Resolving, recorded_at: None, set_by, policy },
        );
        if let Some(reason) = excluded {
            // R5: granted before the host heard of the exclusion; nothing of it is written.
            return self.give_up(id, Outcome::Cancelled, reason);
        }
        let (resolver, me) = (Arc::clone(&self.world.resolver), self.me.clone());
        let mut resolving = Box::pin(async move { resolver.resolve(&name).await });
        // A name in the cache is answered on the spot: nearly all are, and a task and a message
        // cost more than the answer.
        if let Some(answer) = resolving.as_mut().now_or_never() {
            return self.resolved(id, answer);
        }
        tokio::spawn(async move {
            let answer = resolving.await;
            me.send_message(ShardMsg::Resolved { lease: id, answer }).ok();
        });
    }

    /// The name is resolved: one allowed address is pinned and asked for a place (G-1).
    pub(super) fn resolved(&mut self, lease: LeaseId, answer: Result<Resolved, Reason>) {
        let Some(granted) = self.leases.get(&lease) else { return };
        if granted.stage != Stage::Resolving {
            return;
        }
        let pinned = answer
            .map_err(|reason| (Outcome::Dns, reason))
            .and_then(|resolved| self.allowed(&resolved.addresses));
        match pinned {
            Ok(address) => self.ask_address(lease, address),
            Err((outcome, reason)) => self.give_up(lease, outcome, reason),
        }
    }

    /// The first address that may be connected to, IPv4 before IPv6.
    fn allowed(&self, addresses: &[IpAddr]) -> Result<IpAddr, (Outcome, Reason)> {
        let settings = self.settings();
        let mut refusal = Reason::Dns { why: "no address".to_owned() };
        let mut outcome = Outcome::Dns;
        let (four, six): (Vec<IpAddr>, Vec<IpAddr>) =
            addresses.iter().partition(|address| address.is_ipv4());
        for address in four.into_iter().chain(six) {
            match (settings.may_connect)(address) {
                Ok(()) => return Ok(address),
                Err(reason) => (outcome, refusal) = (Outcome::EgressRefused, reason),
            }
        }
        Err((outcome, refusal))
    }

    fn ask_address(&mut self, lease: LeaseId, address: IpAddr) {
        let exempt = (self.settings().address_exempt)(address);
        let owner = self.routes.borrow().address(address).cloned();
        let Some(granted) = self.leases.get_mut(&lease) else { return };
        Arc::make_mut(&mut granted.lease).address = Some(address);
        granted.stage = Stage::Permitting;
        let not_before = granted.lease.not_before;
        let (Some(owner), false) = (owner, exempt) else {
            return self.permitted(lease, Some(not_before));
        };
        let me = self.me.clone();
        let answer = Answer::to(move |not_before| {
            me.send_message(ShardMsg::Permitted { lease, not_before }).ok();
        });
        let asked = AddressMsg::Ask { address, lease, not_before, answer };
        if owner.send_message(asked).is_err() {
            debug!(%address, "the owner of the address is restarting");
        }
    }

    /// The address has a place: the lease becomes durable (G-2). Its owner may be gone; then the
    /// lease is asked for again.
    pub(super) fn permitted(&mut self, lease: LeaseId, not_before: Option<Timestamp>) {
        let at = self.now();
        let Some(granted) = self.leases.get_mut(&lease) else { return };
        if granted.stage != Stage::Permitting {
            return;
        }
        if granted.lease.expires_at <= at {
            // Its host ends it, or has: an end must not stand before its grant in the ledger.
            return;
        }
        let Some(not_before) = not_before else {
            return self.give_up(lease, Outcome::Cancelled, Reason::Stopping);
        };
        let span = granted.lease.expires_at.since(granted.lease.not_before);
        let moved = not_before > granted.lease.not_before;
        if moved {
            let lease = Arc::make_mut(&mut granted.lease);
            lease.not_before = not_before;
            lease.expires_at = not_before + span;
        }
        granted.stage = Stage::Writing;
        granted.recorded_at = Some(at);
        let (host, row) = (granted.host, Arc::clone(&granted.lease));
        let (set_by, policy) = (granted.set_by, granted.policy);
        if moved {
            let (not_before, expires_at) = (row.not_before, row.expires_at);
            self.tell(host, HostMsg::Moved { lease, not_before, expires_at });
        }
        let departs = row.not_before;
        let recorded = LedgerRow::Granted { lease: row, set_by, policy };
        self.put([Change::Record { at, row: Box::new(recorded) }]);
        self.mark_open(at);
        self.durable_by(departs);
        self.when_durable(Then::Dispatch(lease));
    }

    /// G-4: a start reads the ledger from the oldest open grant on, not from its beginning.
    pub(super) fn mark_open(&mut self, now: Timestamp) {
        if self.marked_at.is_some_and(|at| now < at + MARK_EVERY) {
            return;
        }
        (self.marked_at, self.unmarked) = (Some(now), false);
        let recorded = self.leases.values().filter_map(|granted| granted.recorded_at);
        self.put([open_since(recorded.fold(now, Timestamp::min))]);
    }

    /// The lease is durable: it leaves (G-3).
    pub(super) fn dispatch(&mut self, lease: LeaseId) {
        let Some(granted) = self.leases.get_mut(&lease) else { return };
        let address = granted.lease.address;
        let owner = address.and_then(|address| self.routes.borrow().address(address).cloned());
        let (Some(owner), false) = (owner, self.draining) else {
            return self.give_up(lease, Outcome::Cancelled, Reason::Stopping);
        };
        granted.stage = Stage::Sent;
        let job =
            FetchJob { lease: Arc::clone(&granted.lease), shard: self.me.clone(), address: owner };
        // The channel holds the credit of all shards; only a pool that is stopping refuses.
        if self.fetch.try_send(job).is_err() {
            self.give_up(lease, Outcome::Cancelled, Reason::Stopping);
        }
    }

    /// A grant that is not sent: its host hears of it like of any other end.
    fn give_up(&mut self, lease: LeaseId, outcome: Outcome, reason: Reason) {
        let Some(granted) = self.leases.get(&lease) else { return };
        let completion = Completion::failed(&granted.lease, self.now(), outcome, reason);
        let host = granted.host;
        self.end(host, completion);
    }

    /// The host of a lease hears of its end, and hears it again if it fails before it is done.
    pub(super) fn end(&mut self, host: HostId, completion: Completion) {
        let completion = Box::new(completion);
        self.ends.entry(completion.lease).or_insert_with(|| completion.clone());
        self.tell(host, HostMsg::Ended(completion));
    }

    /// F5: hosts whose leases ran out hear of it, also while nothing is granted.
    pub(super) fn expire_leases(&mut self, now: Timestamp) {
        let late = self.leases.values().filter(|granted| granted.lease.expires_at <= now);
        let hosts: BTreeSet<HostId> = late.map(|granted| granted.host).collect();
        hosts.into_iter().for_each(|host| self.tell(host, HostMsg::Wake));
    }

    /// The leases of a host that have not ended.
    pub(super) fn leases_of(&self, host: HostId) -> Vec<Lease> {
        let leases = self.leases.values().filter(|granted| granted.host == host);
        leases.map(|granted| Lease::clone(&granted.lease)).collect()
    }

    /// The place of a lease's address is free, whoever else says so too.
    pub(super) fn leave_address(&self, lease: &Lease, ended_at: Option<Timestamp>) {
        let Some(address) = lease.address else { return };
        if let Some(owner) = self.routes.borrow().address(address) {
            // An owner that is restarting has no places taken.
            owner.send_message(AddressMsg::Left { address, lease: lease.id, ended_at }).ok();
        }
    }

    // Errands: robots.txt hops between hosts (H2).

    /// A robots.txt of ours redirects to another host: that host fetches it, on its own clock.
    pub(super) fn send_errand(&mut self, errand: Errand) {
        let target = errand.url.host_key();
        let for_host = errand.for_host.clone();
        let shard = self.routes.borrow().route(&target).map(|route| route.shard.clone());
        if shard.is_none_or(|shard| shard.send_message(ShardMsg::RunErrand(errand)).is_err()) {
            self.errand_ended(&for_host, None);
        }
    }

    /// Another host's robots.txt redirects to a host of ours.
    pub(super) fn run_errand(&mut self, errand: Errand) {
        let key = errand.url.host_key();
        if let Some(reason) = self.shut_out(&key) {
            return self.refuse_errand(errand, reason);
        }
        let host = self.host_id(&key);
        if !self.residents.contains_key(&host) && !self.waking.contains_key(&host) {
            self.ensure_host(&key);
        }
        self.tell(host, HostMsg::RunErrand(errand));
    }

    /// A host that no URL has named yet gets its row, so that its clock is kept.
    fn ensure_host(&mut self, key: &HostKey) {
        let (id, key) = (self.host_id(key), key.clone());
        self.waking.entry(id).or_default();
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let read = async {
                    let robots = store.robots(id).await?;
                    let found = store.host(id).await?;
                    let (record, counts) =
                        found.unwrap_or_else(|| (HostRecord::new(key), HostCounts::default()));
                    Ok(Some(Box::new(HostRead { record, counts, robots })))
                };
                ShardMsg::Store(StoreReply::HostRead(id, read.await.map_err(fault)))
            });
        });
    }

    /// An errand that a host of ours ran has ended: the host it was for hears of it.
    pub(super) fn answer_errand(&self, for_host: HostKey, completion: Box<Completion>) {
        let route = self.routes.borrow().route(&for_host).map(|route| route.shard.clone());
        if let Some(shard) = route {
            let answer = ShardMsg::ErrandEnded { for_host, completion: Some(completion) };
            // A shard that is restarting asks again when its host's deadline passes.
            shard.send_message(answer).ok();
        }
    }

    /// An errand of a host of ours has ended, or could not be sent: then its deadline decides.
    pub(super) fn errand_ended(&mut self, for_host: &HostKey, completion: Option<Box<Completion>>) {
        if let Some(completion) = completion {
            let host = self.host_id(for_host);
            self.tell(host, HostMsg::ErrandEnded(completion));
        }
    }
}
