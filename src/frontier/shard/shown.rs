//! Hosts and URLs as operators are shown them: one way for a list, for one host and for what holds
//! a URL, so that they never contradict each other.
//!
//! A host with an actor is shown by its last step, one at rest by its row; above both stand what
//! the shard knows: domains, waits it was put to rest for, exclusions.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::operators::find_url;
use super::state::{Resident, Shard};
use crate::frontier::host::robots_view;
use crate::frontier::settings::FrontierSettings;
use crate::policy::exclusion::Exclusions;
use crate::policy::robots::RobotsState;
use crate::protocol::at_rest::next_request;
use crate::protocol::shard::{HostDetail, HostFilter, HostPage, HostSummary, ParkedHost};
use crate::protocol::{Answer, HostMsg, HostPhase, HostView};
use crate::storage::{ShardStore, StoreError};
use crate::types::{
    CrawlUrl, HostCounts, HostId, HostKey, HostRecord, LeaseId, Reason, Timestamp, UrlId, UrlView,
    in_full, tally,
};

/// What a shard has in memory about its hosts.
struct Known {
    residents: BTreeMap<HostId, HostSummary>,
    waits: BTreeMap<HostId, ParkedHost>,
    /// What domains say of a request now, those that say anything.
    domains: BTreeMap<Box<str>, Reason>,
    exclusions: Arc<Exclusions>,
    /// What holds the whole crawl.
    crawl: Option<Reason>,
    settings: Arc<FrontierSettings>,
    /// I3: hosts count as just visited then.
    opened_at: Timestamp,
    now: Timestamp,
}

impl Known {
    /// A resident host as it stands, one at rest by its row, and by what it was put to rest for.
    fn summary(&self, id: HostId, record: &HostRecord, counts: HostCounts) -> HostSummary {
        let resident = self.residents.get(&id).cloned();
        let summary = resident.unwrap_or_else(|| self.at_rest(id, record, counts));
        summary.held_by(self.crawl.as_ref()).excluded(&self.exclusions, self.now)
    }

    fn at_rest(&self, id: HostId, record: &HostRecord, counts: HostCounts) -> HostSummary {
        let mut record = record.clone();
        record.visit_at(self.opened_at);
        let budget = self.budget(&record);
        let mut summary = HostSummary::at_rest(&record, counts, budget, self.now);
        let waits = matches!(summary.state, HostPhase::Ready | HostPhase::Waiting);
        if let Some(wait) = self.waits.get(&id).filter(|_| waits)
            && wait.until.is_none_or(|until| Some(until) > summary.next_allowed_at)
        {
            summary.state = HostPhase::Waiting;
            summary.reason = Some(wait.reason.clone());
            summary.next_allowed_at = wait.until.max(summary.next_allowed_at);
        }
        if let Some(held) = self.domains.get(record.key.domain()).filter(|_| waits)
            && held.until() > summary.next_allowed_at
        {
            summary.state = HostPhase::Waiting;
            summary.reason = Some(held.to_string());
            summary.next_allowed_at = held.until();
        }
        summary
    }

    /// Requests a day.
    fn budget(&self, record: &HostRecord) -> u64 {
        let configured = || (self.settings.host)(&record.key).politeness.daily_pages;
        record.overrides.daily_pages.unwrap_or_else(configured)
    }
}

impl Shard {
    /// What is known of one host, or of all.
    fn known(&self, one: Option<(HostId, &HostKey)>) -> Known {
        let now = self.now();
        let mut in_flight: BTreeMap<HostId, usize> = BTreeMap::new();
        for granted in self.leases.values() {
            *in_flight.entry(granted.host).or_default() += 1;
        }
        let wanted = |id: &HostId| one.is_none_or(|(host, _)| host == *id);
        let residents = self.residents.iter().filter(|(id, _)| wanted(id));
        let residents = residents.map(|(id, resident)| {
            let granted = in_flight.get(id).copied().unwrap_or(0);
            (*id, resident.summary(tally(granted), self.budget_of(&resident.record), now))
        });
        let domains = match one {
            Some((_, key)) => {
                let held = self.domains.refusal(key.domain(), now);
                held.map(|held| (key.domain().into(), held)).into_iter().collect()
            }
            None => self.domains.refusals(now),
        };
        Known {
            residents: residents.collect(),
            waits: self.long_waits.clone(),
            domains,
            exclusions: Arc::clone(&self.exclusions),
            crawl: self.hosts_held(now),
            settings: self.settings(),
            opened_at: self.opened_at,
            now,
        }
    }

    pub(super) fn budget_of(&self, record: &HostRecord) -> u64 {
        let configured = || (self.settings().host)(&record.key).politeness.daily_pages;
        record.overrides.daily_pages.unwrap_or_else(configured)
    }

    /// A page of hosts, in the order of their ids.
    pub(super) fn list_hosts(&self, filter: HostFilter, answer: Answer<Result<HostPage, String>>) {
        let (store, known) = (self.store.clone(), self.known(None));
        tokio::spawn(async move {
            let page = page_of_hosts(&store, &filter, &known).await;
            answer.send(page.map_err(|error| in_full(&error)));
        });
    }

    /// One host: what only its actor knows comes from it, how it stands from where a list has it.
    pub(super) fn look_up_host(
        &mut self,
        key: HostKey,
        answer: Answer<Result<Option<Box<HostDetail>>, String>>,
    ) {
        let id = self.host_id(&key);
        let known = self.known(Some((id, &key)));
        let around = self.around(id);
        if let Some(resident) = self.residents.get(&id) {
            let (record, counts) = (resident.record.clone(), resident.counts);
            let port = Answer::to(move |view: Option<Box<HostView>>| {
                let view = view.map(|view| {
                    let summary = known.summary(id, &record, counts);
                    Box::new(around.detail(*view, summary, counts, true))
                });
                answer.send(view.map(Some).ok_or_else(|| "the host is restarting".to_owned()));
            });
            return self.tell(id, HostMsg::Observe(port));
        }
        let (store, epoch) = (self.store.clone(), self.store.epoch().0);
        tokio::spawn(async move {
            let read = async {
                let row = store.host(id).await?.filter(|(record, _)| record.key == key);
                let Some((record, counts)) = row else { return Ok(None) };
                let robots = store.robots(id).await?;
                let product = (known.settings.host)(&key).robots.product.clone();
                let robots = robots.map(|robots| RobotsState::from_record(&robots, &product));
                let mut view = resting_view(&record, &robots.unwrap_or_default());
                (view.budget, view.epoch) = (known.budget(&record), epoch);
                let summary = known.summary(id, &record, counts);
                Ok::<_, StoreError>(Some(Box::new(around.detail(view, summary, counts, false))))
            };
            answer.send(read.await.map_err(|error| in_full(&error)));
        });
    }

    /// One URL, with its last visit, its lease and what holds it.
    pub(super) fn look_up_url(
        &self,
        url: CrawlUrl,
        answer: Answer<Result<Option<Box<UrlView>>, String>>,
    ) {
        let key = url.host_key();
        let host = self.host_id(&key);
        let leases = self.leases.values().filter(|granted| granted.host == host);
        let leases = leases.map(|granted| (granted.lease.entry.id, granted.lease.id));
        let leases: BTreeMap<UrlId, LeaseId> = leases.collect();
        let known = self.known(Some((host, &key)));
        let crawl = known.crawl.as_ref().map(ToString::to_string);
        let store = self.store.clone();
        tokio::spawn(async move {
            let read = async {
                let Some(mut view) = find_url(&store, host, &url).await? else { return Ok(None) };
                view.lease = leases.get(&view.id).copied();
                let row = store.host(host).await?;
                let of_host =
                    row.and_then(|(record, counts)| known.summary(host, &record, counts).reason);
                // A host with a request in flight says nothing of what comes after it.
                view.held = of_host.or(crawl);
                Ok::<_, StoreError>(Some(Box::new(view)))
            };
            answer.send(read.await.map_err(|error| in_full(&error)));
        });
    }

    /// What stands around the view of a host.
    fn around(&self, id: HostId) -> Around {
        let leases = self.leases.values().filter(|granted| granted.host == id);
        Around {
            restarts: self.failures.get(&id).copied().unwrap_or(0),
            address: leases.filter_map(|granted| granted.lease.address).collect(),
            shard: self.id,
        }
    }
}

/// What a shard knows of a host beside its view.
struct Around {
    restarts: u32,
    address: Vec<IpAddr>,
    shard: crate::types::ShardId,
}

impl Around {
    fn detail(
        self,
        view: HostView,
        summary: HostSummary,
        counts: HostCounts,
        resident: bool,
    ) -> HostDetail {
        let HostSummary { state, reason, next_allowed_at, in_flight, pages_today, .. } = summary;
        let view = HostView { state, reason, next_allowed_at, in_flight, pages_today, ..view };
        HostDetail {
            view,
            queued: counts.queued,
            urls: counts,
            resident,
            restarts: self.restarts,
            shard: self.shard,
            address: self.address,
        }
    }
}

impl Resident {
    /// How a host with an actor stands, by its last step.
    fn summary(&self, in_flight: u32, budget: u64, now: Timestamp) -> HostSummary {
        let state = self.phase_at(now);
        let waits = matches!(state, HostPhase::Waiting | HostPhase::Parked);
        let reason = self.record.stopped().or_else(|| self.reason.clone().filter(|_| waits));
        let held = reason.as_ref().filter(|_| state == HostPhase::Waiting).and_then(Reason::until);
        HostSummary {
            host_key: self.record.key.clone(),
            state,
            reason: reason.map(|reason| reason.to_string()),
            next_allowed_at: next_request(&self.record, budget).max(held),
            in_flight,
            queued: self.counts.queued,
            pages_today: self.record.requests_on(now.day()),
        }
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

/// What the rows of a host at rest say beside how it stands.
fn resting_view(record: &HostRecord, robots: &RobotsState) -> HostView {
    HostView {
        host_key: record.key.clone(),
        state: HostPhase::Idle,
        reason: None,
        next_allowed_at: None,
        delay_seconds: record.delay,
        delay_set_by: record.set_by,
        in_flight: 0,
        pages_today: 0,
        budget: 0,
        robots: robots_view(robots),
        backoff: record.backoff,
        allowance: record.overrides.clone(),
        window: 0,
        epoch: 0,
    }
}
