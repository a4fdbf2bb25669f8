//! Builds everything in the order of the flow; the only wiring.
