//! One TOML file in, one checked `Config` out; every fault named at once (U1).
//!
//! In: a file, the environment, options of the command line. Out: a [`Config`] that needs no second
//! check, or [`ConfigFaults`]. Each key is defined once, in the file of its section, by `section!`.

mod units;
mod faults;
mod nearest;
mod raw;
mod keys;
mod reader;
mod define;
mod value;
mod identity;
mod data;
mod fetch;
mod politeness;
mod limits;
mod scope;
mod output;
mod recrawl;
mod cluster;
mod checked;
mod show;
mod diff;

pub use checked::{Config, keys};
pub use cluster::{Cluster, CoordinatorKind, Frontier};
pub use data::Data;
pub use diff::{ConfigChange, Effect};
pub use faults::{ConfigFaults, Fault, Origin};
pub use fetch::{Dns, Fetch, Oversize, UnreadTypes};
pub use identity::{Admin, Identity};
pub use keys::Key;
pub use limits::{Limits, LongUnreachable, Retry, Robots};
pub use output::{Archive, ArchiveFormat, Extract, Output, OutputKind, Parse, Purpose};
pub use politeness::{Allowance, DomainName, HostPattern, HostPoliteness, Politeness};
pub(crate) use raw::PREFIX;
pub use recrawl::{Recrawl, RecrawlClass};
pub use scope::{Scope, ScopeMode, Traps};
pub use show::Secrets;
pub use units::{ByteSize, UnitError, parse_duration, show_duration};
pub use value::Secret;
