//! The admin HTTP interface, version 1 (U2, U4).
//!
//! In: requests of operators and integrators. Out: what the actors say when asked, and orders to
//! them. One table of routes makes the [`router()`], the OpenAPI document and the refusals.
//! Nothing is kept here but a few samples for a rate: every answer is asked for, with a deadline.
//! What changes something is answered once it is durable.

mod state;
mod problem;
mod auth;
mod query;
mod body;
mod serve;
mod router;
mod routes;
mod openapi;
mod schemas;
mod status;
mod hosts;
mod host_state;
mod urls;
mod why;
mod asks;
mod seeds;
mod letters;
mod exclusions;
mod events;
mod actors;
mod control;
mod health;
mod metrics;
mod dashboard;
mod about;
#[cfg(test)]
mod tests;

pub use asks::PageReader;
pub use auth::Token;
pub use events::{EventLine, event_line};
pub use host_state::{AllowanceState, BackoffView, HostState};
pub use letters::LetterItem;
pub use router::router;
pub use seeds::SeedsAnswer;
pub use serve::{ServeError, serve};
pub use state::{
    AdminSettings, AdminShared, AdminState, Control, CrawlPhase, ListedExclusion, PurgeStanding,
    Refused, ReloadReport, WithPurge,
};
pub use status::{HostFigures, QueueFigures, RunState, Status, UrlFigures, collect};
pub use urls::UrlState;
