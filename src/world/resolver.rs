//! Names to addresses (H5).

use std::fmt;
use std::net::IpAddr;

use async_trait::async_trait;

use crate::types::{Reason, Timestamp};

/// The addresses of a name, in the order they should be tried; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// As answered; not yet checked against the networks that may be connected to.
    pub addresses: Vec<IpAddr>,
    /// Until when the answer may be used.
    pub until: Timestamp,
}

/// Resolves names. Real: hickory, cached. Simulated: a table.
#[async_trait]
pub trait Resolver: Send + Sync + fmt::Debug {
    /// The addresses of a host name or of an address literal (brackets allowed).
    ///
    /// # Errors
    /// [`Reason::Dns`] when it does not resolve.
    async fn resolve(&self, host: &str) -> Result<Resolved, Reason>;
}
