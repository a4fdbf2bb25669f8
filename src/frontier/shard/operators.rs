//! What operators ask and order.

use ractor::ActorProcessingErr;

use super::commit::Then;
use super::recover::PAUSED_ROW;
use super::state::{Closing, Shard};
use crate::policy::change::Change;
use crate::policy::normalise;
use crate::protocol::shard::{HostOrder, StoreReply};
use crate::protocol::{Answer, HostMsg, ShardMsg};
use crate::storage::{ShardStore, StoreError};
use crate::types::{
    CrawlEvent, CrawlUrl, DeadLetter, EventSeq, HostCounts, HostId, HostKey, HostOverrides,
    HostRecord, UrlId, UrlView, in_full,
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
            StoreReply::ForgetRead(id, read) => self.forget_read(id, read),
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

    /// Hosts that have seeds: the scope of this run goes on from them.
    pub(super) fn list_seeded(&self, answer: Answer<Result<Vec<HostKey>, String>>) {
        let store = self.store.clone();
        tokio::spawn(async move {
            answer.send(store.seeded_hosts().await.map_err(|error| in_full(&error)));
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
            return Ok(Some(UrlView { id, record, visit, lease: None, held: None }));
        }
    }
    Ok(None)
}
