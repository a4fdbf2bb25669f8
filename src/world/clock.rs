//! The only file that may ask what time it is.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::time::Instant;

use crate::types::Timestamp;

/// Time as the crawler sees it: wall time at the start plus monotonic time elapsed.
#[async_trait]
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time now. Never goes back.
    fn now(&self) -> Timestamp;

    /// Returns once `at` has come.
    async fn sleep_until(&self, at: Timestamp);

    /// Returns after `span`.
    async fn sleep(&self, span: Duration) {
        self.sleep_until(self.now() + span).await;
    }

    /// An actor of this kind begins a step. The real clock has nothing to do; a simulated one may
    /// let the actor die here, or the whole node.
    fn step(&self, _actor: &'static str) {}
}

/// The machine's clock: the wall is read once, then only tokio's monotonic clock, so a clock step
/// never moves a wait. Under tokio's paused time it is the virtual clock.
#[derive(Debug)]
pub struct TokioClock {
    started_at: Timestamp,
    started: Instant,
}

impl TokioClock {
    /// Starts from the machine's wall clock.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the wall clock")]
    pub fn system() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::starting_at(Timestamp::EPOCH + since)
    }

    /// Starts from a given time: for tests and the simulation.
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the monotonic clock")]
    pub fn starting_at(started_at: Timestamp) -> Self {
        Self { started_at, started: Instant::now() }
    }
}

#[async_trait]
impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.started_at + self.started.elapsed()
    }

    async fn sleep_until(&self, at: Timestamp) {
        let wait = at.since(self.now());
        if !wait.is_zero() {
            // A timer may ring up to a millisecond early in our units: the elapsed part of a
            // millisecond is cut off, so one more is waited for.
            tokio::time::sleep_until(self.started + at.since(self.started_at)).await;
        }
    }
}
