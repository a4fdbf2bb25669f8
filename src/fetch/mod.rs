//! Leases in, responses and outcomes out.
//!
//! In: a `FetchJob` from a shard over the pool's bounded channel, durable already (I7). Out: the
//! response as received to the archive, or, where none came, its end to the shard that granted it.
//!
//! One exchange is one hop to one pinned address (H2, I6); its time of sending is asked at the
//! host's and the address's clock (I2). Nothing is retried, followed or decoded here; only the body
//! of robots.txt is undone, since its host waits for it.

mod resolve;
mod sessions;
mod failure;
mod body;
mod http1;
mod http2;
mod pool;
mod connect;
mod request;
mod client;
mod settings;
mod robots;
mod classify;
mod worker;

pub use client::{EgressCheck, HttpExchange};
pub use connect::{ConnectError, ConnectSettings, roots_of};
pub use resolve::{DnsSettings, HickoryResolver, ResolverError};
pub use settings::FetchSettings;
pub use worker::{FetchActor, FetchContext, FetchHeld, FetchState, Fetchers};
