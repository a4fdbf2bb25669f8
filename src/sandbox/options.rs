//! What a sandbox is made from.

use std::time::Duration;

/// What a sandbox is made from. The same options on the same ports give the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxOptions {
    /// Everything follows from it.
    pub seed: u64,
    /// How many hosts, at least one.
    pub hosts: u16,
    /// Pages of a host on average, behaviours of every kind included; hosts differ from each
    /// other between 0.4 and 1.6 times this.
    pub pages_per_host: u32,
    /// The port of the web on every address; 0 lets the system choose.
    pub port: u16,
    /// How many loopback addresses carry the hosts, from 127.0.10.1 on, 1 to 50,000. A machine
    /// that has only 127.0.0.1 gets that one.
    pub addresses: u16,
    /// HTTP or HTTPS.
    pub security: Security,
    /// Whether a connection takes another request after a response.
    pub keep_alive: bool,
    /// Connections served at once, over all addresses.
    pub connections_max: usize,
    /// Whether all pages are made and compressed before the start and kept in memory, so that a
    /// request costs the server next to nothing.
    pub prepared: bool,
    /// How large pages are.
    pub sizes: PageSizes,
    /// How long a slow page waits before its first byte.
    pub slow: Duration,
    /// The pause between two pieces of a body that drips.
    pub drip: Duration,
    /// Whether every page of HTML drips.
    pub all_drip: bool,
    /// The size of a big page in bytes of HTML before compression.
    pub big_bytes: usize,
    /// The Crawl-delay of the one host that asks for one, in whole seconds.
    pub crawl_delay: Duration,
    /// What a page that is busy or rate-limited once asks for in Retry-After, in whole seconds.
    pub retry_after: Duration,
    /// Whether the last host has a calendar without end.
    pub trap: bool,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            hosts: 40,
            pages_per_host: 25,
            port: 0,
            addresses: 8,
            security: Security::Plain,
            keep_alive: true,
            connections_max: 1024,
            prepared: false,
            sizes: PageSizes::Demo,
            slow: Duration::from_millis(300),
            drip: Duration::from_millis(100),
            all_drip: false,
            big_bytes: 3 * 512 * 1024,
            crawl_delay: Duration::from_secs(2),
            retry_after: Duration::from_secs(2),
            trap: false,
        }
    }
}

/// What the hosts speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// HTTP.
    Plain,
    /// HTTPS, with certificates of the sandbox's own authority.
    Tls {
        /// Whether a later connection may resume the session of an earlier one.
        resumption: bool,
    },
}

impl Security {
    /// The scheme of every URL.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Plain => "http",
            Self::Tls { .. } => "https",
        }
    }
}

/// How large the pages are, and of what: many small ones, a few large ones, as on the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSizes {
    /// Half of the pages above 4 KiB: for tests.
    Small,
    /// Half of the pages above 40 KiB.
    Demo,
    /// 240 KiB on average and mostly markup, as on the web: see the module `page::markup`.
    Realistic,
    /// As large as those, and nearly all text: what reading costs most for.
    Prose,
}

impl PageSizes {
    /// The size that half of the pages exceed, in bytes.
    pub(super) fn median_bytes(self) -> usize {
        match self {
            Self::Small => 4 * 1024,
            Self::Demo => 40 * 1024,
            // The mean of the distribution in `page` is 1.56 times its median.
            Self::Realistic | Self::Prose => 154 * 1024,
        }
    }
}
