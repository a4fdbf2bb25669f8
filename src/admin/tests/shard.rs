//! A shard that answers from plain data.

use std::time::Duration;

use super::fakes::{key, start};
use crate::policy::robots::Decision;
use crate::policy::why::{Facts, SiteUsage};
use crate::protocol::host::RobotsView;
use crate::protocol::shard::{
    HostDetail, HostFilter, HostOrder, HostPage, HostSummary, ParkedHost, ShardView,
};
use crate::protocol::{HostPhase, HostView, ShardMsg};
use crate::types::{
    BackoffState, CrawlEvent, CrawlUrl, DeadLetter, DelaySource, EventSeq, HostCounts, HostKey,
    HostOverrides, Outcome, QueueEntry, Reason, ShardId, Timestamp, UrlId, UrlRecord, UrlVersion,
    UrlView,
};

/// What one shard knows.
#[derive(Debug, Default)]
pub(super) struct ShardData {
    pub(super) shard: ShardId,
    pub(super) hosts: Vec<HostKey>,
    pub(super) events: Vec<(EventSeq, CrawlEvent)>,
    pub(super) dead: Vec<DeadLetter>,
    pub(super) orders: Vec<HostOrder>,
    pub(super) pages: u64,
    pub(super) degraded: Vec<String>,
    /// Keeps every question without an answer.
    pub(super) deaf: bool,
    pub(super) unanswered: Vec<ShardMsg>,
}

impl ShardData {
    #[expect(clippy::wildcard_enum_match_arm, reason = "what the interface never sends fails")]
    pub(super) fn take(&mut self, message: ShardMsg) {
        if self.deaf {
            return self.unanswered.push(message);
        }
        match message {
            ShardMsg::Observe(answer) => answer.send(Box::new(self.view())),
            ShardMsg::LookUpHost(host, answer) => {
                let found = self.hosts.contains(&host).then(|| Box::new(self.detail(host)));
                answer.send(Ok(found));
            }
            ShardMsg::LookUpUrl(url, answer) => {
                let found = self.hosts.contains(&url.host_key());
                answer.send(Ok(found.then(|| Box::new(url_view(url)))));
            }
            ShardMsg::Why(url, answer) => {
                let known = self.hosts.contains(&url.host_key());
                answer.send(Ok(Box::new(facts(known.then(|| url_view(url))))));
            }
            ShardMsg::ListHosts(filter, answer) => answer.send(Ok(self.page(&filter))),
            ShardMsg::ListDead(after, limit, answer) => {
                let later = self.dead.iter().filter(|letter| Some(letter.entry.id) > after);
                answer.send(Ok(later.take(limit.into()).cloned().collect()));
            }
            ShardMsg::RetryDead(_, answer) => answer.send(Ok(self.dead.drain(..).map(|_| 1).sum())),
            ShardMsg::ReadEvents(after, limit, answer) => {
                let later = self.events.iter().filter(|(place, _)| *place > after);
                answer.send(Ok(later.take(limit.into()).cloned().collect()));
            }
            ShardMsg::Order(order, answer) => {
                let known = self.hosts.contains(&order.host);
                answer.send(known.then(HostOverrides::default));
                self.orders.push(order);
            }
            other => panic!("nobody sends this to a shard here: {other:?}"),
        }
    }

    fn view(&self) -> ShardView {
        ShardView {
            shard: self.shard,
            urls: HostCounts { known: 10, queued: 4, dead: 1, ..HostCounts::default() },
            in_flight: 2,
            hosts_known: u64::try_from(self.hosts.len()).unwrap(),
            pages: self.pages,
            bytes: 1000,
            outcomes: [(Outcome::Ok, self.pages), (Outcome::Timeout, 1)].into(),
            degraded: self.degraded.clone(),
            next_wake: Some(start() + Duration::from_secs(60 + u64::from(self.shard.0))),
            parked: vec![ParkedHost {
                host_key: key("http://parked.test"),
                reason: "paused by an operator".into(),
                until: None,
                queued: 3,
                needs_operator: true,
            }],
            ..ShardView::default()
        }
    }

    fn detail(&self, host: HostKey) -> HostDetail {
        let set = self.orders.iter().rfind(|order| order.host == host);
        HostDetail {
            view: host_view(host, set),
            queued: 7,
            urls: HostCounts { known: 9, queued: 7, ..HostCounts::default() },
            resident: true,
            restarts: 0,
            shard: self.shard,
            address: vec!["192.0.2.1".parse().unwrap()],
        }
    }

    fn page(&self, filter: &HostFilter) -> HostPage {
        let later = self.hosts.iter().filter(|host| Some(host.id()) > filter.after);
        let fitting = later.filter(|host| {
            filter.domain.as_deref().is_none_or(|domain| host.domain() == domain)
                && filter.phase.is_none_or(|phase| phase == HostPhase::Waiting)
        });
        let all: Vec<&HostKey> = fitting.collect();
        let some = all.iter().take(filter.limit.into());
        let cut = all.len() > usize::from(filter.limit);
        let last = some.clone().next_back().map(|host| host.id());
        HostPage {
            hosts: some.map(|host| summary((*host).clone())).collect(),
            next: last.filter(|_| cut),
        }
    }
}

fn summary(host_key: HostKey) -> HostSummary {
    HostSummary {
        host_key,
        state: HostPhase::Waiting,
        reason: Some("the host may be asked again soon".into()),
        next_allowed_at: Some(start()),
        in_flight: 0,
        queued: 7,
        pages_today: 12,
    }
}

fn host_view(host_key: HostKey, set: Option<&HostOrder>) -> HostView {
    HostView {
        host_key,
        state: HostPhase::Waiting,
        reason: None,
        next_allowed_at: Some(start()),
        delay_seconds: Duration::from_millis(1500),
        delay_set_by: DelaySource::MinDelay,
        in_flight: 0,
        pages_today: 12,
        budget: 100_000,
        robots: RobotsView {
            state: "obey",
            fetched_at: Some(start()),
            expires_at: Some(start() + Duration::from_secs(86_400)),
            rules: 3,
            crawl_delay: Some(Duration::from_secs(2)),
            sitemaps: vec!["https://a.test/sitemap.xml".into()],
        },
        backoff: BackoffState { refusals: 0, failures: 0, slowdown: 1.0 },
        allowance: HostOverrides {
            paused: set.is_some_and(|set| set.paused == Some(true)),
            min_delay: set.and_then(|set| set.min_delay).flatten(),
            version: 1,
            ..HostOverrides::default()
        },
        window: 7,
        epoch: 1,
    }
}

fn id(url: &CrawlUrl) -> UrlId {
    let digest = blake3::hash(url.as_str().as_bytes());
    let hash = u64::from_be_bytes(digest.as_bytes()[..8].try_into().unwrap());
    UrlId { host: url.host_key().id(), hash, disambiguator: 0 }
}

fn url_view(url: CrawlUrl) -> UrlView {
    UrlView {
        id: id(&url),
        record: UrlRecord {
            url,
            depth: 1,
            band: 0,
            order: 5,
            redirects: 0,
            discovered_from: None,
            discovered_at: start(),
        },
        visit: None,
        lease: None,
        held: None,
    }
}

pub(super) fn letter(url: &CrawlUrl) -> DeadLetter {
    DeadLetter {
        entry: QueueEntry {
            id: id(url),
            version: UrlVersion(0),
            url: url.clone(),
            depth: 0,
            band: 0,
            order: 0,
            attempts: 5,
            redirects: 0,
            validators: None,
            discovered_from: None,
        },
        reason: Reason::TriedTooOften { outcome: Outcome::Timeout, attempts: 5 },
        attempts: 5,
        last_at: start(),
    }
}

/// Of a URL that nothing refuses.
fn facts(view: Option<UrlView>) -> Facts {
    Facts {
        now: Timestamp::from_secs(1),
        exclusion: None,
        unreachable: None,
        egress: None,
        robots: Decision::NeedsFetch,
        allowed_by: None,
        view,
        host: None,
        place: None,
        crawl: None,
        site: SiteUsage::default(),
    }
}
