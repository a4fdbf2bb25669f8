//! The frontier as a whole, on paused time.

mod flow;
mod restart;
mod failure;
mod operators;
mod shown;
mod exclusions;
mod purge;
mod clocks;
mod chaos;
