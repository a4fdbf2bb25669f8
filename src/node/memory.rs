//! How `limits.memory` is shared out among what holds memory.

use crate::config::Config;
use crate::storage::UNFLUSHED_BYTES_MAX;

/// What a machine has when it does not say.
const MACHINE_UNKNOWN: u64 = 8 << 30;
/// Less than this is too little to crawl with.
const LEAST: u64 = 256 << 20;

/// Bytes for each holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryPlan {
    /// Bodies between fetcher and parser.
    pub(super) bodies: u64,
    /// Bodies on their way to us, and large ones until nobody has them any more.
    pub(super) arriving: u64,
    /// Blocks of the stores that were read.
    pub(super) block_cache: u64,
    /// Rows of all shards that are not in their final place.
    pub(super) unflushed: u64,
    /// Fingerprints of known URLs, all shards together.
    pub(super) fingerprints: u64,
}

impl MemoryPlan {
    /// That of a node of its own.
    pub(super) fn of(config: &Config) -> Self {
        Self::new(config.limits.memory.map(|limit| limit.bytes()), config.frontier.shards)
    }

    /// Shares out `limit`, or a quarter of the machine, for a node of that many shards. What the
    /// shards need not have unflushed is better used for what they read.
    pub(super) fn new(limit: Option<u64>, shards: u16) -> Self {
        let total = limit.unwrap_or_else(|| machine() / 4).max(LEAST);
        let unflushed = (total / 4).min(u64::from(shards) * UNFLUSHED_BYTES_MAX);
        Self {
            bodies: total / 4,
            arriving: total / 8,
            block_cache: total / 2 - unflushed,
            unflushed,
            fingerprints: total / 8,
        }
    }
}

/// The memory of this machine in bytes, as the kernel says.
fn machine() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = text.lines().find_map(|line| {
        let rest = line.strip_prefix("MemTotal:")?;
        rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kilobytes.map_or(MACHINE_UNKNOWN, |kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_make_the_whole() {
        let plan = MemoryPlan::new(Some(1 << 30), 4);
        let stores = plan.block_cache + plan.unflushed + plan.fingerprints;
        let sum = plan.bodies + plan.arriving + stores;
        assert_eq!(sum, 1 << 30);
        assert_eq!(plan.unflushed, 4 * UNFLUSHED_BYTES_MAX);
        assert_eq!(MemoryPlan::new(Some(1 << 30), 256).unflushed, 1 << 28);
        assert!(MemoryPlan::new(None, 1).bodies > 0);
    }
}
