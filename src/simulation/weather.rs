//! Stretches of virtual time in which something that is otherwise well fails, is slow or hangs.

use std::time::Duration;

use super::draw::below;
use super::faults::{Fault, Faults};
use crate::types::Timestamp;

/// At most one stretch of a class in so long.
const SLOT: Duration = Duration::from_secs(150);
/// The longest stretch of a failing or hanging store or disk.
const STRETCH_MAX: Duration = Duration::from_secs(90);
/// Whoever waits for store or disk goes on so soon after they are well again: a flush has a
/// deadline of half a minute.
const RECOVERY: Duration = Duration::from_secs(60);
/// At most one standstill of parsers, and one of outputs, in so many seconds.
const STANDSTILLS_APART: u64 = 1200;
/// The longest of them, in seconds.
const STANDSTILL_MAX: u64 = 1000;

/// How the object store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreWeather {
    /// Well.
    Fair,
    /// Nothing can be written; some of it is there all the same.
    NoWrites,
    /// Nothing can be read.
    NoReads,
    /// Neither.
    Nothing,
    /// Writes take so many milliseconds at most.
    Slow(u64),
    /// Writes hang until then.
    Hangs(Timestamp),
}

/// A stretch: from when to when, and what its kind is drawn from.
struct Stretch {
    from: Timestamp,
    until: Timestamp,
    kind: u64,
}

/// Of a hundred slots, how many have a stretch of this class.
fn often(class: Fault) -> u64 {
    if class == Fault::Store { 45 } else { 25 }
}

/// The stretch of a class in the slot that this moment is in, if there is one.
fn stretch_near(faults: &Faults, class: Fault, at: Timestamp) -> Option<Stretch> {
    if !faults.has(class) {
        return None;
    }
    let slot = faults.age(at).as_secs() / SLOT.as_secs();
    let of = |what: &str, bound: Duration| {
        let bound = u64::try_from(bound.as_millis()).unwrap_or(u64::MAX);
        below(bound, faults.seed, format_args!("{class} {slot} {what}"))
    };
    let begins = at - faults.age(at) + SLOT * u32::try_from(slot).unwrap_or(u32::MAX);
    if !faults.has_at(class, begins) || of("here", Duration::from_millis(100)) >= often(class) {
        return None;
    }
    let from = begins + Duration::from_millis(of("begins", SLOT - STRETCH_MAX));
    let shortest = Duration::from_secs(1);
    let until = from + shortest + Duration::from_millis(of("lasts", STRETCH_MAX - shortest));
    Some(Stretch { from, until, kind: of("kind", Duration::from_millis(1 << 30)) })
}

/// The stretch of a class that this moment is in.
fn stretch(faults: &Faults, class: Fault, at: Timestamp) -> Option<Stretch> {
    stretch_near(faults, class, at).filter(|found| found.from <= at && at < found.until)
}

/// Since when what a node hears may not have become durable: since store or disk began to fail,
/// also if they are well again for no longer than it takes to go on; else since this moment.
pub(super) fn trouble_since(faults: &Faults, at: Timestamp) -> Timestamp {
    let mut since = at;
    for class in [Fault::Store, Fault::Disk] {
        // Where one stretch ends into the next, the trouble is as old as the first.
        for _ in 0..3 {
            let moments = [since, since - RECOVERY];
            let near = moments.into_iter().filter_map(|at| stretch_near(faults, class, at));
            let near = near.filter(|found| found.from < since && since < found.until + RECOVERY);
            since = near.map(|found| found.from).min().unwrap_or(since);
        }
    }
    since
}

/// How the object store is at this time.
pub(super) fn of_store(faults: &Faults, at: Timestamp) -> StoreWeather {
    match stretch(faults, Fault::Store, at) {
        None => StoreWeather::Fair,
        Some(Stretch { kind, until, .. }) => match kind % 5 {
            0 => StoreWeather::NoWrites,
            1 => StoreWeather::NoReads,
            2 => StoreWeather::Nothing,
            3 => StoreWeather::Slow(1_000 + kind % 9_000),
            _ => StoreWeather::Hangs(until),
        },
    }
}

/// Whether files cannot be written at this time.
pub(super) fn disk_fails(faults: &Faults, at: Timestamp) -> bool {
    stretch(faults, Fault::Disk, at).is_some()
}

/// Until when pages wait for a parser, or outputs stand still, if they do.
pub(super) fn standstill(faults: &Faults, what: &str, at: Timestamp) -> Option<Timestamp> {
    if !faults.has_at(Fault::Parser, at) {
        return None;
    }
    let slot = faults.age(at).as_secs() / STANDSTILLS_APART;
    let of = |which: &str, bound: u64| {
        below(bound, faults.seed, format_args!("{what} {slot} stands still {which}"))
    };
    if of("here", 100) >= 60 {
        return None;
    }
    let begins = of("begins", STANDSTILLS_APART - STANDSTILL_MAX);
    let ends = begins + 60 + of("lasts", STANDSTILL_MAX - 60);
    let age = faults.age(at).as_secs() % STANDSTILLS_APART;
    (age >= begins && age < ends).then(|| at + Duration::from_secs(ends - age))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::simulation::faults::FAULTS_FOR;

    #[test]
    fn every_weather_comes_and_passes() {
        let start = Timestamp::from_secs(1_000_000_000);
        let (mut kinds, mut fair, mut all) = (BTreeSet::new(), 0, 0);
        let (mut broken, mut still, mut troubled) = (0, 0, 0);
        for seed in 0..20 {
            let faults = Faults::new(seed, start, Fault::ALL.into_iter().collect());
            for second in (0..FAULTS_FOR.as_secs()).step_by(7) {
                let at = start + Duration::from_secs(second);
                let weather = of_store(&faults, at);
                all += 1;
                fair += u32::from(weather == StoreWeather::Fair);
                kinds.insert(format!("{weather:?}").split('(').next().unwrap_or("").to_owned());
                broken += u32::from(disk_fails(&faults, at));
                let since = trouble_since(&faults, at);
                assert!(since <= at && at.since(since) < 3 * (SLOT + RECOVERY));
                troubled += u32::from(since < at);
                still += u32::from(standstill(&faults, "parsers", at).is_some());
            }
            let after = start + FAULTS_FOR + SLOT;
            assert_eq!(of_store(&faults, after), StoreWeather::Fair);
            assert_eq!(trouble_since(&faults, after + SLOT), after + SLOT);
        }
        assert!(troubled > all - fair && troubled < all, "{troubled} of {all}");
        assert_eq!(kinds.len(), 6, "{kinds:?}");
        assert!(fair * 2 > all && broken > 0 && still > 0, "{fair} {broken} {still} of {all}");
    }
}
