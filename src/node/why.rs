//! B1 without a daemon: the policy that the configuration would put in force.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use super::error::NodeError;
use super::settings;
use crate::admin::PageReader;
use crate::archive::ArchiveReader;
use crate::config::Config;
use crate::policy::address::literal;
use crate::policy::host::HostSettings;
use crate::policy::scope::Scope;
use crate::policy::traps::trap;
use crate::policy::why::Judged;
use crate::types::{CrawlUrl, HostKey, Reason};
use crate::world::{Clock, DirectorySpool};

/// The policy for one host.
pub fn host_settings(config: &Config, host: &HostKey) -> Arc<HostSettings> {
    settings::host_policy(config)(host)
}

/// H4: why the address in a URL may not be connected to, where one is and it may not.
pub fn egress(config: &Config, url: &CrawlUrl) -> Option<Reason> {
    literal(url).and_then(|address| settings::egress(config)(address).err())
}

/// The stored pages of a data directory.
///
/// # Errors
/// What parsers are told cannot be read.
pub fn page_reader(
    config: &Config,
    directory: &Path,
    clock: Arc<dyn Clock>,
) -> Result<PageReader, NodeError> {
    let settings = Arc::new(settings::parse(config)?);
    let spool = Arc::new(DirectorySpool::new(directory));
    Ok(PageReader {
        records: Arc::new(ArchiveReader::new(spool)),
        settings: watch::Sender::new(settings).subscribe(),
        clock,
    })
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
    Ok(Judged {
        scope: scope.judge(url, depth).err(),
        trap: trap(url, &settings.traps),
        scope_by: None,
    })
}
