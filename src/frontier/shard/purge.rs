//! R5: rows of what is being removed lose what visits brought.
//!
//! - F-1 From the order on nothing is added: ends of exchanges count as cut, pages go to no
//!   parser, payloads and texts are not remembered, hosts that are covered whole wake without
//!   their files.
//! - F-2 Rows are cleared when nothing under way knows of the content any more: ends with hosts,
//!   pages with parsers, hosts with rules in memory.
//! - F-3 A row that is written while it is read for this is read once more.
//!
//! Entries of queues keep their validators; hosts leave them out when they grant (E-4).

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use super::commit::Then;
use super::state::{Shard, fault};
use crate::policy::change::Change;
use crate::policy::exclusion::{self, covers_host, covers_stored, touches};
use crate::policy::scope::ScopeRule;
use crate::protocol::purge::{ForgetRead, VisitRows};
use crate::protocol::shard::{EndedReport, StoreFault, StoreReply};
use crate::protocol::{Answer, HostMsg, ShardMsg};
use crate::storage::{ShardStore, StoreError};
use crate::types::{
    CrawlEvent, Happening, HostId, PurgeRecord, Reason, ShardId, Subject, Timestamp, ToParse,
    UrlId, UrlVersion, VisitRecord,
};

/// Between two looks at what is under way.
const FORGETTING_APART: Duration = Duration::from_millis(100);
/// Rows looked through at once.
const ROWS_AT_ONCE: usize = 1000;
/// The shard that tells of a purge, as of an exclusion.
const TELLS: ShardId = ShardId(0);

/// Rows being cleared for one order.
#[derive(Debug)]
pub(super) struct Forgetting {
    rule: ScopeRule,
    stage: Stage,
    /// Hosts that the rule touches and that are not done, and the last host that was seen; `None`
    /// where there are no more.
    hosts: VecDeque<HostId>,
    seen: Option<HostId>,
    /// Visits that were written since the read under way was asked for.
    touched: BTreeSet<UrlId>,
    urls: u64,
    answers: Vec<Answer<u64>>,
}

/// What is looked through, and the last row seen.
#[derive(Clone, Debug)]
enum Stage {
    Waiting,
    ToParse(Option<(UrlId, UrlVersion)>),
    Hosts(Option<HostId>),
    /// Visits of a host's URLs: first those that were written while they were read.
    Visits {
        host: HostId,
        after: Option<UrlId>,
        again: Vec<UrlId>,
    },
    Payloads(Option<String>),
    Texts(Option<u128>),
}

impl Shard {
    /// The order is known from here on, or how far it is.
    pub(super) fn put_purge(&mut self, record: PurgeRecord, answer: Answer<()>) {
        let known = self.exclusions.purge(&record.id);
        if known.is_some_and(|known| known.is_further_than(&record)) {
            // Told by somebody who had not heard yet; what is known is durable soon.
        } else if known != Some(&record) {
            let was_done = known.is_some_and(|known| known.done_at == record.done_at);
            if self.id == TELLS && record.done_at.is_some() && !was_done {
                self.tell_purged(&record);
            }
            self.set_exclusions(self.exclusions.with_purge(record.clone()), &record.rule);
            self.put([Change::PutPurge(Box::new(record))]);
        }
        self.hurry();
        self.when_durable(Then::Obeyed(answer));
    }

    fn tell_purged(&mut self, record: &PurgeRecord) {
        let version = u64::try_from(record.ordered_at.as_millis()).unwrap_or(0);
        let subject = Subject::Rule { rule: record.rule.clone(), version };
        let happening = Happening::Purged {
            id: record.id.clone(),
            removed: record.removed,
            urls: record.urls,
            unreadable: record.unreadable,
        };
        self.put([Change::Emit(Box::new(CrawlEvent { at: self.now(), subject, happening }))]);
    }

    /// All orders.
    pub(super) fn list_purges(&self) -> Vec<PurgeRecord> {
        self.exclusions.purges().cloned().collect()
    }

    /// Rows of what the order covers are cleared; answered with the number of their URLs.
    pub(super) fn forget(&mut self, id: String, answer: Answer<u64>) {
        if let Some(forgetting) = self.forgetting.get_mut(&id) {
            return forgetting.answers.push(answer);
        }
        let rule = self.exclusions.purge(&id).map(|order| exclusion::parse_rule(&order.rule));
        // Whoever asks without an order hears nothing, and asks again.
        let Some(Ok(rule)) = rule else { return };
        let forgetting = Forgetting {
            rule,
            stage: Stage::Waiting,
            hosts: VecDeque::new(),
            seen: None,
            touched: BTreeSet::new(),
            urls: 0,
            answers: vec![answer],
        };
        self.forgetting.insert(id, forgetting);
        self.nudge_forgotten();
    }

    /// F-2: hosts that are covered whole are to rest, which one that waits for another host's
    /// answer finds when it looks at the clock.
    pub(super) fn nudge_forgotten(&mut self) {
        for host in self.forgotten_residents() {
            self.tell(host, HostMsg::Wake);
        }
    }

    fn forgotten_residents(&self) -> Vec<HostId> {
        let waiting = self.forgetting.values().filter(|one| matches!(one.stage, Stage::Waiting));
        let rules: Vec<&ScopeRule> = waiting.map(|forgetting| &forgetting.rule).collect();
        let covered = self.residents.iter().filter(|(_, resident)| {
            rules.iter().any(|rule| covers_host(rule, &resident.record.key))
        });
        covered.map(|(host, _)| *host).collect()
    }

    /// F-2: begins when nothing under way knows of the content.
    pub(super) fn go_on_forgetting(&mut self) {
        let now = self.now();
        if self.next_forgetting().is_none_or(|at| at > now) {
            return;
        }
        self.forgetting_looked_at = now;
        let waiting = self.forgetting.iter();
        let waiting = waiting.filter(|(_, one)| matches!(one.stage, Stage::Waiting));
        let ready = waiting.filter(|(_, one)| !self.is_under_way(&one.rule));
        let ready: Vec<String> = ready.map(|(id, _)| id.clone()).collect();
        for id in ready {
            self.texts.retain(|_, first| {
                self.forgetting.get(&id).is_none_or(|one| !covers_stored(&one.rule, &first.url))
            });
            self.texts_in_order.retain(|text| self.texts.contains_key(text));
            self.forget_on(id, Stage::ToParse(None));
        }
    }

    /// When those that wait are looked at again: it takes a walk through all that is under way.
    pub(super) fn next_forgetting(&self) -> Option<Timestamp> {
        let waits = self.forgetting.values().any(|one| matches!(one.stage, Stage::Waiting));
        waits.then(|| self.forgetting_looked_at + FORGETTING_APART)
    }

    fn is_under_way(&self, rule: &ScopeRule) -> bool {
        self.ends.values().any(|completion| covers_stored(rule, &completion.url))
            || self.parsing.values().any(|row| covers_stored(rule, &row.url))
            || self.residents.values().any(|host| covers_host(rule, &host.record.key))
    }

    /// F-3: rows of visits that are written.
    pub(super) fn note_touched(&mut self, change: &Change) {
        if let Change::PutVisit(id, _) | Change::PutFailing(id, _) | Change::DropFailing(id) =
            change
        {
            for forgetting in self.forgetting.values_mut() {
                if matches!(forgetting.stage, Stage::Visits { host, .. } if host == id.host) {
                    forgetting.touched.insert(*id);
                }
            }
        }
    }

    fn forget_on(&mut self, id: String, stage: Stage) {
        let Some(forgetting) = self.forgetting.get_mut(&id) else { return };
        forgetting.stage = stage.clone();
        forgetting.touched.clear();
        let rule = forgetting.rule.clone();
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let read = look(&store, &rule, stage).await.map(Box::new);
                ShardMsg::Store(StoreReply::ForgetRead(id, read.map_err(fault)))
            });
        });
    }

    /// A page of rows: those that the rule covers are cleared, then the next page is read.
    pub(super) fn forget_read(&mut self, id: String, read: Result<Box<ForgetRead>, StoreFault>) {
        let Some(forgetting) = self.forgetting.get_mut(&id) else { return };
        let stage = forgetting.stage.clone();
        let Ok(read) = read else { return self.forget_on(id, stage) };
        let next = match *read {
            ForgetRead::ToParse(rows, last) => {
                self.drop_to_parse(rows);
                last.map_or(Some(Stage::Hosts(None)), |last| Some(Stage::ToParse(Some(last))))
            }
            ForgetRead::Hosts(hosts, last) => {
                forgetting.hosts.extend(hosts.iter().map(|(host, _)| *host));
                forgetting.seen = last;
                let next = forgetting.next_host();
                let whole = hosts.into_iter().filter(|(_, whole)| *whole);
                whole.for_each(|(host, _)| self.forget_host(host));
                Some(next)
            }
            ForgetRead::Visits(rows, last) => self.forget_visits(&id, rows, last),
            ForgetRead::Payloads(digests, last) => {
                self.put(digests.into_iter().map(Change::DropPayload));
                Some(last.map_or(Stage::Texts(None), |last| Stage::Payloads(Some(last))))
            }
            ForgetRead::Texts(hashes, last) => {
                self.put(hashes.into_iter().map(Change::DropText));
                last.map(|last| Stage::Texts(Some(last)))
            }
        };
        match next {
            Some(stage) => self.forget_on(id, stage),
            None => self.forgotten(&id),
        }
    }

    fn forgotten(&mut self, id: &str) {
        let Some(Forgetting { urls, answers, .. }) = self.forgetting.remove(id) else { return };
        self.hurry();
        answers.into_iter().for_each(|answer| self.when_durable(Then::Forgotten(answer, urls)));
    }

    /// What the host's files say goes with the whole host.
    fn forget_host(&mut self, host: HostId) {
        self.world.snapshots.remove(host);
        self.put([Change::DropRobots(host)]);
    }

    /// Visits lose what they brought; those that were written meanwhile are read once more (F-3).
    fn forget_visits(
        &mut self,
        id: &str,
        rows: Vec<VisitRows>,
        last: Option<UrlId>,
    ) -> Option<Stage> {
        let forgetting = self.forgetting.get_mut(id)?;
        let Stage::Visits { host, after, again } = forgetting.stage.clone() else { return None };
        let reason = Reason::Purged { id: id.to_owned() };
        let (mut changes, mut redo) = (Vec::new(), Vec::new());
        for (url, visit, failing) in rows {
            if forgetting.touched.contains(&url) {
                redo.push(url);
                continue;
            }
            let forget = |visit: VisitRecord| {
                let mut visit = visit;
                visit.forget(reason.clone()).then(|| Box::new(visit))
            };
            let visit = visit.and_then(forget).map(|row| Change::PutVisit(url, row));
            let failing = failing.and_then(forget).map(|row| Change::PutFailing(url, row));
            forgetting.urls += u64::from(visit.is_some() || failing.is_some());
            changes.extend(visit.into_iter().chain(failing));
        }
        let next = match (redo.is_empty(), again.is_empty(), last) {
            (false, _, last) => Stage::Visits { host, after: last.or(after), again: redo },
            (true, false, _) => Stage::Visits { host, after, again: Vec::new() },
            (true, true, Some(last)) => {
                Stage::Visits { host, after: Some(last), again: Vec::new() }
            }
            (true, true, None) => forgetting.next_host(),
        };
        self.put(changes);
        Some(next)
    }

    /// F-1: pages of what is being removed lose their rows; who had read them before sees that.
    pub(super) fn drop_to_parse(&mut self, rows: impl IntoIterator<Item = ToParse>) {
        let keys: Vec<_> = rows.into_iter().map(|row| (row.id, row.version)).collect();
        if keys.is_empty() {
            return;
        }
        for (url, version) in &keys {
            self.dropped.insert((*url, *version), false);
            self.put([Change::DropToParse(*url, *version)]);
        }
        self.when_written(Then::Committed(Answer::ignored(), keys));
    }

    /// F-1: an exchange whose response is being removed ended as if the exclusion had cut it. What
    /// the site asked for stands (I3).
    pub(super) fn without_removed(&self, report: EndedReport) -> EndedReport {
        let Some(granted) = self.leases.get(&report.completion.lease) else { return report };
        let Some(order) = self.exclusions.purging(&granted.lease.entry.url) else { return report };
        let reason = Reason::Excluded { id: order.id.clone() };
        let completion = report.completion.without_content(&granted.lease, reason);
        EndedReport { completion, response: None, permit: report.permit }
    }
}

impl Forgetting {
    /// The next of the hosts found, or of those behind the last one seen.
    fn next_host(&mut self) -> Stage {
        match (self.hosts.pop_front(), self.seen) {
            (Some(host), _) => Stage::Visits { host, after: None, again: Vec::new() },
            (None, Some(seen)) => Stage::Hosts(Some(seen)),
            (None, None) => Stage::Payloads(None),
        }
    }
}

/// A page of rows of a stage: what of it the rule covers, and its last row.
async fn look(
    store: &ShardStore,
    rule: &ScopeRule,
    stage: Stage,
) -> Result<ForgetRead, StoreError> {
    Ok(match stage {
        Stage::Waiting => ForgetRead::ToParse(Vec::new(), None),
        Stage::ToParse(after) => {
            let mut rows = store.to_parse(after, ROWS_AT_ONCE).await?;
            let last = rows.last().map(|row| (row.id, row.version));
            rows.retain(|row| covers_stored(rule, &row.url));
            ForgetRead::ToParse(rows, last)
        }
        Stage::Hosts(after) => {
            let hosts = store.hosts(after, ROWS_AT_ONCE).await?;
            let last = hosts.last().map(|(id, ..)| *id);
            let touched = hosts.into_iter().filter(|(_, record, _)| touches(rule, &record.key));
            let hosts = touched.map(|(id, record, _)| (id, covers_host(rule, &record.key)));
            ForgetRead::Hosts(hosts.collect(), last)
        }
        Stage::Visits { again, .. } if !again.is_empty() => {
            ForgetRead::Visits(store.visit_rows(again).await?, None)
        }
        Stage::Visits { host, after, .. } => {
            let urls = store.host_urls(host, after, ROWS_AT_ONCE).await?;
            let last = urls.last().map(|(id, _)| *id);
            let covered = urls.into_iter().filter(|(_, row)| covers_stored(rule, &row.url));
            let covered = covered.map(|(id, _)| id).collect();
            ForgetRead::Visits(store.visit_rows(covered).await?, last)
        }
        Stage::Payloads(after) => {
            let rows = store.payloads(after, ROWS_AT_ONCE).await?;
            let last = rows.last().map(|(digest, _)| digest.clone());
            let covered = rows.into_iter().filter(|(_, row)| covers_stored(rule, &row.url));
            ForgetRead::Payloads(covered.map(|(digest, _)| digest).collect(), last)
        }
        Stage::Texts(after) => {
            let rows = store.texts(after, ROWS_AT_ONCE).await?;
            let last = rows.last().map(|(hash, _)| *hash);
            let covered = rows.into_iter().filter(|(_, row)| covers_stored(rule, &row.url));
            ForgetRead::Texts(covered.map(|(hash, _)| hash).collect(), last)
        }
    })
}
