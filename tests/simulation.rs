//! The whole crawler on a virtual clock, from seeds (B3): whatever happens, every site sees a guest
//! with manners (I2, I3, I6), nothing is lost or doubled (I4, I5, I7, A1, A2), and all gets done.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::collections::BTreeSet;

use mehman::simulation::{Fault, SimulationOptions, SimulationReport, run};

const ALL: &[Fault] = &Fault::ALL;

/// Plays a seed; every violation is a failure, with all that is needed to play it again.
fn play(seed: u64, hosts: u16, faults: &[Fault]) -> SimulationReport {
    let faults: BTreeSet<Fault> = faults.iter().copied().collect();
    let options = SimulationOptions { seed, hours: 8, hosts, faults };
    let report = run(&options).unwrap();
    assert!(report.violations == 0 && report.is_done, "{options:?} gave {report:#?}");
    report
}

#[test]
fn three_sites_are_crawled_to_the_end() {
    for seed in 1..4 {
        let report = play(seed, 3, &[]);
        assert!(report.pages > 10 && report.lives == 1, "{report:?}");
        assert!(report.faults.is_empty());
    }
}

#[test]
fn many_sites_are_crawled_to_the_end() {
    let report = play(5, 30, &[]);
    assert!(report.requests > 300, "{report:?}");
}

#[test]
fn whatever_fails_and_whenever_it_dies_nobody_is_hurried_and_nothing_is_lost() {
    for seed in 100..110 {
        let report = play(seed, 8, ALL);
        assert!(report.faults["crash"] > 0 && report.lives > 1, "{report:?}");
    }
}

#[test]
fn the_same_seed_plays_the_same_run() {
    let (first, second) = (play(7, 10, ALL), play(7, 10, ALL));
    assert_eq!(first, second);
    assert_ne!(first.trace, play(8, 10, ALL).trace);
}
