//! The frontier as a whole, on paused time.

mod flow;
