//! Passing failures: when to try again, and when to give up (F8).
//!
//! The delay stands in the store as a due time, so no timer is needed and a restart forgets none.

use std::time::Duration;

/// `[retry]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    /// The wait after the first failure.
    pub base: Duration,
    /// How much longer each next wait is.
    pub factor: f64,
    /// Tries in all.
    pub max_attempts: u8,
}

/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// What becomes of a URL whose exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// Tried again after this wait.
    Again(Duration),
    /// A dead letter.
    GiveUp,
}

/// F8: after the `attempts`-th try (from 1) failed.
pub fn after_failure(retries: &Retries, attempts: u8) -> AfterFailure {
    if attempts >= retries.max_attempts {
        return AfterFailure::GiveUp;
    }
    let growth = retries.factor.max(1.0).powi(i32::from(attempts.saturating_sub(1)));
    let wait = Duration::try_from_secs_f64(retries.base.as_secs_f64() * growth);
    AfterFailure::Again(wait.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_the_fifth_failure_is_the_last() {
        let retries = Retries { base: Duration::from_secs(30), factor: 4.0, max_attempts: 5 };
        let waits: Vec<AfterFailure> = (1..=5).map(|n| after_failure(&retries, n)).collect();
        let again = |secs| AfterFailure::Again(Duration::from_secs(secs));
        assert_eq!(waits, [again(30), again(120), again(480), again(1920), AfterFailure::GiveUp]);
    }

    #[test]
    fn waits_are_capped_at_a_day() {
        let retries = Retries { base: Duration::from_secs(30), factor: 100.0, max_attempts: 255 };
        let day = AfterFailure::Again(Duration::from_secs(86_400));
        assert_eq!(after_failure(&retries, 200), day);
    }
}
