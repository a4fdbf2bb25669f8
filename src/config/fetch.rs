//! One exchange and its bounds: `[fetch]` (H1, H2, H4).

use std::path::PathBuf;
use std::time::Duration;

use super::define::section;
use super::reader::{Check, Checked};
use super::units::ByteSize;
use super::value::words;
use crate::types::IpNetwork;

words! {
    /// What becomes of a body that is too long.
    pub enum Oversize {
        /// Keep what fits.
        Truncate = "truncate",
        /// Keep nothing.
        Skip = "skip",
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
