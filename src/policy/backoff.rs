//! What a refusal costs a host: 429 and 503 (F7).
//!
//! A Retry-After is obeyed as it stands. Without one the wait doubles with every refusal in a row,
//! jittered. Either way the host's pace slows at once and recovers slowly.

use std::time::Duration;

use crate::types::{BackoffState, DelaySource, Moment};

use super::politeness::Delay;

/// The first wait after a refusal without Retry-After.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// The longest wait that we choose ourselves.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// How much slower a host is asked after each refusal.
const SLOWDOWN_FACTOR: f32 = 2.0;
/// The slowest pace, in multiples of the configured delay.
const SLOWDOWN_MAX: f32 = 16.0;
/// How much of the slowdown is left after each success.
const RECOVERY: f32 = 0.95;

/// F7: the host refused; how long to leave it alone.
pub fn refused(state: &mut BackoffState, retry_after: Option<Duration>, now: Moment) -> Delay {
    let doublings = u32::from(state.refusals).min(16);
    state.refusals = state.refusals.saturating_add(1);
    state.slowdown = (pace(state) * SLOWDOWN_FACTOR).min(SLOWDOWN_MAX);
    match retry_after {
        Some(wait) => Delay { wait, set_by: DelaySource::RetryAfter },
        None => {
            let base = FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT);
            let jitter = base.mul_f64(0.5 * now.fraction());
            Delay { wait: base + jitter, set_by: DelaySource::Backoff }
        }
    }
}

/// The host answered as it should.
pub fn recovered(state: &mut BackoffState) {
    state.refusals = 0;
    state.failures = 0;
    state.slowdown = (pace(state) * RECOVERY).max(1.0);
}

/// How much slower than configured the host is asked now; at least 1.
pub fn pace(state: &BackoffState) -> f32 {
    if state.slowdown.is_finite() { state.slowdown.max(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Timestamp;

    fn now() -> Moment {
        Moment::new(Timestamp::EPOCH, 0)
    }

    #[test]
    fn a_retry_after_is_obeyed_as_it_stands() {
        let mut state = BackoffState::default();
        let asked = Some(Duration::from_secs(86_400 * 3));
        assert_eq!(refused(&mut state, asked, now()).wait, Duration::from_secs(86_400 * 3));
    }

    #[test]
    fn waits_without_one_double_up_to_an_hour() {
        let mut state = BackoffState::default();
        let waits: Vec<u64> =
            (0..9).map(|_| refused(&mut state, None, now()).wait.as_secs()).collect();
        assert_eq!(waits, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
    }

    #[test]
    fn the_pace_falls_at_once_and_recovers_slowly() {
        let mut state = BackoffState::default();
        refused(&mut state, None, now());
        assert!((pace(&state) - 2.0).abs() < 1e-6);
        recovered(&mut state);
        assert!(pace(&state) > 1.8);
        (0..60).for_each(|_| recovered(&mut state));
        assert!((pace(&state) - 1.0).abs() < 1e-6);
        assert_eq!(state.refusals, 0);
    }
}
