//! RFC 9309: text to rules, rules to verdicts, answers to states (R1, R2).
