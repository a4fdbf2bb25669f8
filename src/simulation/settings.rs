//! The configuration of a simulated node: the defaults, but for what would make a run large or ask
//! the machine.

use crate::config::{Config, ConfigFaults};

/// The configuration of every life of a run.
pub(super) fn config() -> Result<Config, ConfigFaults> {
    let set = [
        ("identity.contact_url", "https://operator.example/crawler"),
        ("scope.mode", "any"),
        ("frontier.shards", "2"),
        ("frontier.resident_hosts", "8"),
        ("fetch.workers", "12"),
        ("parse.workers", "2"),
        ("limits.memory", "256MiB"),
        // Shorter than a run, so that decisions end and are asked for again.
        ("robots.cache", "20m"),
        ("archive.max_file_size", "256KiB"),
        ("archive.max_file_age", "10m"),
    ];
    let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Config::load(None, std::iter::empty(), &set)
}
