//! The whole crawler on a virtual clock, from seeds (B3): whatever happens, every site sees a guest
//! with manners (I2, I3, I6), nothing is lost or doubled (I1, I4, I5, I7, I8, A1, A2), and all gets
//! done.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::collections::BTreeSet;
use std::ops::Range;
use std::process::Command;

use mehman::simulation::{Fault, SimulationOptions, SimulationReport, run};

/// Plays a seed; every violation is a failure, with all that is needed to play it again.
fn play(seed: u64, hosts: u16, faults: &[Fault]) -> SimulationReport {
    let faults: BTreeSet<Fault> = faults.iter().copied().collect();
    let options = SimulationOptions { seed, hours: 8, hosts, faults };
    let report = run(&options).unwrap();
    let command = options.command();
    assert!(report.violations == 0 && report.is_done, "{command}\ngave {report:#?}");
    report
}

/// Webs of three to six sites, with all that can go wrong.
fn play_all(seeds: Range<u64>) {
    for seed in seeds {
        play(seed, u16::try_from(3 + seed % 4).unwrap(), &Fault::ALL);
    }
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
fn a_hundred_sites_are_crawled_to_the_end() {
    let report = play(5, 100, &[]);
    assert!(report.requests > 1_000, "{report:?}");
}

#[test]
fn each_fault_alone_comes_about_and_does_no_harm() {
    for fault in Fault::ALL {
        let came = (40..43).map(|seed| play(seed, 4, &[fault]).faults);
        let came: u64 = came.filter_map(|faults| faults.get(fault.as_str()).copied()).sum();
        assert!(came > 0, "no {fault} in three runs");
    }
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_0_to_9() {
    play_all(0..10);
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_10_to_19() {
    play_all(10..20);
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_20_to_29() {
    play_all(20..30);
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_30_to_39() {
    play_all(30..40);
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_40_to_49() {
    play_all(40..50);
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_50_to_59() {
    play_all(50..60);
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_60_to_69() {
    play_all(60..70);
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_70_to_79() {
    play_all(70..80);
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_80_to_89() {
    play_all(80..90);
}

#[test]
fn nothing_is_lost_or_doubled_or_hurried_in_seeds_90_to_99() {
    play_all(90..100);
}

#[test]
fn the_same_seed_plays_the_same_run_in_another_process_too() {
    let report = play(7, 6, &Fault::ALL);
    let said = || {
        let arguments = ["simulate", "--seed", "7", "--hosts", "6", "--faults", "all"];
        let output = Command::new(env!("CARGO_BIN_EXE_mehman")).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (first, second) = (said(), said());
    assert_eq!(first, second);
    assert!(first.contains(&report.trace), "{first} is not {}", report.trace);
    assert_ne!(report.trace, play(8, 6, &Fault::ALL).trace);
}

#[test]
fn a_run_that_the_time_cuts_off_is_not_done_and_violates_nothing() {
    let options = SimulationOptions { seed: 7, hours: 1, hosts: 30, faults: BTreeSet::new() };
    let report = run(&options).unwrap();
    assert!(!report.is_done && report.violations == 0, "{report:#?}");
}
