//! Names, addresses, one exchange and its bounds: `[dns]`, `[fetch]` (H1, H2, H4, H5).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::define::section;
use super::reader::{Check, Checked};
use super::units::{ByteSize, days};
use super::value::words;
use crate::types::IpNetwork;

section! {
    /// How names become addresses (H5).
    pub struct Dns {
        /// Servers to ask in rotation, `["127.0.0.1:5353"]`; none asks those of the system.
        nameservers: Vec<SocketAddr> = Vec::new();
        /// An answer is kept at least so long, whatever its TTL says.
        min_ttl: Duration = Duration::from_secs(30), within(Duration::ZERO..=days(7));
        /// An answer is kept at most so long.
        max_ttl: Duration = days(1), within(Duration::ZERO..=days(7));
        /// That a name does not exist is believed for so long.
        negative_ttl: Duration = Duration::from_secs(60), within(Duration::ZERO..=days(7));
    }
}

impl Checked for Dns {
    fn check(&self, check: &mut Check<'_>) {
        check.ordered(("min_ttl", &self.min_ttl), ("max_ttl", &self.max_ttl));
    }
}

words! {
    /// What becomes of a body that is too long.
    pub enum Oversize {
        /// Keep what fits.
        Truncate = "truncate",
        /// Keep nothing.
        Skip = "skip",
    }
}

words! {
    /// What becomes of a body that nothing here parses.
    pub enum UnreadTypes {
        /// The exchange ends at its head.
        Stop = "stop",
        /// It is archived like any other.
        Store = "store",
    }
}

section! {
    /// How pages are fetched.
    pub struct Fetch {
        /// Exchanges at once on this node. Each waits for a site most of its time.
        workers: u32 = 1000, within(1..=100_000), restart();
        /// Until the connection stands, TLS included.
        connect_timeout: Duration = Duration::from_secs(10), within(MOMENT..=HOUR);
        /// From the request sent to the first byte of the answer.
        first_byte_timeout: Duration = Duration::from_secs(20), within(MOMENT..=HOUR);
        /// The whole exchange; a slow drip ends here.
        total_timeout: Duration = Duration::from_secs(60), within(MOMENT..=HOUR);
        /// Body as received, compressed or not.
        max_body: ByteSize = ByteSize::mib(10), within(ByteSize(1)..=ByteSize::gib(4));
        /// Body when decoded.
        max_decoded: ByteSize = ByteSize::mib(20), within(ByteSize(1)..=ByteSize::gib(4));
        /// How many times longer a body may become by decoding; beyond lies an attack.
        max_ratio: u32 = 200, within(1..=100_000);
        /// What becomes of a longer body: `"truncate"` keeps and parses what fits, `"skip"`
        /// keeps nothing.
        oversize: Oversize = Oversize::Truncate;
        /// What becomes of types that nothing here parses, such as pictures: `"stop"` reads their
        /// head only, `"store"` archives them whole.
        unread_types: UnreadTypes = UnreadTypes::Stop;
        /// Redirects followed in a row. Each hop is a URL of its own host, with that host's
        /// politeness.
        max_redirects: u8 = 5, within(0..=50);
        /// Special-purpose networks (loopback, private, link-local) that may be connected to,
        /// `["10.0.0.0/8"]`. For tests and intranets; none by default.
        allow_networks: Vec<IpNetwork> = Vec::new(), restart();
        /// PEM files of certificate authorities to trust beside the public ones.
        extra_ca_files: Vec<PathBuf> = Vec::new(), restart();
    }
}

const MOMENT: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

impl Checked for Fetch {
    fn check(&self, check: &mut Check<'_>) {
        let total = ("total_timeout", &self.total_timeout);
        check.ordered(("connect_timeout", &self.connect_timeout), total);
        check.ordered(("first_byte_timeout", &self.first_byte_timeout), total);
    }
}
