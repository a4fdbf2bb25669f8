//! The order of evidence for an encoding, against the standard's own cases.
