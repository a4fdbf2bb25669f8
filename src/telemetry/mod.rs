//! Logs, metrics and traces: one struct per noteworthy event (U4).
