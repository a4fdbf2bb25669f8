//! Builds everything in the order of the flow; the only wiring.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::admin::{AdminState, Status};
use crate::config::{Config, ConfigChange};
use crate::protocol::discovery::{Seed, SeedAnswer};
use crate::protocol::shard::ParkedHost;
use crate::types::Timestamp;

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Crawl until done.
    Crawl,
    /// Run for months.
    Serve,
}

/// What a node is made from.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The configuration.
    pub config: Arc<Config>,
    /// What it is for.
    pub purpose: Purpose,
}

/// Why a node failed.
#[derive(Debug, thiserror::Error)]
#[error("in progress")]
pub struct NodeError;

/// How far a crawl is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Requests in flight.
    pub in_flight: u32,
    /// When something next wants attention.
    pub next_wake: Option<Timestamp>,
    /// A stage has work in hand.
    pub busy: bool,
    /// Hosts that wait for long.
    pub waiting: Vec<ParkedHost>,
    /// `scope.max_pages` is reached.
    pub page_cap_reached: bool,
}

/// A node.
#[derive(Debug)]
pub struct Node(());

impl Node {
    /// Starts all actors.
    ///
    /// # Errors
    /// In progress.
    pub async fn start(_options: NodeOptions) -> Result<Self, NodeError> {
        Err(NodeError)
    }

    /// For the admin interface.
    pub fn admin(&self) -> AdminState {
        unreachable!("in progress")
    }

    /// Gives seeds; durable when it answers.
    ///
    /// # Errors
    /// In progress.
    pub async fn seed(&self, _seeds: Vec<Seed>) -> Result<Vec<SeedAnswer>, NodeError> {
        Err(NodeError)
    }

    /// How it stands.
    pub async fn status(&self) -> Status {
        unreachable!("in progress")
    }

    /// How far it is.
    pub async fn progress(&self) -> Progress {
        unreachable!("in progress")
    }

    /// Serves the admin interface.
    pub fn serve_admin(&self, _listener: TcpListener) {}

    /// Takes a new configuration.
    pub fn reload(&self, _new: Config) -> Vec<ConfigChange> {
        Vec::new()
    }

    /// Stops.
    ///
    /// # Errors
    /// In progress.
    pub async fn stop(self, _limit: Duration) -> Result<(), NodeError> {
        Err(NodeError)
    }
}
