//! R5: exclusions made at runtime, in force from the message that brings them.
//!
//! - X-1 An exclusion is in force before the next grant, and answered when it is durable.
//! - X-2 A host that is excluded whole is offered nothing, and neither is its robots.txt asked for.
//!   Of one that is excluded in part what is excluded goes to sleep.
//! - X-3 The row of an exclusion that is gone goes last, with what has to be judged again: a crash
//!   before that leaves it in force, and nothing sleeps for a rule that nobody has.

use std::sync::Arc;

use super::commit::Then;
use super::state::{Shard, fault};
use super::view::of_reason;
use crate::policy::change::Change;
use crate::policy::exclusion::{self, Exclusions};
use crate::policy::host::Errand;
use crate::policy::scope::ScopeRule;
use crate::protocol::shard::{StoreFault, StoreReply};
use crate::protocol::{Answer, HostMsg, HostPhase, ShardMsg};
use crate::types::{
    Completion, CrawlEvent, ExclusionRecord, Happening, HostCounts, HostId, HostKey, HostRecord,
    Lease, LeaseId, LeaseKind, Outcome, QueueEntry, Reason, ShardId, Subject, Timestamp, UrlId,
    UrlVersion,
};

/// Hosts looked through at once.
const HOSTS_AT_ONCE: usize = 1000;
/// The shard that tells of an exclusion: every shard has all of them, and one event is enough.
const TELLS: ShardId = ShardId(0);

/// An exclusion that is gone, while the hosts that it touched are looked for.
#[derive(Debug)]
pub(super) struct Lifting {
    id: String,
    rule: Option<ScopeRule>,
    /// The last host looked at.
    after: Option<HostId>,
    answers: Vec<Answer<()>>,
}

impl Shard {
    /// what the exclusion covers is granted no more.
    pub(super) fn exclude(&mut self, record: ExclusionRecord, answer: Answer<()>) {
        // Made anew while it was being lifted: it stays.
        self.lifting.retain(|_, lifting| lifting.id != record.id);
        if self.exclusions.get(&record.id) != Some(&record) {
            self.set_exclusions(self.exclusions.with(record.clone()), &record.rule);
            if self.id == TELLS {
                let version = u64::try_from(record.made_at.as_millis()).unwrap_or(0);
                let subject = Subject::Rule { rule: record.rule.clone(), version };
                let happening = Happening::Excluded { id: record.id.clone() };
                let event = CrawlEvent { at: self.now(), subject, happening };
                self.put([Change::Emit(Box::new(event))]);
            }
            self.put([Change::PutExclusion(Box::new(record))]);
        }
        self.hurry();
        self.when_durable(Then::Obeyed(answer));
    }

    /// What the exclusion covered may be granted again; hosts are looked for that wait for that.
    pub(super) fn lift_exclusion(&mut self, id: &str, answer: Answer<()>) {
        if let Some(lifting) = self.lifting.values_mut().find(|lifting| lifting.id == id) {
            return lifting.answers.push(answer);
        }
        let Some(record) = self.exclusions.get(id).cloned() else { return answer.send(()) };
        self.set_exclusions(self.exclusions.without(id), &record.rule);
        self.lifted += 1;
        let rule = exclusion::parse_rule(&record.rule).ok();
        let (id, answers) = (record.id, vec![answer]);
        self.lifting.insert(self.lifted, Lifting { id, rule, after: None, answers });
        self.read_lifted(self.lifted, None);
    }

    /// Those that have ended are lifted.
    pub(super) fn end_exclusions(&mut self, now: Timestamp) {
        if self.exclusions.next_end().is_some_and(|at| at <= now) {
            for id in self.exclusions.ended(now) {
                self.lift_exclusion(&id, Answer::ignored());
            }
        }
    }

    /// The node had other exclusions while this shard was down.
    pub(super) fn agree_on_exclusions(&mut self, wanted: Vec<ExclusionRecord>) {
        let known: Vec<String> = self.exclusions.all().map(|record| record.id.clone()).collect();
        let gone = known.iter().filter(|id| wanted.iter().all(|record| record.id != **id));
        gone.for_each(|id| self.lift_exclusion(id, Answer::ignored()));
        wanted.into_iter().for_each(|record| self.exclude(record, Answer::ignored()));
    }

    /// All that are in force.
    pub(super) fn list_exclusions(&self) -> Vec<ExclusionRecord> {
        self.exclusions.in_force(self.now()).cloned().collect()
    }

    /// Hosts that the rule touches hear of it; the others need not.
    pub(super) fn set_exclusions(&mut self, exclusions: Exclusions, rule: &str) {
        self.exclusions = Arc::new(exclusions);
        let Ok(rule) = exclusion::parse_rule(rule) else { return };
        let residents = self.residents.iter();
        let touched = residents.filter(|(_, host)| exclusion::touches(&rule, &host.record.key));
        let touched: Vec<HostId> = touched.map(|(id, _)| *id).collect();
        for host in touched {
            self.tell(host, HostMsg::Exclude(Arc::clone(&self.exclusions)));
        }
    }

    /// why nothing at all is asked of a host.
    pub(super) fn shut_out(&self, host: &HostKey) -> Option<Reason> {
        self.exclusions.whole_host(host, self.now()).map(exclusion::reason)
    }

    /// no offer; the host asks for none before the exclusion is gone.
    pub(super) fn keep_out(&mut self, host: HostId, reason: Reason) {
        self.ready.set(host, None);
        if let Some(resident) = self.residents.get_mut(&host) {
            resident.next_wake = None;
            resident.phase = HostPhase::Parked;
            resident.reason = Some(reason);
            // One more step, after which an idle host can go to rest.
            self.tell(host, HostMsg::Wake);
        }
    }

    /// A host of the store that is excluded whole is shown so.
    pub(super) fn note_shut_out(
        &mut self,
        host: HostId,
        record: &HostRecord,
        counts: HostCounts,
        reason: &Reason,
    ) {
        self.show_wait(host, of_reason(&record.key, Some(reason), None, counts.queued));
    }

    /// another host's robots.txt redirects to a host that is excluded.
    pub(super) fn refuse_errand(&self, errand: Errand, reason: Reason) {
        let now = self.now();
        let host = errand.url.host_key();
        let kind = LeaseKind::Robots { for_host: errand.for_host.clone(), hops: errand.hops };
        let entry = QueueEntry {
            id: UrlId { host: self.host_id(&host), hash: 0, disambiguator: 0 },
            version: UrlVersion(0),
            url: errand.url,
            depth: 0,
            band: 0,
            order: 0,
            attempts: 0,
            redirects: 0,
            validators: None,
            discovered_from: None,
        };
        let lease = Lease {
            id: LeaseId(0),
            kind,
            host,
            entry,
            epoch: self.store.epoch(),
            granted_at: now,
            not_before: now,
            expires_at: now,
            address: None,
        };
        let completion = Completion::failed(&lease, now, Outcome::Cancelled, reason);
        self.answer_errand(errand.for_host, Box::new(completion));
    }

    fn read_lifted(&mut self, number: u64, after: Option<HostId>) {
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let hosts = store.hosts(after, HOSTS_AT_ONCE).await;
                ShardMsg::Store(StoreReply::LiftedRead(number, hosts.map_err(fault)))
            });
        });
    }

    /// a page of hosts; after the last one the exclusion's row goes.
    pub(super) fn lifted_read(
        &mut self,
        number: u64,
        read: Result<Vec<(HostId, HostRecord, HostCounts)>, StoreFault>,
    ) {
        let Some(lifting) = self.lifting.get_mut(&number) else { return };
        let Ok(hosts) = read else {
            let after = lifting.after;
            return self.read_lifted(number, after);
        };
        let last = hosts.last().map(|(id, ..)| *id);
        let rule = lifting.rule.clone();
        lifting.after = last.or(lifting.after);
        for (id, record, counts) in hosts {
            if rule.as_ref().is_some_and(|rule| exclusion::touches(rule, &record.key)) {
                self.let_in(id, &record, counts);
            }
        }
        if last.is_some() {
            return self.read_lifted(number, last);
        }
        let Some(lifting) = self.lifting.remove(&number) else { return };
        self.put([Change::DropExclusion(lifting.id)]);
        self.hurry();
        lifting.answers.into_iter().for_each(|answer| self.when_durable(Then::Obeyed(answer)));
    }

    /// A host that an exclusion touched: its sleepers are judged again, and it is asked again.
    fn let_in(&mut self, id: HostId, record: &HostRecord, counts: HostCounts) {
        if let Some(resident) = self.residents.get(&id) {
            if resident.counts.sleeping > 0 {
                self.put([Change::PutUnjudged(id)]);
                self.judge_sleepers(id);
            }
            return;
        }
        self.long_waits.remove(&id);
        if counts.sleeping > 0 {
            self.put([Change::PutUnjudged(id)]);
            self.wake(id).wakes_sleepers = true;
        }
        if counts.queued > 0 {
            self.ready.hasten(id, self.may_be_asked_at(record).max(self.now()));
        }
    }

    /// The sleepers of a resident host are judged again; where that is under way, once more.
    pub(super) fn judge_sleepers(&mut self, host: HostId) {
        let Some(resident) = self.residents.get_mut(&host) else { return };
        if resident.sleepers_after.is_some() || resident.retiring.is_some() {
            resident.sleepers_again = true;
        } else {
            self.read_sleepers(host, None);
        }
    }

    /// A host that stays although it was told to retire: what was put off goes on.
    pub(super) fn judge_late_sleepers(&mut self, host: HostId) {
        let Some(resident) = self.residents.get_mut(&host) else { return };
        if resident.sleepers_again && resident.sleepers_after.is_none() {
            resident.sleepers_again = false;
            self.read_sleepers(host, None);
        }
    }

    /// All sleepers of a host are back in the queue, unless they are wanted once more.
    pub(super) fn sleepers_judged(&mut self, host: HostId) {
        match self.residents.get_mut(&host) {
            Some(resident) if resident.sleepers_again => {
                resident.sleepers_again = false;
                self.read_sleepers(host, None);
            }
            Some(_) | None => self.put([Change::DropUnjudged(host)]),
        }
    }
}

/// What a host is doing, where an exclusion may keep it from doing anything.
pub(super) fn phase_of(
    phase: HostPhase,
    reason: Option<Reason>,
    shut: Option<&Reason>,
) -> (HostPhase, Option<Reason>) {
    match (phase, shut) {
        (HostPhase::Ready | HostPhase::Waiting | HostPhase::Parked, Some(shut)) => {
            (HostPhase::Parked, Some(shut.clone()))
        }
        (phase, _) => (phase, reason),
    }
}
