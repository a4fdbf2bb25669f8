//! What the black-box tests share: a local site, the real binary, and patience with a bound.
//!
//! Nothing here sleeps for a fixed time: a test waits for a fact, and fails when it does not come.

#![allow(dead_code, reason = "each test file uses its part of it")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

pub(crate) mod site;
pub(crate) mod node;
pub(crate) mod http;
pub(crate) mod data;
pub(crate) mod events;
pub(crate) mod world;
pub(crate) mod torture;

use std::time::{Duration, Instant};

use mehman::world::{Clock as _, TokioClock};

/// How often a fact is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The test's own clock, which is not the crawler's.
#[expect(clippy::disallowed_methods, reason = "what the crawler says of time is judged by it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns what `look` finds; fails when it has found nothing after `seconds`.
pub(crate) async fn until<T>(
    what: &str,
    seconds: u64,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let (clock, start) = (TokioClock::system(), now());
    loop {
        if let Some(found) = look().await {
            return found;
        }
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(seconds), "{what}: not after {waited:?}");
        clock.sleep(LOOK_EVERY).await;
    }
}

/// A temporary directory for one crawl.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}
