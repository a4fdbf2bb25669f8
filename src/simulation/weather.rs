//! Stretches of virtual time in which something that is otherwise well fails, is slow or hangs.

use std::time::Duration;

use super::draw::below;
use super::faults::{Fault, Faults};
use crate::types::Timestamp;

/// At most one stretch of a class in so long.
const SLOT: Duration = Duration::from_secs(150);
/// The longest stretch of a failing or hanging store or disk.
const STRETCH_MAX: Duration = Duration::from_secs(90);
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

/// The stretch of a class that this moment is in: what it draws its kind from, and its end.
fn stretch(faults: &Faults, class: Fault, at: Timestamp, often: u64) -> Option<(u64, Timestamp)> {
    if !faults.has_at(class, at) {
        return None;
    }
    let slot = faults.age(at).as_millis() / SLOT.as_millis();
    let of = |what: &str, bound: u128| {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        below(bound, faults.seed, format_args!("{class} {slot} {what}"))
    };
    if of("here", 100) >= often {
        return None;
    }
    let age = faults.age(at) - Duration::from_millis(u64::try_from(slot * SLOT.as_millis()).ok()?);
    let begins = Duration::from_millis(of("begins", (SLOT - STRETCH_MAX).as_millis()));
    let ends = begins + Duration::from_millis(1000 + of("lasts", STRETCH_MAX.as_millis() - 1000));
    (age >= begins && age < ends).then(|| (of("kind", 1 << 30), at + (ends - age)))
}

/// How the object store is at this time.
pub(super) fn of_store(faults: &Faults, at: Timestamp) -> StoreWeather {
    match stretch(faults, Fault::Store, at, 45) {
        None => StoreWeather::Fair,
        Some((kind, until)) => match kind % 5 {
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
    stretch(faults, Fault::Disk, at, 25).is_some()
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
        let (mut broken, mut still) = (0, 0);
        for seed in 0..20 {
            let faults = Faults::new(seed, start, Fault::ALL.into_iter().collect());
            for second in (0..FAULTS_FOR.as_secs()).step_by(7) {
                let at = start + Duration::from_secs(second);
                let weather = of_store(&faults, at);
                all += 1;
                fair += u32::from(weather == StoreWeather::Fair);
                kinds.insert(format!("{weather:?}").split('(').next().unwrap_or("").to_owned());
                broken += u32::from(disk_fails(&faults, at));
                still += u32::from(standstill(&faults, "parsers", at).is_some());
            }
            let after = start + FAULTS_FOR;
            assert_eq!(of_store(&faults, after), StoreWeather::Fair);
        }
        assert_eq!(kinds.len(), 6, "{kinds:?}");
        assert!(fair * 2 > all && broken > 0 && still > 0, "{fair} {broken} {still} of {all}");
    }
}
