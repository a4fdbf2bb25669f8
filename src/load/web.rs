//! A web that is a formula: the number of a URL says all about it, so that none is kept.

use std::net::{IpAddr, Ipv4Addr};

use crate::policy::normalise;
use crate::protocol::shard::Candidate;
use crate::types::{CrawlUrl, Timestamp, UrlRecord};

/// Of ten links of a page, so many lead to its own host.
const OWN_OF_TEN: u64 = 8;
/// Of ten links of a page in the mixed load, so many are known.
const KNOWN_OF_TEN: u64 = 9;
/// An odd number with bits everywhere.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The web.
#[derive(Clone, Copy, Debug)]
pub(super) struct Web {
    hosts: u64,
    links: u64,
}

impl Web {
    /// A web of so many hosts, and so many links on each page.
    pub(super) fn new(hosts: u64, links: u64) -> Self {
        Self { hosts: hosts.max(1), links: links.max(1) }
    }

    pub(super) fn links(self) -> u64 {
        self.links
    }

    /// The links of a page. The pages below `known` have been admitted: then nine in ten are links
    /// of one of them.
    pub(super) fn candidates(
        self,
        page: u64,
        known: Option<u64>,
        now: Timestamp,
    ) -> impl Iterator<Item = Candidate> {
        let from = self.url(page * self.links);
        (0..self.links).map(move |link| {
            let page = match known {
                Some(known) if link % 10 < KNOWN_OF_TEN => spread(page) % known.max(1),
                Some(_) | None => page,
            };
            self.candidate(page * self.links + link, from.clone(), now)
        })
    }

    fn candidate(self, number: u64, from: CrawlUrl, now: Timestamp) -> Candidate {
        let url = self.url(number);
        let depth = u16::try_from(1 + number % 5).unwrap_or(1);
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let record = UrlRecord {
            depth,
            band: u8::try_from(number % 4).unwrap_or(0),
            order: u64::from(depth) << 48 | millis,
            redirects: 0,
            discovered_from: Some(from),
            discovered_at: now,
            url,
        };
        let hash = normalise::url_hash(&normalise::recognised(&record.url));
        Candidate { host: record.url.host_key(), hash, record, is_seed: false }
    }

    fn url(self, number: u64) -> CrawlUrl {
        let host = self.host_of(number);
        let (section, topic) = (number % 7, spread(number) % 1000);
        let text = format!(
            "https://www.site-{host}.example/section-{section}/topic-{topic}/page-{number}.html"
        );
        CrawlUrl::parse(&text).expect("the formula gives a URL")
    }

    /// Most links of a page lead to the page's own host.
    fn host_of(self, number: u64) -> u64 {
        let (page, link) = (number / self.links, number % self.links);
        if link % 10 < OWN_OF_TEN { page % self.hosts } else { spread(number) % self.hosts }
    }

    /// Every host has an address of its own.
    pub(super) fn address(self, name: &str) -> Option<IpAddr> {
        let number = name.strip_prefix("www.site-")?.strip_suffix(".example")?;
        let number: u32 = number.parse().ok()?;
        Some(IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + number)))
    }
}

fn spread(number: u64) -> u64 {
    (number.wrapping_mul(STRIDE)).rotate_left(31).wrapping_mul(STRIDE) >> 8
}
