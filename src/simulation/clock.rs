//! The clock of a simulated node: true time, wrong by as much as the machine's wall clock was when
//! the node was started.
//!
//! A node reads the wall once and then only what has passed since, so a wall clock that is set
//! while it runs is heard of at its next start only; what others date by the wall, such as files,
//! goes with it at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use super::checkers::History;
use super::draw::{below, happens};
use super::faults::{FAULTS_FOR, Fault, Faults};
use super::power::{Power, Step};
use super::weather::trouble_since;
use crate::types::Timestamp;
use crate::world::Clock;

/// The wall clock may be set once in so long.
const SET_EVERY: Duration = Duration::from_secs(240);
/// The furthest it is wrong.
const WRONG_MAX: Duration = Duration::from_secs(1500);

/// A time moved by so many milliseconds.
pub(super) fn moved(at: Timestamp, millis: i64) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_add(millis))
}

/// How far the wall clock is ahead of true time, in milliseconds; negative when it is behind.
pub(super) fn wall_ahead_ms(faults: &Faults, at: Timestamp) -> i64 {
    if !faults.has(Fault::Clock) {
        return 0;
    }
    let slots = faults.age(at).min(FAULTS_FOR).as_secs() / SET_EVERY.as_secs();
    // It stands as it was set last; where it was set right it is right.
    let last = (0..=slots).rev().find(|slot| happens(400, faults.seed, format_args!("set {slot}")));
    last.map_or(0, |slot| set_to(faults.seed, slot)) + leap(faults.seed, slots)
}

/// In some runs the clock is a day behind until it is set right. It never goes back a day: what was
/// dated by then would keep every host waiting for as long.
fn leap(seed: u64, slots: u64) -> i64 {
    let leaps = happens(250, seed, "leap") && slots > below(8, seed, "leap at");
    if leaps { 26 * 3_600_000 } else { 0 }
}

/// What it is set to: right, wrong by moments or by minutes.
fn set_to(seed: u64, slot: u64) -> i64 {
    let of = |what: &str, bound: u64| {
        i64::try_from(below(bound, seed, format_args!("wall {slot} {what}"))).unwrap_or(0)
    };
    let wrong_ms_max = WRONG_MAX.as_secs() * 1000;
    match of("kind", 5) {
        0 => 0,
        1 => of("moments ahead", 5_000),
        2 => -of("moments behind", 5_000),
        3 => of("minutes ahead", wrong_ms_max),
        _ => -of("minutes behind", wrong_ms_max),
    }
}

/// Messages until the next actor of a kind dies.
#[derive(Debug, Default)]
pub(super) struct Deaths(Mutex<BTreeMap<&'static str, (u64, u64)>>);

/// One of so many messages kills an actor of this kind, about.
fn one_of(actor: &str) -> u64 {
    match actor {
        "shard" => 4000,
        "host" => 600,
        "address" => 600,
        "archive" | "output" => 400,
        "discovery" => 300,
        _ => 80,
    }
}

impl Deaths {
    /// Whether the actor of this kind that takes a message now dies over it.
    fn falls_on(&self, actor: &'static str, seed: u64) -> bool {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next =
            |nth: u64| 1 + below(2 * one_of(actor), seed, format_args!("death {actor} {nth}"));
        let (nth, wait) = left.entry(actor).or_insert_with(|| (0, next(0)));
        *wait -= 1;
        if *wait > 0 {
            return false;
        }
        *nth += 1;
        *wait = next(*nth);
        true
    }
}

/// The clock of one life.
#[derive(Debug)]
pub(super) struct SimulatedClock {
    pub(super) truth: Arc<dyn Clock>,
    pub(super) ahead_ms: i64,
    pub(super) power: Arc<Power>,
    pub(super) faults: Faults,
    pub(super) deaths: Arc<Deaths>,
    pub(super) history: History,
}

#[async_trait]
impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        moved(self.truth.now(), self.ahead_ms)
    }

    async fn sleep_until(&self, at: Timestamp) {
        self.truth.sleep_until(moved(at, -self.ahead_ms)).await;
    }

    fn step(&self, actor: &'static str) {
        self.power.step(Step::Message);
        let faults = &self.faults;
        let may_die = !self.power.is_cut() && faults.has_at(Fault::Panic, self.truth.now());
        if may_die && self.deaths.falls_on(actor, faults.seed) {
            faults.count(Fault::Panic);
            if matches!(actor, "shard" | "output" | "discovery") {
                // A shard comes back together with its outputs, and all of them with discovery.
                let now = self.truth.now();
                self.history.shard_died(now, trouble_since(faults, now));
            }
            tracing::debug!(actor, "the simulation lets an actor die");
            // Without the message of a panic: this one is meant.
            std::panic::resume_unwind(Box::new("the simulation lets an actor die"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_wall_is_set_both_ways_and_within_bounds() {
        let start = Timestamp::from_secs(1_000_000_000);
        let mut ahead = Vec::new();
        for seed in 0..40 {
            let faults = Faults::new(seed, start, BTreeSet::from([Fault::Clock]));
            let minutes = (0..180).map(|minute| start + Duration::from_secs(60 * minute));
            ahead.extend(minutes.map(|at| wall_ahead_ms(&faults, at)));
        }
        let most = i64::try_from(WRONG_MAX.as_millis()).unwrap();
        assert!(ahead.iter().any(|ms| *ms > 3_600_000) && ahead.iter().any(|ms| *ms < -600_000));
        assert!(ahead.iter().all(|ms| *ms >= -most));
        let right = Faults::new(1, start, BTreeSet::new());
        assert_eq!(wall_ahead_ms(&right, start), 0);
    }
}
