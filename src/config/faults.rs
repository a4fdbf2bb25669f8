//! What is wrong with a configuration: every fault, each with its key, its place, the value found
//! and what would do (U1).

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: the built-in default.
    Default,
    /// In the configuration file.
    File {
        /// As given on the command line.
        path: Arc<Path>,
        /// From 1; 0 where the file as a whole is meant.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
    /// By a variable of this name.
    Environment(String),
    /// By an option on the command line.
    Flag,
}

impl Origin {
    /// The line in the file, where the value comes from one.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::File { line: 0, .. } => None,
            Self::File { line, .. } => Some(*line),
            Self::Default | Self::Environment(_) | Self::Flag => None,
        }
    }
}

impl Origin {
    /// By what faults are put in order: the file, variables, options, and what nobody set.
    fn place(&self) -> (u8, usize, usize) {
        match self {
            Self::File { line, column, .. } => (0, *line, *column),
            Self::Environment(_) => (1, 0, 0),
            Self::Flag => (2, 0, 0),
            Self::Default => (3, 0, 0),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: 0, .. } => write!(f, "{}", path.display()),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Environment(name) => f.write_str(name),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path of the key, `politeness.min_delay`; empty when the whole file is at fault.
    pub key: String,
    /// Where it was set.
    pub origin: Origin,
    /// The value found, as TOML would write it; `None` where there is none to show.
    pub found: Option<String>,
    /// What is wrong with it.
    pub problem: String,
    /// What would do; empty when the problem says it already.
    pub remedy: String,
}

impl Fault {
    /// A value that was read well and that its user cannot work with; its place is still unknown.
    pub fn of(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            origin: Origin::Default,
            found: None,
            problem: problem.into(),
            remedy: String::new(),
        }
    }

    /// With the value found.
    #[must_use]
    pub fn found(self, value: impl fmt::Debug) -> Self {
        Self { found: Some(format!("{value:?}")), ..self }
    }

    /// With what would do.
    #[must_use]
    pub fn remedy(self, remedy: &str) -> Self {
        Self { remedy: remedy.to_owned(), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Default => {}
            Origin::File { .. } | Origin::Environment(_) | Origin::Flag => {
                write!(f, "{}: ", self.origin)?;
            }
        }
        match (&self.found, self.key.is_empty()) {
            (Some(found), false) => write!(f, "{} = {found}: ", self.key)?,
            (None, false) => write!(f, "{}: ", self.key)?,
            (_, true) => {}
        }
        f.write_str(&self.problem)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

/// All faults of a configuration, in the order of their places: lines, variables, options; never
/// empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", listed(.faults))]
pub struct ConfigFaults {
    /// One and more.
    pub faults: Vec<Fault>,
}

fn listed(faults: &[Fault]) -> String {
    let head = match faults.len() {
        1 => "a fault in the configuration".to_owned(),
        number => format!("{number} faults in the configuration"),
    };
    faults.iter().fold(head, |text, fault| format!("{text}\n  {fault}"))
}

impl ConfigFaults {
    /// Refuses when there is any.
    ///
    /// # Errors
    /// The faults.
    pub fn refuse(faults: Vec<Fault>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self { faults }) }
    }
}

impl From<Fault> for ConfigFaults {
    fn from(fault: Fault) -> Self {
        Self { faults: vec![fault] }
    }
}

/// Collects faults while a configuration is read.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: Vec<Fault>,
    unreadable: bool,
}

impl Faults {
    /// Adds a fault.
    pub(super) fn push(&mut self, fault: Fault) {
        self.found.push(Fault { problem: in_one_line(&fault.problem), ..fault });
    }

    /// Adds a fault of the file as a whole; what it would have said is unknown, so checks of keys
    /// against each other would only mislead.
    pub(super) fn push_unreadable(&mut self, fault: Fault) {
        self.unreadable = true;
        self.push(fault);
    }

    /// Whether the key holds what was asked for, so that it can be checked against others.
    pub(super) fn sound(&self, key: &str) -> bool {
        let inside = |fault: &Fault| {
            fault.key.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
        };
        !self.unreadable && !self.found.iter().any(inside)
    }

    /// The faults, if there are any.
    pub(super) fn into_result(mut self) -> Result<(), ConfigFaults> {
        self.found.sort_by_key(|fault| fault.origin.place());
        ConfigFaults::refuse(self.found)
    }
}

/// Libraries draw pictures of what is wrong; a fault is a line of a list.
fn in_one_line(problem: &str) -> String {
    let lines = problem.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}
