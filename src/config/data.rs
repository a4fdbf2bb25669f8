//! Where state is kept: `[data]` (F12).

use std::path::PathBuf;
use std::time::Duration;

use super::define::section;
use super::reader::Checked;

section! {
    /// Where state is kept.
    pub struct Data {
        /// The data directory: archive, index, pages, shards, snapshots. Relative to the working
        /// directory.
        dir: PathBuf = PathBuf::from("data");
        /// Object store URL of the shards; under `data.dir` unless given. A cluster needs one
        /// that all its nodes reach.
        store: Option<String> = None,
            absent("auto"),
            that(|url| url.as_deref().is_none_or(is_store_url), STORE_URL);
        /// Group commit: how long a change may wait before it is durable. A crash forgets what is
        /// younger and not yet acknowledged.
        flush_interval: Duration = Duration::from_secs(1),
            within(Duration::from_millis(1)..=Duration::from_secs(60));
    }
}

impl Checked for Data {}

/// What [`is_store_url`] wants.
pub(super) const STORE_URL: &str =
    "that is a URL such as \"file:///srv/mehman\", \"s3://bucket/prefix\" or \"gs://bucket\"";

/// Whether an object store can be named so.
pub(super) fn is_store_url(text: &str) -> bool {
    const SCHEMES: [&str; 12] = [
        "file", "memory", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl", "http", "https",
    ];
    url::Url::parse(text).is_ok_and(|url| SCHEMES.contains(&url.scheme()))
}
