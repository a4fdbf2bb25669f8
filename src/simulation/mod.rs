//! The crawler without the world (B3): the real policy, actors and store on a virtual clock, with a
//! web, disks and faults from a seed, and checkers that judge every request.
//!
//! In: a seed, hours, faults. Out: a report. The same seed plays the very same run, to the
//! millisecond: everything happens on one thread, time moves only when nobody has anything to do,
//! and nothing is drawn but from the seed. A hash over all that was seen says so.
//!
//! How each invariant is observed:
//!
//! - I1 As a lease leaves its shard, at looks inside, and at the end: terms only rise, no lease
//!   leaves or is granted twice (`inside`, `ledger`).
//! - I2 At each request: the site's own clock, rules and robots decision, and the clock of its
//!   address (`checkers`); at the end the times in the ledger.
//! - I3 At each request: until when the site asked to be left alone, over all lives (`checkers`).
//! - I4 At the end: no URL lies in the stores twice (`audit`).
//! - I5 At looks inside and at the end: one event of a kind for each version, one end for each
//!   lease, though ends are told twice (`inside`, `ledger`).
//! - I6 At each request: a public address of that very site (`checkers`).
//! - I7 At looks inside and at the end: what the feed has shown stays over crashes; every request
//!   has a durable grant, every event its response, every record its links (`inside`, `ledger`,
//!   `audit`).
//! - I8 At looks inside: leases, hosts, pages and responses under way are within their bounds
//!   (`inside`); at the end: every known URL has come to an end (`audit`).
//!
//! Crashes may come at any step of any kind (`power`), so what holds at the end of a run has held
//! at the moment of each crash. In debug builds the `debug_assert!`s of the code count as well: a
//! panic that was not meant is a violation.
//!
//! It does not simulate: HTTP itself (the exchange is a function call), the admin interface, other
//! nodes, a machine that was suspended.

mod draw;
mod rules;
mod site;
mod web;
mod asked;
mod trace;
mod checkers;
mod inside;
mod faults;
mod weather;
mod power;
mod clock;
mod disk;
mod objects;
mod taps;
mod world;
mod settings;
mod panics;
mod ledger;
mod audit;
mod lives;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use thiserror::Error;

use crate::config::ConfigFaults;
use crate::node::NodeError;
use crate::storage::StoreError;
use crate::types::Timestamp;

use checkers::History;
use faults::Faults;
use inside::Inside;
use objects::KeptObjects;
use web::Web;
use world::Kept;

pub use faults::Fault;

/// When every run begins, in seconds since the epoch: no matter when, if always the same.
const START: i64 = 1_900_000_000;

/// What is simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationOptions {
    /// Decides everything.
    pub seed: u64,
    /// Virtual hours at most; a run ends sooner when all is done.
    pub hours: u32,
    /// Sites of the web, at least 3.
    pub hosts: u16,
    /// Classes of faults.
    pub faults: BTreeSet<Fault>,
}

impl SimulationOptions {
    /// The command that plays the very same run again.
    pub fn command(&self) -> String {
        let Self { seed, hours, hosts, faults } = self;
        let mut command = format!("mehman simulate --seed {seed} --hours {hours} --hosts {hosts}");
        let names: Vec<&str> = match faults.len() == Fault::ALL.len() {
            true => vec!["all"],
            false => faults.iter().map(|fault| fault.as_str()).collect(),
        };
        if !names.is_empty() {
            command.push_str(" --faults ");
            command.push_str(&names.join(","));
        }
        command
    }
}

/// How a run went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulationReport {
    /// As asked.
    pub seed: u64,
    /// Virtual hours that passed.
    pub hours: f64,
    /// Sites of the web.
    pub hosts: u16,
    /// Lives of the node: one more than crashes.
    pub lives: u64,
    /// Requests that the sites saw.
    pub requests: u64,
    /// Pages of the last life, as the node counts them.
    pub pages: u64,
    /// Everything was done before the time was over, and so could be checked in full.
    pub is_done: bool,
    /// Faults that were injected, by class.
    pub faults: BTreeMap<String, u64>,
    /// How often something was not as it must be.
    pub violations: u64,
    /// The first of them in words.
    pub violated: Vec<String>,
    /// The hash of the trace, in hexadecimal.
    pub trace: String,
    /// The last lines of the trace.
    pub last_lines: Vec<String>,
}

/// A simulation that cannot be played.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// No runtime.
    #[error("failed to start the runtime of the simulation")]
    Runtime(#[source] std::io::Error),
    /// The simulation's own settings are wrong.
    #[error(transparent)]
    Settings(#[from] ConfigFaults),
    /// The node does not start.
    #[error("the simulated node failed")]
    Node(#[from] NodeError),
    /// A store cannot be read when all is over.
    #[error("the store cannot be read when all is over")]
    Store(#[from] StoreError),
    /// More lives than can be counted.
    #[error("the simulated node lives for ever")]
    Endless,
}

/// Plays one run on this thread, which must not belong to a runtime.
///
/// # Errors
/// When the node cannot even be started; what goes wrong in the run is in the report.
pub fn run(options: &SimulationOptions) -> Result<SimulationReport, SimulationError> {
    let start = Timestamp::from_secs(START);
    let deadline = start + Duration::from_secs(3600 * u64::from(options.hours));
    let web = Arc::new(Web::new(options.seed, options.hosts, start));
    let config = settings::config()?;
    let history = History::new(Arc::clone(&web), &config);
    let kept = Kept {
        seed: options.seed,
        web,
        history: history.clone(),
        faults: Faults::new(options.seed, start, options.faults.clone()),
        files: Arc::default(),
        objects: KeptObjects::default(),
        snapshots: Arc::default(),
        deaths: Arc::default(),
        inside: Arc::new(Inside::new(history.clone(), &config)),
        late: Arc::default(),
    };
    panics::listen();
    let over = lives::run(&kept, start, deadline);
    for panic in panics::heard() {
        history.violate(format_args!("A1: a panic of the crawler's own: {panic}"));
    }
    let over = over?;
    let (violations, violated) = history.violations();
    let (trace, last_lines) = history.trace();
    Ok(SimulationReport {
        seed: options.seed,
        hours: over.at.since(start).as_secs_f64() / 3600.0,
        hosts: u16::try_from(kept.web.sites().count()).unwrap_or(u16::MAX),
        lives: over.lives,
        requests: u64::try_from(history.count()).unwrap_or(u64::MAX),
        pages: over.pages,
        is_done: over.is_done,
        faults: lives::injected(&kept),
        violations,
        violated,
        trace: format!("{trace:016x}"),
        last_lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_plays_it_again_names_everything() {
        let options = |faults: &[Fault]| SimulationOptions {
            seed: 7,
            hours: 3,
            hosts: 9,
            faults: faults.iter().copied().collect(),
        };
        let expected = "mehman simulate --seed 7 --hours 3 --hosts 9";
        assert_eq!(options(&[]).command(), expected);
        let some = options(&[Fault::Crash, Fault::Lost]).command();
        assert_eq!(some, format!("{expected} --faults lost,crash"));
        assert_eq!(options(&Fault::ALL).command(), format!("{expected} --faults all"));
    }
}
