//! What operators ask and order.

use std::collections::BTreeMap;
use std::sync::Arc;

use ractor::ActorProcessingErr;

use super::commit::Then;
use super::exclusions::shown_shut;
use super::recover::PAUSED_ROW;
use super::state::{Closing, Shard};
use super::view::held_back;
use crate::frontier::host::robots_view;
use crate::policy::change::Change;
use crate::policy::exclusion::{self, Exclusions};
use crate::policy::normalise;
use crate::policy::robots::RobotsState;
use crate::protocol::shard::{
    HostDetail, HostFilter, HostOrder, HostPage, HostSummary, ParkedHost, StoreReply,
};
use crate::protocol::{Answer, HostMsg, HostPhase, HostView, ShardMsg};
use crate::storage::{ShardStore, StoreError};
use crate::types::{
    CrawlEvent, CrawlUrl, DeadLetter, EventSeq, HostCounts, HostId, HostKey, HostOverrides,
    HostRecord, Reason, Timestamp, UrlId, UrlView, in_full,
};

/// URLs of one host with the same hash that are looked at.
const COLLISIONS_LOOKED_AT: u8 = 16;

impl Shard {
    /// An answer of the store.
    pub(super) fn store_replied(&mut self, reply: StoreReply) -> Result<(), ActorProcessingErr> {
        if matches!(self.closing, Closing::Closed) {
            return Ok(());
        }
        match reply.of_read() {
            Some(Err(failure)) => self.read_failed(&failure.clone())?,
            Some(Ok(())) => self.unreadable = None,
            None => {}
        }
        match reply {
            StoreReply::Written(result) => self.written(result)?,
            StoreReply::Flushed(result) => self.flushed(result)?,
            StoreReply::AdmissionRead(read) => self.admission_read(read),
            StoreReply::HostRead(host, read) => self.host_read(host, read),
            StoreReply::WindowRead(host, actor, request, read) => {
                self.window_read(host, actor, request, read);
            }
            StoreReply::DueRead(read) => self.due_read(read),
            StoreReply::SleepersRead(host, read) => self.sleepers_read(host, read),
            StoreReply::ToParseRead(read) => self.backlog_read(read),
            StoreReply::FilterRead(after, read) => self.filter_read(after, read),
            StoreReply::LiftedRead(number, read) => self.lifted_read(number, read),
            StoreReply::DeadRead(read, answer) => self.dead_read(read, answer),
            StoreReply::OrderRead(order, row, answer) => self.order_read(order, row, answer),
        }
        Ok(())
    }

    /// Stop granting, or go on; a restart does not forget it.
    pub(super) fn pause(&mut self, paused: bool, answer: Answer<()>) {
        self.paused = paused;
        self.put([Change::PutMeta(PAUSED_ROW, vec![u8::from(paused)])]);
        self.hurry();
        self.when_durable(Then::Obeyed(answer));
    }

    /// Stop granting for good.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }

    /// Another configuration for every resident host; sleeping ones get it when they wake.
    pub(super) fn reload(&mut self) {
        let settings = self.settings();
        self.domains.set_rules(settings.domain);
        let hosts: Vec<(HostId, HostKey)> = self
            .residents
            .iter()
            .map(|(id, resident)| (*id, resident.record.key.clone()))
            .collect();
        for (id, key) in hosts {
            self.tell(id, HostMsg::Reload((settings.host)(&key)));
        }
    }

    /// F11: what an operator sets for one host; durable when answered.
    pub(super) fn order(&mut self, order: HostOrder, answer: Answer<Option<HostOverrides>>) {
        let id = self.host_id(&order.host);
        let resident = self.residents.get(&id).map(|resident| &resident.record.overrides);
        if let Some(before) = self.last_order(id).or(resident) {
            let overrides = applied(&order, before);
            return self.give_order(id, overrides, answer);
        }
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let row = store.host(id).await.ok().flatten().map(Box::new);
                ShardMsg::Store(StoreReply::OrderRead(order, row, answer))
            });
        });
    }

    /// What an order that the host has not taken yet makes of its overrides.
    fn last_order(&self, host: HostId) -> Option<&HostOverrides> {
        let mut orders = self.ordered.iter().rev().filter(|(id, ..)| *id == host);
        orders.next().map(|(_, overrides, _)| overrides)
    }

    fn order_read(
        &mut self,
        order: HostOrder,
        row: Option<Box<(HostRecord, HostCounts)>>,
        answer: Answer<Option<HostOverrides>>,
    ) {
        let id = self.host_id(&order.host);
        match row.filter(|row| row.0.key == order.host) {
            Some(row) => {
                let resident = self.residents.get(&id).map(|resident| &resident.record.overrides);
                let before = self.last_order(id).or(resident).unwrap_or(&row.0.overrides);
                let overrides = applied(&order, before);
                self.give_order(id, overrides, answer);
            }
            None => answer.send(None),
        }
    }

    fn give_order(
        &mut self,
        id: HostId,
        overrides: HostOverrides,
        answer: Answer<Option<HostOverrides>>,
    ) {
        self.tell(id, HostMsg::Order(overrides.clone()));
        self.ordered.push((id, overrides, answer));
    }

    /// A host has taken an order: its row is in the next batch.
    pub(super) fn order_taken(&mut self, host: HostId, record: &HostRecord) {
        if let Some(first) = self.ordered.iter().position(|(id, ..)| *id == host) {
            let (_, _, answer) = self.ordered.remove(first);
            self.failures.remove(&host);
            self.hurry();
            self.when_durable(Then::Ordered(answer, record.overrides.clone()));
        }
    }

    /// One URL, with its last visit and its lease.
    pub(super) fn look_up_url(
        &self,
        url: CrawlUrl,
        answer: Answer<Result<Option<Box<UrlView>>, String>>,
    ) {
        let host = self.host_id(&url.host_key());
        let leases: Vec<(UrlId, crate::types::LeaseId)> = self
            .leases
            .values()
            .map(|granted| (granted.lease.entry.id, granted.lease.id))
            .collect();
        let store = self.store.clone();
        tokio::spawn(async move {
            let found = find_url(&store, host, &url).await.map_err(|error| in_full(&error));
            answer.send(found.map(|view| {
                view.map(|mut view| {
                    view.lease =
                        leases.iter().find(|(id, _)| *id == view.id).map(|(_, lease)| *lease);
                    Box::new(view)
                })
            }));
        });
    }

    /// One host: a resident one speaks for itself, another one's row does.
    pub(super) fn look_up_host(
        &mut self,
        key: HostKey,
        answer: Answer<Result<Option<Box<HostDetail>>, String>>,
    ) {
        let id = self.host_id(&key);
        let settings = (self.settings().host)(&key);
        let shard = self.id;
        let restarts = self.failures.get(&id).copied().unwrap_or(0);
        let address = self.leases.values().filter(|granted| granted.host == id);
        let address: Vec<std::net::IpAddr> =
            address.filter_map(|granted| granted.lease.address).collect();
        let detail = move |view: HostView, counts: HostCounts, resident: bool| HostDetail {
            view,
            queued: counts.queued,
            urls: counts,
            resident,
            restarts,
            shard,
            address: address.clone(),
        };
        if let Some(resident) = self.residents.get(&id) {
            let (counts, held, now) = (resident.counts, resident.reason.clone(), self.now());
            let shut = self.shut_out(&key);
            let port = Answer::to(move |view: Option<Box<HostView>>| {
                let view = view.map(|mut view| {
                    held_back(&mut view, held, now);
                    shown_shut(shut.as_ref(), &mut view.state, &mut view.reason);
                    Box::new(detail(*view, counts, true))
                });
                answer.send(view.map(Some).ok_or_else(|| "the host is restarting".to_owned()));
            });
            return self.tell(id, HostMsg::Observe(port));
        }
        let (store, epoch) = (self.store.clone(), self.store.epoch().0);
        let now = self.now();
        let held = self.domains.refusal(key.domain(), now);
        let shut = self.shut_out(&key);
        tokio::spawn(async move {
            let read = async {
                let Some((record, counts)) = store.host(id).await? else { return Ok(None) };
                if record.key != key {
                    return Ok(None);
                }
                let robots = store.robots(id).await?;
                let robots = robots
                    .map(|robots| RobotsState::from_record(&robots, &settings.robots.product))
                    .unwrap_or_default();
                let mut view = resting_view(&record, counts, &robots, now);
                let configured = settings.politeness.daily_pages;
                view.budget = record.overrides.daily_pages.unwrap_or(configured);
                view.epoch = epoch;
                held_back(&mut view, held.filter(|_| counts.queued > 0), now);
                shown_shut(shut.as_ref(), &mut view.state, &mut view.reason);
                Ok::<_, StoreError>(Some(Box::new(detail(view, counts, false))))
            };
            answer.send(read.await.map_err(|error| in_full(&error)));
        });
    }

    /// Hosts that have seeds: the scope of this run goes on from them.
    pub(super) fn list_seeded(&self, answer: Answer<Result<Vec<HostKey>, String>>) {
        let store = self.store.clone();
        tokio::spawn(async move {
            answer.send(store.seeded_hosts().await.map_err(|error| in_full(&error)));
        });
    }

    /// A page of hosts, in the order of their ids.
    pub(super) fn list_hosts(&self, filter: HostFilter, answer: Answer<Result<HostPage, String>>) {
        let now = self.now();
        let residents: BTreeMap<HostId, HostSummary> =
            self.residents.iter().map(|(id, resident)| (*id, resident.summary(now))).collect();
        let (store, waits) = (self.store.clone(), self.long_waits.clone());
        let exclusions = Arc::clone(&self.exclusions);
        tokio::spawn(async move {
            let known = Known { residents, waits, exclusions, now };
            let page = page_of_hosts(&store, &filter, &known).await;
            answer.send(page.map_err(|error| in_full(&error)));
        });
    }

    /// A page of dead letters.
    pub(super) fn list_dead(
        &self,
        after: Option<UrlId>,
        limit: u16,
        answer: Answer<Result<Vec<DeadLetter>, String>>,
    ) {
        let store = self.store.clone();
        tokio::spawn(async move {
            let letters = store.dead(after, usize::from(limit)).await;
            answer.send(letters.map_err(|error| in_full(&error)));
        });
    }

    /// O5: durable events after a place in the outbox.
    pub(super) fn read_events(
        &self,
        after: EventSeq,
        limit: u16,
        answer: Answer<Result<Vec<(EventSeq, CrawlEvent)>, String>>,
    ) {
        let store = self.store.clone();
        tokio::spawn(async move {
            let events = store.events(after, usize::from(limit)).await;
            answer.send(events.map_err(|error| in_full(&error)));
        });
    }
}

impl super::state::Resident {
    fn summary(&self, now: Timestamp) -> HostSummary {
        let state = self.phase_at(now);
        let reason = self.reason.as_ref().filter(|_| state != HostPhase::Ready);
        let held = reason.filter(|_| state == HostPhase::Waiting).and_then(Reason::until);
        HostSummary {
            host_key: self.record.key.clone(),
            state,
            reason: reason.map(ToString::to_string),
            next_allowed_at: Some(self.record.next_allowed_at).max(held),
            in_flight: u32::from(self.phase == HostPhase::InFlight),
            queued: self.counts.queued,
            pages_today: self.record.requests_today,
        }
    }
}

fn applied(order: &HostOrder, before: &HostOverrides) -> HostOverrides {
    HostOverrides {
        paused: order.paused.unwrap_or(before.paused),
        min_delay: order.min_delay.unwrap_or(before.min_delay),
        max_in_flight: order.max_in_flight.unwrap_or(before.max_in_flight),
        daily_pages: order.daily_pages.unwrap_or(before.daily_pages),
        version: before.version,
    }
}

pub(super) async fn find_url(
    store: &ShardStore,
    host: HostId,
    url: &CrawlUrl,
) -> Result<Option<UrlView>, StoreError> {
    let recognised = normalise::recognised(url);
    let hash = normalise::url_hash(&recognised);
    for disambiguator in 0..COLLISIONS_LOOKED_AT {
        let id = UrlId { host, hash, disambiguator };
        let Some(record) = store.url(id).await? else { return Ok(None) };
        if normalise::recognised(&record.url) == recognised {
            let visit = store.visit(id).await?;
            return Ok(Some(UrlView { id, record, visit, lease: None }));
        }
    }
    Ok(None)
}

/// What a shard has in memory about its hosts, for a list of them.
struct Known {
    residents: BTreeMap<HostId, HostSummary>,
    waits: BTreeMap<HostId, ParkedHost>,
    exclusions: Arc<Exclusions>,
    now: Timestamp,
}

impl Known {
    /// A resident host as it stands, one at rest by its row, and by what it was put to rest for.
    fn summary(&self, id: HostId, record: &HostRecord, counts: HostCounts) -> HostSummary {
        let mut summary = self.waiting(id, record, counts);
        let shut = self.exclusions.whole_host(&record.key, self.now).map(exclusion::reason);
        shown_shut(shut.as_ref(), &mut summary.state, &mut summary.reason);
        summary
    }

    fn waiting(&self, id: HostId, record: &HostRecord, counts: HostCounts) -> HostSummary {
        if let Some(summary) = self.residents.get(&id) {
            return summary.clone();
        }
        let mut summary = HostSummary::at_rest(record, counts, self.now);
        if let (HostPhase::Ready | HostPhase::Waiting, Some(wait)) =
            (summary.state, self.waits.get(&id))
        {
            summary.state = HostPhase::Waiting;
            summary.reason = Some(wait.reason.clone());
            summary.next_allowed_at = wait.until.max(summary.next_allowed_at);
        }
        summary
    }
}

async fn page_of_hosts(
    store: &ShardStore,
    filter: &HostFilter,
    known: &Known,
) -> Result<HostPage, StoreError> {
    let limit = usize::from(filter.limit.max(1));
    let mut page = HostPage { hosts: Vec::new(), next: filter.after };
    loop {
        let rows = store.hosts(page.next, limit).await?;
        let last_page = rows.len() < limit;
        for (id, record, counts) in rows {
            if page.hosts.len() == limit {
                return Ok(page);
            }
            page.next = Some(id);
            let summary = known.summary(id, &record, counts);
            let phase = filter.phase.is_none_or(|phase| phase == summary.state);
            let domain = filter.domain.as_ref();
            if phase && domain.is_none_or(|domain| record.key.domain() == *domain) {
                page.hosts.push(summary);
            }
        }
        if last_page {
            page.next = None;
            return Ok(page);
        }
    }
}

fn resting_view(
    record: &HostRecord,
    counts: HostCounts,
    robots: &RobotsState,
    now: Timestamp,
) -> HostView {
    let HostSummary { host_key, state, reason, next_allowed_at, in_flight, pages_today, .. } =
        HostSummary::at_rest(record, counts, now);
    HostView {
        host_key,
        state,
        reason,
        next_allowed_at,
        delay_seconds: record.delay,
        delay_set_by: record.set_by,
        in_flight,
        pages_today,
        budget: 0,
        robots: robots_view(robots),
        backoff: record.backoff,
        allowance: record.overrides.clone(),
        window: 0,
        epoch: 0,
    }
}
