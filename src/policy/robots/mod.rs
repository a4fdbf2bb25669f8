//! RFC 9309: text to rules, rules to verdicts, answers to states (R1, R2).

/// `[robots]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RobotsSettings;
