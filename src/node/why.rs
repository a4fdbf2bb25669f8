//! B1 without a daemon: the policy that the configuration would put in force.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::NodeError;
use super::settings;
use crate::config::Config;
use crate::policy::host::HostSettings;
use crate::policy::scope::Scope;
use crate::policy::traps::trap;
use crate::policy::why::Judged;
use crate::types::{CrawlUrl, HostKey};

/// The policy for one host.
pub fn host_settings(config: &Config, host: &HostKey) -> Arc<HostSettings> {
    settings::host_policy(config)(host)
}

/// What scope and traps say of a URL at this depth, around these seeds' hosts.
///
/// # Errors
/// The rules of the scope cannot be read.
pub fn judged(
    config: &Config,
    seeded: &BTreeSet<HostKey>,
    url: &CrawlUrl,
    depth: u16,
) -> Result<Judged, NodeError> {
    let settings = settings::discovery(config)?;
    let roots = seeded.iter().filter_map(|host| CrawlUrl::parse(&format!("{host}/")).ok());
    let roots: Vec<CrawlUrl> = roots.collect();
    let scope = Scope::new(settings.scope, &roots);
    Ok(Judged { scope: scope.judge(url, depth).err(), trap: trap(url, &settings.traps) })
}
