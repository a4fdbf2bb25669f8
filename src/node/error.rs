//! Why a node does not start or stop as it should.

use ractor::SpawnErr;
use thiserror::Error;

use crate::config::ConfigFaults;
use crate::fetch::{ConnectError, ResolverError};
use crate::storage::{DirectoryError, MadeShardsError, SnapshotsError, StoreError};
use crate::types::ShardId;
use crate::world::ObjectsError;

/// A node cannot start, or could not stop cleanly.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The data directory is in use, newer, or damaged.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Shards that the data directory had are not where they were.
    #[error(transparent)]
    MadeShards(#[from] MadeShardsError),
    /// `data.store` cannot be opened.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The snapshots cannot be opened.
    #[error("failed to open the snapshots of sleeping hosts")]
    Snapshots(#[from] SnapshotsError),
    /// A shard's store cannot be opened.
    #[error("failed to open shard {shard}")]
    Store {
        /// Which.
        shard: ShardId,
        /// Why.
        #[source]
        source: Box<StoreError>,
    },
    /// Names cannot be resolved.
    #[error(transparent)]
    Resolver(#[from] ResolverError),
    /// The HTTP client cannot be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Values that can only be judged with what lies outside the configuration.
    #[error(transparent)]
    Settings(#[from] ConfigFaults),
    /// The data directory was made with another number of shards.
    #[error(
        "`frontier.shards` is {wanted}, and this data directory was made with {found}: the number \
         is chosen once"
    )]
    Shards {
        /// What the configuration says.
        wanted: u16,
        /// What the directory has.
        found: u16,
    },
    /// The data directory recognises URLs by another form than this build (D1).
    #[error(
        "this data directory recognises URLs by form {found}, and this build by form {known}: it \
         would take known URLs for new ones"
    )]
    Form {
        /// What this build makes.
        known: u16,
        /// What the directory has.
        found: u16,
    },
    /// The coordinator does not answer.
    #[error("failed to take the shards: {0}")]
    Coordinator(String),
    /// An actor did not start.
    #[error("failed to start {actor}: {why}")]
    Start {
        /// Which.
        actor: String,
        /// Its words.
        why: String,
    },
    /// An actor that should answer is gone.
    #[error("{0} does not answer")]
    Silent(&'static str),
    /// Something could not be made durable in time.
    #[error("stopped, but not cleanly: {0}")]
    Unclean(String),
}

impl NodeError {
    /// An actor that cannot start says why; ractor would call it a panic.
    pub(super) fn not_started(actor: &str, why: SpawnErr) -> Self {
        let why = match why {
            SpawnErr::StartupFailed(why) => why.to_string(),
            why @ (SpawnErr::ActorAlreadyStarted | SpawnErr::ActorAlreadyRegistered(_)) => {
                why.to_string()
            }
        };
        Self::Start { actor: actor.to_owned(), why }
    }
}

/// Names the actor that could not be started.
pub(super) fn failed(actor: &'static str) -> impl Fn(SpawnErr) -> NodeError {
    move |why| NodeError::not_started(actor, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_that_cannot_start_is_quoted_as_it_is() {
        let why = SpawnErr::StartupFailed("bytes are missing".into());
        let error = NodeError::not_started("outputs", why);
        assert_eq!(error.to_string(), "failed to start outputs: bytes are missing");
    }
}
