//! The plan of a host: which pages it has, how each behaves and where each links to.
//!
//! A plan is a pure function of the [`Shape`] and the host's number. It promises:
//! - every page of a host is reachable from `/`: articles form a tree with random links across it,
//!   everything else hangs on an article (pages that robots.txt or `nofollow` hide included);
//! - every host is linked from the front pages of two hosts before it, so that one that may not be
//!   fetched hides no other;
//! - URLs are in normal form already: lower-case host, explicit port, no fragment.

use std::collections::BTreeMap;

use super::behaviour::{Behaviour, leaf_path, leaves};
use super::draw::Draw;
use super::options::SandboxOptions;
use super::words::{SECTIONS, SLUGS};

/// The zone all hosts live in.
pub(super) const ZONE: &str = "test";
/// A name that does not exist (NXDOMAIN).
pub(super) const MISSING_NAME: &str = "nowhere.test";
/// A name whose look-up fails (SERVFAIL).
pub(super) const FAILING_NAME: &str = "servfail.test";
/// Days the calendar goes on for: without end for any crawler, with one for arithmetic.
pub(super) const CALENDAR_DAYS: u32 = 1_000_000;

/// Children of an article in the tree.
const FANOUT: usize = 5;
/// Articles every host has, however small the mean.
const ARTICLES_MIN: usize = 3;
/// Articles of the host with a Crawl-delay: each costs its delay in a demo.
const ARTICLES_DELAYED: usize = 4;

const SALT_PATH: u64 = 1;
const SALT_COUNT: u64 = 2;
const SALT_LINKS: u64 = 3;
const SALT_LEAVES: u64 = 4;

/// All that the content depends on.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) options: SandboxOptions,
    /// Where the web listens; part of every absolute URL.
    pub(super) http_port: u16,
    /// A port of the first address that refuses connections.
    pub(super) closed_port: u16,
}

impl Shape {
    /// The absolute URL of a path on a host of the sandbox.
    pub(super) fn url(&self, host: u16, path: &str) -> String {
        self.url_at(&host_name(host), self.http_port, path)
    }

    fn url_at(&self, name: &str, port: u16, path: &str) -> String {
        format!("{}://{name}:{port}{path}", self.options.security.scheme())
    }

    fn draw(&self, host: u16, nth: usize, salt: u64) -> Draw {
        let nth = u64::try_from(nth).unwrap_or(u64::MAX);
        Draw::of(&[self.options.seed, u64::from(host), nth, salt])
    }

    /// The number of the host whose calendar never ends, if there is one.
    pub(super) fn trap_host(&self) -> Option<u16> {
        self.options.trap.then(|| self.options.hosts.saturating_sub(1))
    }
}

/// The name of a host by its number.
pub(super) fn host_name(host: u16) -> String {
    format!("site-{host:03}.{ZONE}")
}

/// The number of a host by its name, if there is such a host among `hosts`.
pub(super) fn host_number(name: &str, hosts: u16) -> Option<u16> {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let digits = name.strip_prefix("site-")?.strip_suffix(ZONE)?.strip_suffix('.')?;
    let number = digits.parse().ok().filter(|number| *number < hosts)?;
    (host_name(number) == name).then_some(number)
}

/// How a host answers for its robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RobotsAnswer {
    /// 404: everything may be fetched.
    Missing,
    /// 200 without any restriction.
    Open,
    /// 200 with `Disallow: /private/`.
    Private,
    /// 200 with a Crawl-delay.
    Delayed,
    /// 503: nothing of the host may be fetched.
    Unavailable,
    /// A redirect to the robots.txt of another host, whose rules hold.
    Elsewhere(u16),
}

impl RobotsAnswer {
    /// The answer of a host. The first five hosts have one of each kind.
    pub(super) fn of(host: u16) -> Self {
        match host {
            0 => Self::Open,
            1 => Self::Private,
            2 => Self::Delayed,
            3 => Self::Unavailable,
            4 => Self::Elsewhere(1),
            _ if host % 5 == 1 => Self::Private,
            _ if host % 5 == 3 => Self::Open,
            _ => Self::Missing,
        }
    }

    /// Whether `/private/` is closed to crawlers, by its own rules or by those it points to.
    pub(super) fn hides_private(self) -> bool {
        match self {
            Self::Private | Self::Elsewhere(_) => true,
            Self::Missing | Self::Open | Self::Delayed | Self::Unavailable => false,
        }
    }
}

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A page of the same host, by its place in the plan.
    Here(usize),
    /// An article of another host.
    There {
        /// The other host.
        host: u16,
        /// Which of its articles.
        article: usize,
    },
    /// A host whose name does not exist.
    MissingName,
    /// A host whose name fails to resolve.
    FailingName,
    /// A port that refuses connections.
    ClosedPort,
    /// The calendar that never ends.
    Calendar,
}

/// A link of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) to: Target,
    /// With `rel=nofollow`.
    pub(super) nofollow: bool,
}

/// A page of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Path and query.
    pub(super) path: String,
    pub(super) behaviour: Behaviour,
    /// In the order they stand on the page.
    pub(super) links: Vec<Link>,
    /// Status and target of a redirect.
    pub(super) redirect: Option<(u16, Target)>,
    /// The page whose bytes a duplicate has.
    pub(super) original: Option<usize>,
}

/// A host with its pages: articles first, the front page at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostPlan {
    pub(super) host: u16,
    pub(super) robots: RobotsAnswer,
    pub(super) nodes: Vec<Node>,
    by_path: BTreeMap<String, usize>,
}

impl HostPlan {
    /// The plan of a host.
    pub(super) fn new(shape: &Shape, host: u16) -> Self {
        let articles = article_count(shape, host);
        let mut plan = Planner { shape, host, articles, nodes: Vec::new() };
        for nth in 0..articles {
            let links = plan.article_links(nth);
            let path = article_path(shape, host, nth);
            plan.push(path, Behaviour::Article, links);
        }
        let mut draw = shape.draw(host, 0, SALT_LEAVES);
        for behaviour in leaves(RobotsAnswer::of(host), host) {
            plan.add(behaviour, &mut draw);
        }
        plan.add_dead_ends(&mut draw);
        let nodes = plan.nodes;
        let by_path =
            nodes.iter().enumerate().map(|(nth, node)| (node.path.clone(), nth)).collect();
        Self { host, robots: RobotsAnswer::of(host), nodes, by_path }
    }

    /// The page at a path with its query.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    /// The page at a place; places come from this plan only.
    pub(super) fn node(&self, nth: usize) -> Option<&Node> {
        self.nodes.get(nth)
    }

    /// The absolute URL a link of this host leads to.
    pub(super) fn url_of(&self, shape: &Shape, to: Target) -> String {
        match to {
            Target::Here(nth) => shape.url(self.host, self.path(nth)),
            Target::There { host, article } => shape.url(host, &article_path(shape, host, article)),
            Target::MissingName => shape.url_at(MISSING_NAME, shape.http_port, "/"),
            Target::FailingName => shape.url_at(FAILING_NAME, shape.http_port, "/"),
            Target::ClosedPort => shape.url_at(&host_name(0), shape.closed_port, "/"),
            Target::Calendar => shape.url(self.host, &calendar_path(0)),
        }
    }

    /// Path and query of the page at a place.
    pub(super) fn path(&self, nth: usize) -> &str {
        self.node(nth).map_or("/", |node| node.path.as_str())
    }
}

/// The page of a day in the calendar.
pub(super) fn calendar_path(day: u32) -> String {
    format!("/calendar/{day}.html")
}

/// The day of a calendar page.
pub(super) fn calendar_day(path: &str) -> Option<u32> {
    let day = path.strip_prefix("/calendar/")?.strip_suffix(".html")?.parse().ok()?;
    (calendar_path(day) == path && day < CALENDAR_DAYS).then_some(day)
}

/// The path of an article, known without the plan of its host, so that others can link to it.
fn article_path(shape: &Shape, host: u16, nth: usize) -> String {
    if nth == 0 {
        return "/".to_owned();
    }
    let mut draw = shape.draw(host, nth, SALT_PATH);
    let (section, slug) = (draw.pick(SECTIONS), draw.pick(SLUGS));
    match nth % 11 {
        5 => format!("/{section}/list?page={nth}"),
        8 => format!("/{section}/caf%C3%A9-{nth}"),
        _ => format!("/{section}/{slug}-{nth}.html"),
    }
}

fn article_count(shape: &Shape, host: u16) -> usize {
    if RobotsAnswer::of(host) == RobotsAnswer::Delayed {
        return ARTICLES_DELAYED;
    }
    let mean = usize::try_from(shape.options.pages_per_host).unwrap_or(usize::MAX);
    let permille = shape.draw(host, 0, SALT_COUNT).between(400, 1600);
    let pages = mean.saturating_mul(permille) / 1000;
    pages.saturating_sub(leaves(RobotsAnswer::of(host), host).count()).max(ARTICLES_MIN)
}

/// A plan in the making.
struct Planner<'a> {
    shape: &'a Shape,
    host: u16,
    articles: usize,
    nodes: Vec<Node>,
}

impl Planner<'_> {
    fn push(&mut self, path: String, behaviour: Behaviour, links: Vec<Link>) -> usize {
        self.nodes.push(Node { path, behaviour, links, redirect: None, original: None });
        self.nodes.len() - 1
    }

    fn link_from(&mut self, article: usize, link: Link) {
        if let Some(node) = self.nodes.get_mut(article) {
            node.links.push(link);
        }
    }

    /// Tree first, so that no cut at the end of a page hides one; then across, then away.
    fn article_links(&self, nth: usize) -> Vec<Link> {
        let first_child = nth * FANOUT + 1;
        let children = (first_child..first_child + FANOUT).filter(|child| *child < self.articles);
        let mut draw = self.shape.draw(self.host, nth, SALT_LINKS);
        let mut to: Vec<Target> = children.map(Target::Here).collect();
        to.push(Target::Here(nth.saturating_sub(1) / FANOUT));
        for _ in 0..draw.between(2, 5) {
            to.push(Target::Here(draw.below(self.articles)));
        }
        if nth == 0 {
            to.extend(self.neighbours().map(|host| Target::There { host, article: 0 }));
        }
        for _ in 0..draw.between(0, 2) {
            to.extend(self.elsewhere(&mut draw));
        }
        if nth == 0 && self.shape.trap_host() == Some(self.host) {
            to.push(Target::Calendar);
        }
        to.into_iter().map(follow).collect()
    }

    /// The hosts this one introduces: each host is introduced by two of those before it.
    fn neighbours(&self) -> impl Iterator<Item = u16> {
        let (me, hosts) = (self.host, self.shape.options.hosts);
        let double = me.saturating_mul(2);
        (double.saturating_sub(1)..=double.saturating_add(2))
            .filter(move |host| *host > me && *host < hosts)
    }

    /// An article of another host; a front page every second time.
    fn elsewhere(&self, draw: &mut Draw) -> Option<Target> {
        let number = draw.below(usize::from(self.shape.options.hosts));
        let host = u16::try_from(number).ok().filter(|host| *host != self.host)?;
        let front = draw.below(2) == 0;
        let any = draw.below(article_count(self.shape, host));
        Some(Target::There { host, article: if front { 0 } else { any } })
    }

    /// Adds a page of a behaviour and hangs it on an article.
    fn add(&mut self, behaviour: Behaviour, draw: &mut Draw) {
        let at = draw.below(self.articles);
        let nth = self.nodes.len();
        let page = if behaviour == Behaviour::RedirectChain {
            self.add_chain(nth, draw)
        } else if behaviour == Behaviour::RedirectLoop {
            self.add_loop(nth)
        } else if behaviour.is_redirect() {
            self.add_redirect(behaviour, nth, draw)
        } else if behaviour == Behaviour::Tangled {
            self.add_tangled(nth)
        } else {
            self.push(leaf_path(behaviour, nth), behaviour, vec![follow(Target::Here(0))])
        };
        if behaviour == Behaviour::Duplicate
            && let Some(node) = self.nodes.get_mut(page)
        {
            node.original = Some(at);
        }
        let nofollow = behaviour == Behaviour::NofollowOnly;
        self.link_from(at, Link { to: Target::Here(page), nofollow });
    }

    fn add_redirect(&mut self, behaviour: Behaviour, nth: usize, draw: &mut Draw) -> usize {
        let here = Target::Here(draw.below(self.articles));
        let private = self.nodes.iter().position(|node| node.behaviour == Behaviour::Private);
        let to = if behaviour == Behaviour::RedirectAway {
            self.elsewhere(draw).unwrap_or(here)
        } else if behaviour == Behaviour::RedirectPrivate {
            private.map_or(here, Target::Here)
        } else {
            here
        };
        let status = [301, 302, 307, 308][usize::from(self.host % 4)];
        let page = self.push(leaf_path(behaviour, nth), behaviour, Vec::new());
        self.redirect(page, status, to)
    }

    fn redirect(&mut self, page: usize, status: u16, to: Target) -> usize {
        if let Some(node) = self.nodes.get_mut(page) {
            node.redirect = Some((status, to));
        }
        page
    }

    fn add_chain(&mut self, nth: usize, draw: &mut Draw) -> usize {
        let end = Target::Here(draw.below(self.articles));
        let hops = [Behaviour::RedirectChain, Behaviour::RedirectHop, Behaviour::RedirectHop];
        for (hop, status) in hops.into_iter().zip([301, 302, 307]) {
            let page = self.nodes.len();
            let to = if page == nth + 2 { end } else { Target::Here(page + 1) };
            self.push(leaf_path(hop, page), hop, Vec::new());
            self.redirect(page, status, to);
        }
        nth
    }

    fn add_loop(&mut self, nth: usize) -> usize {
        for (page, to) in [(nth, nth + 1), (nth + 1, nth)] {
            self.push(leaf_path(Behaviour::RedirectLoop, page), Behaviour::RedirectLoop, vec![]);
            self.redirect(page, 302, Target::Here(to));
        }
        nth
    }

    fn add_tangled(&mut self, nth: usize) -> usize {
        let hidden = nth + 1;
        let links = vec![follow(Target::Here(0)), follow(Target::Here(hidden))];
        self.push(leaf_path(Behaviour::Tangled, nth), Behaviour::Tangled, links);
        let back = vec![follow(Target::Here(0))];
        self.push(leaf_path(Behaviour::Article, hidden), Behaviour::Article, back);
        nth
    }

    /// Links that lead to nobody: a name that does not exist, one that fails, a closed port.
    fn add_dead_ends(&mut self, draw: &mut Draw) {
        let ends = [(Target::MissingName, 4), (Target::FailingName, 9), (Target::ClosedPort, 5)];
        for (to, period) in ends {
            if self.host.is_multiple_of(period) {
                let at = draw.below(self.articles);
                self.link_from(at, follow(to));
            }
        }
    }
}

fn follow(to: Target) -> Link {
    Link { to, nofollow: false }
}
