//! How a command ends: its exit status, and a failure as a short chain of sentences.

use std::process::ExitCode;

use crate::config::ConfigFaults;
use crate::node::NodeError;

/// The exit status (docs/interface.md, "Commands").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// What was asked for is done.
    Done,
    /// It failed.
    Failed,
    /// Wrong use or a bad configuration.
    Wrong,
    /// Interrupted, and stopped cleanly.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Wrong => 2,
            Exit::Interrupted => 130,
        })
    }
}

/// Something asked for that makes no sense, in words that say what would.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct WrongUse(pub(super) String);

/// A second signal came, or the first before there was anything to stop.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(super) struct Interrupted;

/// The exit status of a failure.
pub(super) fn exit_of(failure: &anyhow::Error) -> Exit {
    if failure.chain().any(|cause| cause.is::<WrongUse>() || is_configuration(cause)) {
        Exit::Wrong
    } else if failure.chain().any(|cause| cause.is::<Interrupted>()) {
        Exit::Interrupted
    } else {
        Exit::Failed
    }
}

/// The configuration is at fault: in itself, or by what this build or this directory can do.
fn is_configuration(cause: &(dyn std::error::Error + 'static)) -> bool {
    let node = cause.downcast_ref::<NodeError>();
    cause.is::<ConfigFaults>()
        || matches!(node, Some(NodeError::Settings(_) | NodeError::Shards { .. }))
}

/// `error: …`, and a line `  because: …` for each cause that adds to it.
pub(super) fn told(failure: &anyhow::Error) -> String {
    let mut text = format!("error: {failure}");
    for cause in failure.chain().skip(1).map(ToString::to_string) {
        // Some libraries repeat their cause in their own words.
        if !text.ends_with(&cause) {
            text.push_str("\n  because: ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_failure_is_a_short_chain() {
        let gone = std::io::Error::from(std::io::ErrorKind::NotFound);
        let failure = anyhow::Error::new(gone).context("failed to open a.txt").context("no seeds");
        let expected =
            "error: no seeds\n  because: failed to open a.txt\n  because: entity not found";
        assert_eq!(told(&failure), expected);
        assert_eq!(exit_of(&failure), Exit::Failed);
    }

    #[test]
    fn what_was_asked_wrongly_is_told_from_what_failed() {
        let wrong = Err::<(), _>(WrongUse("no".into())).context("outer").unwrap_err();
        assert_eq!(exit_of(&wrong), Exit::Wrong);
        assert_eq!(exit_of(&Interrupted.into()), Exit::Interrupted);
        let faults = crate::config::Config::default().crawlable().unwrap_err();
        assert_eq!(exit_of(&faults.into()), Exit::Wrong);
    }
}
