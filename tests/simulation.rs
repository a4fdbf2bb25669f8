//! The whole crawler on a virtual clock, from seeds (B3, I1 to I8).

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::collections::BTreeSet;

use mehman::simulation::{Fault, SimulationOptions, SimulationReport, run};

/// Plays a seed; every violation is a failure, with the command that plays it again.
fn play(seed: u64, hosts: u16, faults: &[Fault]) -> SimulationReport {
    let faults: BTreeSet<Fault> = faults.iter().copied().collect();
    let options = SimulationOptions { seed, hours: 8, hosts, faults };
    let report = run(&options).unwrap();
    let told = format!("{report:#?}\nplay it again: {options:?}");
    assert!(report.violations == 0 && report.is_done, "{told}");
    report
}

#[test]
fn a_small_web_is_crawled_to_the_end() {
    let report = play(1, 3, &[]);
    assert!(report.pages > 3 && report.lives == 1, "{report:?}");
    eprintln!("{report:#?}");
}
