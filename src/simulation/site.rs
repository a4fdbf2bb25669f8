//! One site of the simulated web: its rates, its rules, its moods. A pure function of seed, path
//! and time.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::draw::{below, draw, happens};
use super::rules::SiteRules;
use super::web::{Answer, Reply};
use crate::types::{HostKey, Timestamp};

/// Where robots.txt of a site lies that moved it within itself.
const ROBOTS_MOVED: &str = "/rules/robots.txt";
/// Where sites keep the robots.txt of others that redirect to them; the site's name follows.
pub(super) const RULES_OF: &str = "/rules-of/";

/// A site.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) key: HostKey,
    pub(super) seed: u64,
    pub(super) pages: u64,
    pub(super) latency: Duration,
    /// Passing failures, of a thousand answers.
    pub(super) trouble: u64,
    pub(super) addresses: Addresses,
    pub(super) robots: Robots,
    /// From when to when none of its pages can be had.
    pub(super) outage: Option<(Timestamp, Timestamp)>,
    /// Other sites that its pages name.
    pub(super) neighbours: Vec<HostKey>,
}

/// What the name of a site resolves to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    /// This address.
    Public(IpAddr),
    /// An address that nobody outside has any business with (H4).
    Private(IpAddr),
    /// A public and a private one, the private one first.
    Mixed(IpAddr, IpAddr),
    /// Public at first, private from some time on: rebinding.
    Turning(IpAddr, IpAddr),
    /// No such name.
    Nothing,
}

/// What becomes of requests for robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Robots {
    /// 404.
    Missing,
    /// 403, which says nothing about the pages.
    Forbidden,
    /// These rules.
    Rules(SiteRules),
    /// 503 until this time, then these rules.
    DownUntil(Timestamp, SiteRules),
    /// No answer until this time, then these rules.
    SilentUntil(Timestamp, SiteRules),
    /// 429 with Retry-After until this time, then these rules.
    BusyUntil(Timestamp, SiteRules),
    /// The first rules until this time, then the others; good for ten minutes only.
    Changing(Timestamp, SiteRules, SiteRules),
    /// Rules until this time, then 404: everything is allowed.
    Vanishing(Timestamp, SiteRules),
    /// 404 until this time, then these rules.
    Appearing(Timestamp, SiteRules),
    /// Rules until this time, then 500 for ever: the last good copy serves on.
    DownFrom(Timestamp, SiteRules),
    /// A redirect within the site.
    Moved(SiteRules),
    /// A redirect to another site, which keeps the rules of this one.
    Away(HostKey, SiteRules),
    /// A redirect to itself.
    Loop,
}

impl Site {
    /// Whether it may be connected to, from the first moment to the last.
    pub(super) fn stays_reachable(&self) -> bool {
        match self.addresses {
            Addresses::Public(_) | Addresses::Mixed(..) => true,
            Addresses::Private(_) | Addresses::Turning(..) | Addresses::Nothing => false,
        }
    }

    /// I6: whether this is a public address of the site.
    pub(super) fn is_at(&self, address: IpAddr) -> bool {
        match self.addresses {
            Addresses::Public(public)
            | Addresses::Mixed(public, _)
            | Addresses::Turning(public, _) => public == address,
            Addresses::Private(_) | Addresses::Nothing => false,
        }
    }

    /// What a name server says at this time; nothing when there is no such name.
    pub(super) fn resolve(&self, at: Timestamp, start: Timestamp) -> Vec<IpAddr> {
        match self.addresses {
            Addresses::Public(public) => vec![public],
            Addresses::Private(private) => vec![private],
            Addresses::Mixed(public, private) => vec![private, public],
            Addresses::Turning(public, private) => {
                let turns = at.since(start) > Duration::from_secs(900);
                vec![if turns { private } else { public }]
            }
            Addresses::Nothing => Vec::new(),
        }
    }

    /// What the site answers to a request that comes at this time.
    pub(super) fn answer(&self, path: &str, at: Timestamp) -> Answer {
        let moment = at.as_millis();
        let jitter = below(200, self.seed, format_args!("jitter {path} {moment}"));
        let took = self.latency + self.latency.mul_f64(f64::from(small(jitter)) / 100.0);
        let reply = match path {
            "/robots.txt" => self.robots_txt(at),
            ROBOTS_MOVED => Reply::rules(&self.own_rules(at)),
            _ => match self.passing_failure(path, at) {
                Some(failure) => failure,
                None => self.page(path),
            },
        };
        Answer { reply, took }
    }

    fn robots_txt(&self, at: Timestamp) -> Reply {
        match &self.robots {
            Robots::Missing => Reply::status(404),
            Robots::Forbidden => Reply::status(403),
            Robots::Rules(rules) => Reply::rules(rules),
            Robots::DownUntil(until, _) if at < *until => Reply::status(503),
            Robots::SilentUntil(until, _) if at < *until => Reply::Silent,
            Robots::BusyUntil(until, _) if at < *until => {
                Reply::status(429).with("Retry-After", "200")
            }
            Robots::DownUntil(_, rules)
            | Robots::SilentUntil(_, rules)
            | Robots::BusyUntil(_, rules) => Reply::rules(rules),
            Robots::Changing(from, before, after) => {
                let rules = if at < *from { before } else { after };
                Reply::rules(rules).with("Cache-Control", "max-age=600")
            }
            Robots::Vanishing(from, _) if at >= *from => Reply::status(404),
            Robots::Appearing(from, _) if at < *from => {
                Reply::status(404).with("Cache-Control", "max-age=400")
            }
            Robots::Vanishing(_, rules) => Reply::rules(rules).with("Cache-Control", "max-age=400"),
            Robots::Appearing(_, rules) => Reply::rules(rules),
            Robots::DownFrom(from, _) if at >= *from => Reply::status(500),
            Robots::DownFrom(_, rules) => Reply::rules(rules).with("Cache-Control", "max-age=900"),
            Robots::Moved(_) => Reply::status(301).with("Location", ROBOTS_MOVED),
            Robots::Away(other, _) => {
                let target = format!("{other}{RULES_OF}{}", self.key.host());
                Reply::status(302).with("Location", &target)
            }
            Robots::Loop => Reply::status(301).with("Location", "/robots.txt"),
        }
    }

    /// The rules that the site would show if it were asked and well.
    pub(super) fn own_rules(&self, at: Timestamp) -> SiteRules {
        match &self.robots {
            Robots::Missing | Robots::Forbidden | Robots::Loop => SiteRules::open(),
            Robots::Rules(rules)
            | Robots::DownUntil(_, rules)
            | Robots::SilentUntil(_, rules)
            | Robots::BusyUntil(_, rules)
            | Robots::DownFrom(_, rules)
            | Robots::Moved(rules)
            | Robots::Away(_, rules) => rules.clone(),
            Robots::Changing(from, before, after) => {
                if at < *from {
                    before.clone()
                } else {
                    after.clone()
                }
            }
            Robots::Vanishing(from, rules) if at < *from => rules.clone(),
            Robots::Appearing(from, rules) if at >= *from => rules.clone(),
            Robots::Vanishing(..) | Robots::Appearing(..) => SiteRules::open(),
        }
    }

    /// A failure that is over half a minute later.
    fn passing_failure(&self, path: &str, at: Timestamp) -> Option<Reply> {
        if self.outage.is_some_and(|(from, until)| at >= from && at < until) {
            return Some(match self.seed % 3 {
                0 => Reply::Refused,
                1 => Reply::Silent,
                _ => Reply::status(503),
            });
        }
        let half_minute = at.as_millis() / 30_000;
        if !happens(self.trouble, self.seed, format_args!("trouble {path} {half_minute}")) {
            return None;
        }
        let kind = below(8, self.seed, format_args!("kind {path} {half_minute}"));
        Some(match kind {
            0 | 1 => Reply::status(500),
            2 => Reply::status(503).with("Retry-After", "40"),
            3 => Reply::status(429).with("Retry-After", "300"),
            4 => Reply::status(429),
            5 => Reply::status(503).with("Retry-After", &date(at + Duration::from_secs(90))),
            6 => Reply::Silent,
            _ => Reply::Refused,
        })
    }

    fn page(&self, path: &str) -> Reply {
        if let Some(target) = self.redirect(path) {
            return Reply::status(if self.seed.is_multiple_of(2) { 301 } else { 302 })
                .with("Location", &target);
        }
        if path == "/nowhere" {
            return Reply::status(302);
        }
        if path.starts_with("/gone/") {
            return Reply::status(404);
        }
        match self.links(path) {
            Some(links) => Reply::html(html(path, &links)),
            None => Reply::status(404),
        }
    }

    /// H2: where a page leads that has moved: within the site, to another one, along a chain, in a
    /// circle within the site or around all sites.
    pub(super) fn redirect(&self, path: &str) -> Option<String> {
        if let Some(number) = numbered(path, "/old/") {
            return Some(format!("/p/{number}"));
        }
        if let Some(number) = numbered(path, "/hops/") {
            return Some(match number.checked_sub(1) {
                Some(next) => format!("/hops/{next}"),
                None => "/p/1".to_owned(),
            });
        }
        match path {
            "/circle" => Some("/circle/back".to_owned()),
            "/circle/back" => Some("/circle".to_owned()),
            "/self" => Some("/self".to_owned()),
            "/away" => self.neighbours.last().map(|other| format!("{other}/old/1")),
            "/round" => self.neighbours.first().map(|other| format!("{other}/round")),
            _ => None,
        }
    }

    /// The links of a page; `None` for what is none.
    pub(super) fn links(&self, path: &str) -> Option<Vec<String>> {
        let mut links = vec!["/".to_owned()];
        let number = match path {
            "/" => 0,
            _ => match numbered(path, "/p/") {
                Some(number) if number > 0 && number < self.pages => number,
                Some(_) => return None,
                None => {
                    let known = ["/private/", "/late/"];
                    let leaf = known.iter().any(|area| path.starts_with(area));
                    return leaf.then_some(links);
                }
            },
        };
        let children = [2 * number + 1, 2 * number + 2];
        let children = children.into_iter().filter(|child| *child < self.pages);
        links.extend(children.map(|child| format!("/p/{child}")));
        links.extend(self.side_links(number));
        Some(links)
    }

    fn side_links(&self, number: u64) -> Vec<String> {
        let mut links = Vec::new();
        match draw(self.seed, format_args!("side {number}")) % 9 {
            6 => links.push(format!("/hops/{}", number % 9)),
            7 => links.push("/away".to_owned()),
            8 => {
                let moved = ["/circle", "/self", "/round", "/nowhere"];
                links.extend(
                    moved.get(usize::try_from(number % 4).unwrap_or(0)).map(|it| (*it).to_owned()),
                );
            }
            0 => links.push(format!("/private/{number}")),
            1 => links.push(format!("/private/open/{number}")),
            2 => links.push(format!("/late/{number}")),
            3 => links.push(format!("/old/{}", number / 2 + 1)),
            4 => links.push(format!("/gone/{number}")),
            _ => links.push(format!("/p/{}", number / 2 + 1)),
        }
        for (at, neighbour) in self.neighbours.iter().enumerate() {
            if happens(300, self.seed, format_args!("neighbour {number} {at}")) || number == 0 {
                links.push(format!("{neighbour}/"));
            }
        }
        links
    }
}

/// The number behind a prefix, written the one way.
fn numbered(path: &str, prefix: &str) -> Option<u64> {
    let digits = path.strip_prefix(prefix)?;
    digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
}

fn html(path: &str, links: &[String]) -> String {
    let mut page = format!("<!doctype html><title>Page {path}</title><p>This is page {path}.</p>");
    for link in links {
        write!(page, "<a href=\"{link}\">to {link}</a> ").ok();
    }
    page
}

/// A time as HTTP writes it.
pub(super) fn date(at: Timestamp) -> String {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0);
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(millis / 1000))
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Public addresses of the simulated web: a few sites share each.
pub(super) fn public_address(number: u64) -> IpAddr {
    let last = u8::try_from(number % 200 + 1).unwrap_or(1);
    if number % 7 == 3 {
        IpAddr::V6(Ipv6Addr::new(0x2a01, 0x4f8, 0, 0, 0, 0, 0, last.into()))
    } else {
        IpAddr::V4(Ipv4Addr::new(93, 184, 215, last))
    }
}

/// Addresses that must never be connected to.
pub(super) fn private_address(number: u64) -> IpAddr {
    match number % 6 {
        0 => IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)),
        1 => IpAddr::V4(Ipv4Addr::LOCALHOST),
        2 => IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
        3 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        4 => IpAddr::V6(Ipv4Addr::new(192, 168, 1, 1).to_ipv6_mapped()),
        _ => IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    }
}
