//! The world of a simulated node: everything it meets, from a seed.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;

use super::checkers::{End, History, Told};
use super::clock::{Deaths, SimulatedClock, moved, wall_ahead_ms};
use super::disk::{SimulatedSnapshots, SimulatedSpool, SnapshotsOfLife};
use super::faults::{Fault, Faults};
use super::inside::Inside;
use super::objects::{KeptObjects, SimulatedObjects};
use super::power::{Power, Step};
use super::site::date;
use super::taps::Late;
use super::web::{Reply, Web};
use crate::cluster::SingleNode;
use crate::protocol::RoutesWatch;
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
    pub(super) deaths: Arc<Deaths>,
    pub(super) inside: Arc<Inside>,
    pub(super) late: Arc<Late>,
}

/// What one life of the node lives in.
pub(super) struct Life {
    pub(super) number: u64,
    pub(super) world: World,
    pub(super) power: Arc<Power>,
    /// True time, which the node does not know.
    pub(super) truth: Arc<dyn Clock>,
    /// How far the node's clock is ahead of it, in milliseconds.
    pub(super) ahead_ms: i64,
    /// Where the node's actors are, once it has started.
    pub(super) routes: Arc<OnceLock<RoutesWatch>>,
}

impl Kept {
    /// A life of the node that starts now, on power that may fail.
    pub(super) fn life(&self, number: u64, now: Timestamp, power: Power) -> Life {
        let truth: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(now));
        let power = Arc::new(power);
        let ahead_ms = wall_ahead_ms(&self.faults, now);
        let clock: Arc<dyn Clock> = Arc::new(SimulatedClock {
            truth: Arc::clone(&truth),
            ahead_ms,
            power: Arc::clone(&power),
            faults: self.faults.clone(),
            deaths: Arc::clone(&self.deaths),
            history: self.history.clone(),
        });
        let seed = self.seed ^ (number << 32);
        let exchange = SimulatedExchange {
            web: Arc::clone(&self.web),
            history: self.history.clone(),
            faults: self.faults.clone(),
            truth: Arc::clone(&truth),
            power: Arc::clone(&power),
            ahead_ms,
        };
        let resolver = SimulatedResolver {
            web: Arc::clone(&self.web),
            truth: Arc::clone(&truth),
            power: Arc::clone(&power),
            ahead_ms,
        };
        let spool = SimulatedSpool {
            files: Arc::clone(&self.files),
            clock: Arc::clone(&truth),
            power: Arc::clone(&power),
            faults: self.faults.clone(),
            seed,
        };
        let objects = SimulatedObjects {
            kept: self.objects.clone(),
            clock: Arc::clone(&truth),
            power: Arc::clone(&power),
            faults: self.faults.clone(),
            seed,
        };
        let snapshots =
            SnapshotsOfLife { kept: Arc::clone(&self.snapshots), power: Arc::clone(&power) };
        let world = World {
            clock,
            dice: Arc::new(SeededDice::new(seed)),
            exchange: Arc::new(exchange),
            resolver: Arc::new(resolver),
            snapshots: Arc::new(snapshots),
            spool: Arc::new(spool),
            objects: Objects::from_store(Arc::new(objects), "memory://simulation"),
            coordinator: Arc::new(SingleNode),
        };
        Life { number, world, power, truth, ahead_ms, routes: Arc::default() }
    }
}

/// Exchanges with the simulated web; each is recorded and judged.
#[derive(Debug)]
struct SimulatedExchange {
    web: Arc<Web>,
    history: History,
    faults: Faults,
    truth: Arc<dyn Clock>,
    power: Arc<Power>,
    ahead_ms: i64,
}

/// A request that is under way: the site sees its end, however it comes.
struct Open<'a> {
    exchange: &'a SimulatedExchange,
    number: usize,
    /// As the node's clock has it.
    sent_at: Timestamp,
}

impl Open<'_> {
    /// Its end, as the node's clock has it.
    fn end(&self, end: End, told: Told) -> Timestamp {
        let now = self.exchange.truth.now();
        self.exchange.history.end(self.number, now, end, told);
        moved(now, self.exchange.ahead_ms)
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
        self.power.needed().await;
        let came_at = self.truth.now();
        let number = self.history.begin(&request.url, request.address, came_at);
        let sent_at = moved(came_at, self.ahead_ms);
        let open = Open { exchange: self, number, sent_at };
        self.power.step(Step::RequestBegun);
        let answer = self.web.answer(&request.url, came_at);
        let about = format!("{} {}", request.url, came_at.as_millis());
        let reply = match self.faults.of_exchange(&about) {
            Some(Fault::Lost) => Reply::Silent,
            Some(Fault::Panic) => {
                self.truth.sleep(answer.took / 2).await;
                open.end(End::Died, Told::default());
                // Without the message of a panic: this one is meant.
                std::panic::resume_unwind(Box::new("the simulation lets a worker die"));
            }
            Some(_) | None => answer.reply,
        };
        let ended = self.play(&request, &open, reply, answer.took).await;
        self.power.step(Step::RequestEnded);
        self.power.needed().await;
        ended
    }
}

impl SimulatedExchange {
    /// The site's side of an exchange.
    async fn play(
        &self,
        request: &ExchangeRequest,
        open: &Open<'_>,
        reply: Reply,
        took: Duration,
    ) -> Result<Exchanged, ExchangeFailure> {
        let limits = &request.limits;
        match reply {
            Reply::Silent => {
                let after = limits.first_byte.min(limits.total);
                self.truth.sleep(after).await;
                let reason = Reason::TimedOut { limit: TimeLimit::FirstByte, after };
                Err(open.failure(End::HungUp, Outcome::Timeout, reason))
            }
            Reply::Refused => {
                self.truth.sleep(REFUSED_AFTER).await;
                let reason = Reason::Connect { why: "connection refused".to_owned() };
                Err(open.failure(End::Refused, Outcome::Connect, reason))
            }
            Reply::Response { .. } if took > limits.first_byte => {
                let after = limits.first_byte.min(limits.total);
                self.truth.sleep(after).await;
                let reason = Reason::TimedOut { limit: TimeLimit::FirstByte, after };
                Err(open.failure(End::HungUp, Outcome::Timeout, reason))
            }
            Reply::Response { status, mut headers, body, rules } => {
                self.truth.sleep(took).await;
                let now = self.truth.now();
                headers.push(("date".to_owned(), date(now).into()));
                let wait_until = wait_until(status, &headers, now);
                let max_age = max_age(&headers);
                let told = Told { wait_until, rules, max_age };
                let ended_at = open.end(End::Answered { status }, told);
                let head = format!("GET {} HTTP/1.1\r\n\r\n", request.url.path_and_query());
                Ok(Exchanged {
                    request_head: head.into(),
                    protocol: "HTTP/1.1",
                    status,
                    status_line: None,
                    headers,
                    body,
                    truncated: None,
                    reason: None,
                    sent_at: open.sent_at,
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
    truth: Arc<dyn Clock>,
    power: Arc<Power>,
    ahead_ms: i64,
}

#[async_trait]
impl Resolver for SimulatedResolver {
    async fn resolve(&self, host: &str) -> Result<Resolved, Reason> {
        let now = self.truth.now();
        self.truth.sleep(Duration::from_millis(3)).await;
        self.power.needed().await;
        self.power.step(Step::Resolved);
        let site = self.web.named(host);
        let addresses = site.map(|site| site.resolve(now, self.web.start)).unwrap_or_default();
        if addresses.is_empty() {
            return Err(Reason::Dns { why: "no such name".to_owned() });
        }
        Ok(Resolved { addresses, until: moved(now + NAMES_TTL, self.ahead_ms) })
    }
}
