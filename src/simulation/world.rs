//! The world of a simulated node: everything it meets, from a seed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::checkers::{End, History, Told};
use super::disk::{Power, SimulatedSnapshots, SimulatedSpool};
use super::faults::{Fault, Faults};
use super::objects::{KeptObjects, SimulatedObjects};
use super::web::{Reply, Web};
use crate::cluster::SingleNode;
use crate::types::{Headers, Outcome, Reason, TimeLimit, Timestamp, header};
use crate::world::{
    Clock, Exchange, ExchangeFailure, ExchangeRequest, Exchanged, MemorySpool, Objects, Resolved,
    Resolver, SeededDice, TokioClock, World,
};

/// How long an answer of the simulated name server may be used.
const NAMES_TTL: Duration = Duration::from_secs(120);
/// How long a connection takes that is refused.
const REFUSED_AFTER: Duration = Duration::from_millis(30);

/// What outlives the node.
pub(super) struct Kept {
    pub(super) seed: u64,
    pub(super) web: Arc<Web>,
    pub(super) history: History,
    pub(super) faults: Faults,
    pub(super) files: Arc<MemorySpool>,
    pub(super) objects: KeptObjects,
    pub(super) snapshots: Arc<SimulatedSnapshots>,
}

impl Kept {
    /// The world of one life of the node that starts now, and its power switch.
    pub(super) fn world(&self, life: u64, now: Timestamp) -> (World, Arc<Power>) {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(now));
        let power = Arc::new(Power::default());
        let seed = self.seed ^ (life << 32);
        let exchange = SimulatedExchange {
            web: Arc::clone(&self.web),
            history: self.history.clone(),
            faults: self.faults.clone(),
            clock: Arc::clone(&clock),
        };
        let resolver = SimulatedResolver { web: Arc::clone(&self.web), clock: Arc::clone(&clock) };
        let spool = SimulatedSpool {
            files: Arc::clone(&self.files),
            clock: Arc::clone(&clock),
            power: Arc::clone(&power),
            seed,
        };
        let objects =
            SimulatedObjects { kept: self.objects.clone(), clock: Arc::clone(&clock), seed };
        let world = World {
            clock,
            dice: Arc::new(SeededDice::new(seed)),
            exchange: Arc::new(exchange),
            resolver: Arc::new(resolver),
            snapshots: Arc::<SimulatedSnapshots>::clone(&self.snapshots),
            spool: Arc::new(spool),
            objects: Objects::from_store(Arc::new(objects), "memory://simulation"),
            coordinator: Arc::new(SingleNode),
        };
        (world, power)
    }
}

/// Exchanges with the simulated web; each is recorded and judged.
#[derive(Debug)]
struct SimulatedExchange {
    web: Arc<Web>,
    history: History,
    faults: Faults,
    clock: Arc<dyn Clock>,
}

/// A request that is under way: the site sees its end, however it comes.
struct Open<'a> {
    exchange: &'a SimulatedExchange,
    number: usize,
    sent_at: Timestamp,
}

impl Open<'_> {
    fn end(&self, end: End, told: Told) -> Timestamp {
        let now = self.exchange.clock.now();
        self.exchange.history.end(self.number, now, end, told);
        now
    }

    fn failure(&self, end: End, outcome: Outcome, reason: Reason) -> ExchangeFailure {
        let ended_at = self.end(end, Told::default());
        ExchangeFailure { outcome, reason, sent_at: Some(self.sent_at), ended_at }
    }
}

impl Drop for Open<'_> {
    /// The worker was stopped: the connection is closed.
    fn drop(&mut self) {
        self.end(End::Died, Told::default());
    }
}

#[async_trait]
impl Exchange for SimulatedExchange {
    async fn exchange(&self, request: ExchangeRequest) -> Result<Exchanged, ExchangeFailure> {
        let sent_at = self.clock.now();
        let number = self.history.begin(&request.url, request.address, sent_at);
        let open = Open { exchange: self, number, sent_at };
        let answer = self.web.answer(&request.url, sent_at);
        let about = format!("{} {}", request.url, sent_at.as_millis());
        let reply = match self.faults.of_exchange(&about) {
            None | Some(Fault::Crash) => answer.reply,
            Some(Fault::Lost) => Reply::Silent,
            Some(Fault::Panic) => {
                self.clock.sleep(answer.took / 2).await;
                open.end(End::Died, Told::default());
                // Without the message of a panic: this one is meant.
                std::panic::resume_unwind(Box::new("the simulation lets a worker die"));
            }
        };
        let limits = &request.limits;
        match reply {
            Reply::Silent => {
                let after = limits.first_byte.min(limits.total);
                self.clock.sleep(after).await;
                let reason = Reason::TimedOut { limit: TimeLimit::FirstByte, after };
                Err(open.failure(End::HungUp, Outcome::Timeout, reason))
            }
            Reply::Refused => {
                self.clock.sleep(REFUSED_AFTER).await;
                let reason = Reason::Connect { why: "connection refused".to_owned() };
                Err(open.failure(End::Refused, Outcome::Connect, reason))
            }
            Reply::Response { status, headers, body, rules } => {
                self.clock.sleep(answer.took).await;
                let wait_until = wait_until(status, &headers, self.clock.now());
                let max_age = max_age(&headers);
                let told = Told { wait_until, rules, max_age };
                let ended_at = open.end(End::Answered { status }, told);
                let head = format!("GET {} HTTP/1.1\r\n\r\n", request.url.path_and_query());
                Ok(Exchanged {
                    request_head: head.into(),
                    protocol: "HTTP/1.1",
                    status,
                    headers,
                    body,
                    truncated: None,
                    reason: None,
                    sent_at,
                    ended_at,
                    remote: request.address,
                })
            }
        }
    }
}

/// Until when a response asks to be left alone, as its site means it.
fn wait_until(status: u16, headers: &Headers, now: Timestamp) -> Option<Timestamp> {
    let value = header(headers, "retry-after").filter(|_| status >= 300)?;
    match value.parse::<u64>() {
        Ok(seconds) => Some(now + Duration::from_secs(seconds)),
        Err(_) => {
            let date = httpdate::parse_http_date(value).ok()?;
            let since = date.duration_since(std::time::UNIX_EPOCH).ok()?;
            Some(Timestamp::EPOCH + since)
        }
    }
}

fn max_age(headers: &Headers) -> Option<Duration> {
    let value = header(headers, "cache-control")?.strip_prefix("max-age=")?;
    value.parse().ok().map(Duration::from_secs)
}

/// Names of the simulated web.
#[derive(Debug)]
struct SimulatedResolver {
    web: Arc<Web>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Resolver for SimulatedResolver {
    async fn resolve(&self, host: &str) -> Result<Resolved, Reason> {
        let now = self.clock.now();
        self.clock.sleep(Duration::from_millis(3)).await;
        let site = self.web.named(host);
        let addresses = site.map(|site| site.resolve(now, self.web.start)).unwrap_or_default();
        if addresses.is_empty() {
            return Err(Reason::Dns { why: "no such name".to_owned() });
        }
        Ok(Resolved { addresses, until: now + NAMES_TTL })
    }
}
