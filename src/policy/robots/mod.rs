//! RFC 9309: text to rules, rules to verdicts, answers to states (R1, R2).
//!
//! In: what came for `/robots.txt`, and the moment it came. Out: whether a path may be requested,
//! by which line; when to ask again; the record that survives a restart.

mod parse;
mod matching;
mod freshness;
mod state;

pub use freshness::freshness;
pub use matching::Verdict;
pub(super) use matching::{Path, Pattern};
pub use parse::{Group, Rules, Skipped};
pub(super) use parse::{Key, Line, lines, names, names_everyone, pattern_of};
pub(in crate::policy) use state::retry_delay;
pub use state::{
    Answered, Decision, FreshKind, LongUnreachable, RobotsAnswer, RobotsSettings, RobotsState,
};
