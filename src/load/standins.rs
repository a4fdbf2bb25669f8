//! Who stands in for the stages around the frontier: each answers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;

use super::web::Web;
use crate::node::FrontierAlone;
use crate::protocol::output::FinishedPage;
use crate::protocol::shard::EndedReport;
use crate::protocol::{AddressMsg, FetchJob, OutputMsg, ParseJob, Permit, ShardMsg, ask};
use crate::types::{ArchivePointer, Completion, Lease, LeaseKind, Outcome, Reason, Timestamp};
use crate::world::{
    Clock, Exchange, ExchangeFailure, ExchangeRequest, Exchanged, Resolved, Resolver,
};

/// The robots.txt of every host.
const ROBOTS: &str = "User-agent: *\nDisallow: /private/\nAllow: /\n";

/// Every name has its address in the cache.
#[derive(Debug)]
pub(super) struct Names(pub(super) Web);

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> Result<Resolved, Reason> {
        let why = || Reason::Dns { why: "no such name".to_owned() };
        let address = self.0.address(host).ok_or_else(why)?;
        Ok(Resolved { addresses: vec![address], until: Timestamp::NEVER })
    }
}

/// Nothing is fetched.
#[derive(Debug)]
pub(super) struct NoExchange;

#[async_trait]
impl Exchange for NoExchange {
    async fn exchange(&self, request: ExchangeRequest) -> Result<Exchanged, ExchangeFailure> {
        unreachable!("nobody fetches here, but {}", request.url)
    }
}

/// What the stand-ins have served.
#[derive(Clone, Debug, Default)]
pub struct Served(Arc<Totals>);

#[derive(Debug, Default)]
struct Totals {
    robots: AtomicU64,
    pages: AtomicU64,
    published: AtomicU64,
}

impl Served {
    /// Leases for robots.txt.
    pub fn robots(&self) -> u64 {
        self.0.robots.load(Ordering::Relaxed)
    }

    /// Leases for pages.
    pub fn pages(&self) -> u64 {
        self.0.pages.load(Ordering::Relaxed)
    }

    /// All leases.
    pub fn grants(&self) -> u64 {
        self.robots() + self.pages()
    }

    /// Pages handed to the outputs.
    pub fn published(&self) -> u64 {
        self.0.published.load(Ordering::Relaxed)
    }
}

/// Starts `workers` fetchers and one parser; they end with the frontier's channels.
pub(super) fn serve(frontier: &FrontierAlone, clock: &Arc<dyn Clock>, workers: usize) -> Served {
    let served = Served::default();
    for _ in 0..workers {
        let (leases, clock, served) = (frontier.leases(), Arc::clone(clock), served.clone());
        tokio::spawn(async move {
            while let Ok(job) = leases.recv().await {
                fetch(&job, &*clock, &served).await;
            }
        });
    }
    let (pages, routes, counted) = (frontier.pages(), frontier.routes(), served.clone());
    tokio::spawn(async move {
        while let Ok(job) = pages.recv().await {
            let ParseJob { row, shard, permit, response: _ } = job;
            let Some(route) = routes.route(&row.url.host_key()) else { continue };
            let page =
                FinishedPage { row, document: None, links: 0, reasons: Vec::new(), shard, permit };
            counted.0.published.fetch_add(1, Ordering::Relaxed);
            // An output that is gone has its pages parsed again.
            route.output.send_message(OutputMsg::Publish(Box::new(page))).ok();
        }
    });
    served
}

/// One exchange, as a fetcher and the archive make it: at its time, asked of its address, reported.
async fn fetch(job: &FetchJob, clock: &dyn Clock, served: &Served) {
    let lease = &job.lease;
    clock.sleep_until(lease.not_before).await;
    let Some(address) = lease.address else { return };
    let departs = |answer| AddressMsg::Depart { address, lease: lease.id, answer };
    let Some(go) = ask(&job.address, departs).await else { return };
    clock.sleep_until(go).await;
    let now = clock.now();
    let left = AddressMsg::Left { address, lease: lease.id, ended_at: Some(now) };
    // An owner that is gone counts every address as just visited.
    job.address.send_message(left).ok();
    let of_kind = match lease.kind {
        LeaseKind::Page => &served.0.pages,
        LeaseKind::Robots { .. } => &served.0.robots,
    };
    of_kind.fetch_add(1, Ordering::Relaxed);
    let completion = completion(lease, now);
    let report = EndedReport { completion, response: None, permit: Permit::free() };
    // A shard that is gone has its leases come back.
    job.shard.send_message(ShardMsg::Ended(Box::new(report))).ok();
}

fn completion(lease: &Lease, now: Timestamp) -> Completion {
    let mut completion = Completion::failed(lease, now, Outcome::Ok, Reason::WorkerDied);
    completion.reason = None;
    completion.sent_at = Some(now);
    completion.status = Some(200);
    completion.bytes = 40_000;
    completion.content_type = Some("text/html; charset=utf-8".to_owned());
    completion.digest = Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".to_owned());
    completion.archive = Some(ArchivePointer {
        file: "mehman-20260131120000000-00017-host.warc.gz".into(),
        offset: lease.id.0 & 0x3fff_ffff,
        length: 41_123,
    });
    completion.robots_body = match lease.kind {
        LeaseKind::Page => None,
        LeaseKind::Robots { .. } => Some(Bytes::from_static(ROBOTS.as_bytes())),
    };
    completion
}
