//! How a command ends: its exit status, and a failure as a short chain of sentences.

use std::process::ExitCode;

use serde_json::{Value, json};

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

impl Exit {
    /// The number of it.
    pub(super) fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Wrong => 2,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.status())
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
    // As the context of another failure it is no link of the chain.
    let wrong = failure.is::<WrongUse>();
    if wrong || failure.chain().any(|cause| cause.is::<WrongUse>() || is_configuration(cause)) {
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

/// The same for programs: `error`, `because` (its causes), `exit_status`; of a configuration its
/// `faults` too.
pub(super) fn told_in_json(failure: &anyhow::Error) -> Value {
    let text = failure.to_string();
    let faults = failure.downcast_ref::<ConfigFaults>();
    // Its other lines are the faults.
    let error = if faults.is_some() { text.lines().next().unwrap_or_default() } else { &text };
    let mut told = json!({
        "error": error,
        "because": causes(failure, &text),
        "exit_status": exit_of(failure).status(),
    });
    if let Some(faults) = faults {
        told["faults"] = json!(listed(faults));
    }
    told
}

/// Faults for programs.
pub(super) fn listed(faults: &ConfigFaults) -> Vec<Value> {
    let fault = |fault: &crate::config::Fault| {
        json!({
            "key": fault.key,
            "origin": fault.origin.to_string(),
            "line": fault.origin.line(),
            "found": fault.found,
            "problem": fault.problem,
            "remedy": fault.remedy,
        })
    };
    faults.faults.iter().map(fault).collect()
}

/// What a failure comes from. Some libraries repeat their cause in their own words.
fn causes(failure: &anyhow::Error, told: &str) -> Vec<String> {
    let mut said = told.to_owned();
    let causes = failure.chain().skip(1).map(ToString::to_string);
    causes
        .filter(|cause| {
            let adds = !said.ends_with(cause.as_str());
            if adds {
                said.clone_from(cause);
            }
            adds
        })
        .collect()
}

/// `error: …`, and a line `  because: …` for each cause that adds to it.
pub(super) fn told(failure: &anyhow::Error) -> String {
    let mut text = format!("error: {failure}");
    for cause in causes(failure, &failure.to_string()) {
        text.push_str("\n  because: ");
        text.push_str(&cause);
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
        let gone = std::io::Error::from(std::io::ErrorKind::NotFound);
        let outer = anyhow::Error::new(gone).context(WrongUse("no file".into()));
        assert_eq!(exit_of(&outer), Exit::Wrong);
        let told = json!({ "error": "no file", "because": ["entity not found"], "exit_status": 2 });
        assert_eq!(told_in_json(&outer), told);
        assert_eq!(exit_of(&Interrupted.into()), Exit::Interrupted);
        let faults = crate::config::Config::default().crawlable().unwrap_err();
        let faults = anyhow::Error::from(faults);
        assert_eq!(exit_of(&faults), Exit::Wrong);
        assert_eq!(told_in_json(&faults)["faults"][0]["key"], "identity.contact_url");
    }
}
