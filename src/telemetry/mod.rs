//! Logs, metrics and events (U4): one struct per noteworthy event.
//!
//! In: facts of the stages. Out: one log line and one metric each. Nothing here decides; nothing is
//! global but the log's subscriber, which only the binary starts.

mod metrics;
mod outputs;
mod events;

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

pub use events::{
    ArchiveFileClosed, ConfigReloaded, DiskFailed, HostParked, PurgeDone, ShardReopened,
    StoreFailed, TornTailCut, WorkerRestarted,
};
pub(crate) use metrics::as_float;
pub use metrics::{Counter, Declared, Family, FamilyKind, Histogram, Metrics, Sample, render};
pub use outputs::OutputFigures;

/// Why the log could not be started.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not one.
    #[error("the log filter `{filter}` is not valid")]
    Filter {
        /// As given.
        filter: String,
        /// The parser's words.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// Another subscriber runs already.
    #[error("the log has been started already")]
    Started,
}

/// Starts the log on standard error, as text or as JSON Lines. Called once, by the binary.
///
/// `filter` is in the form of tracing's directives: `info`, `mehman::fetch=debug,warn`.
///
/// # Errors
/// The filter is not valid, or the log runs already.
pub fn init(filter: &str, json: bool) -> Result<(), TelemetryError> {
    let parsed = EnvFilter::try_new(filter)
        .map_err(|source| TelemetryError::Filter { filter: filter.to_owned(), source })?;
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        .with_ansi(colours);
    let started = if json { lines.json().try_init() } else { lines.try_init() };
    started.map_err(|_already| TelemetryError::Started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_is_none_is_named() {
        let refused = init("mehman=loud=er", false).unwrap_err();
        assert!(refused.to_string().contains("mehman=loud=er"));
    }
}
