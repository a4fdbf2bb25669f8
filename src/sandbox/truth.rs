//! What a correct, polite crawl of the whole sandbox finds.
//!
//! Computed by walking the plans, never by HTTP, so that it can judge the server as well as a
//! crawler. The crawl it describes starts at the seeds, stays inside the sandbox, obeys robots.txt
//! and `rel=nofollow`, follows redirects of up to three hops and retries what asks to come back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::behaviour::Behaviour;
use super::site::{
    FAILING_NAME, HostPlan, MISSING_NAME, Node, RobotsAnswer, Target, calendar_path, host_name,
};
use super::web::Web;

/// What a correct, polite crawl finds. URLs are absolute, in normal form, with the port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Must be fetched with status 200.
    pub pages: BTreeSet<String>,
    /// Those of `pages` that answer 503 or 429 with Retry-After before they answer 200.
    pub retried: BTreeSet<String>,
    /// Those of `pages` that are not HTML.
    pub other_types: BTreeSet<String>,
    /// Those of `pages` whose bytes are those of another: duplicate to original.
    pub duplicates: BTreeMap<String, String>,
    /// Must be requested and answer a redirect: URL to Location.
    pub redirects: BTreeMap<String, String>,
    /// Must be requested and answer 404, 410 or 500.
    pub errors: BTreeMap<String, u16>,
    /// Closed by robots.txt, and all pages of the host whose robots.txt is unavailable: must never
    /// be requested.
    pub refused: BTreeSet<String>,
    /// Linked with `rel=nofollow` only.
    pub nofollow_only: BTreeSet<String>,
    /// Linked, but nobody answers: the name does not exist or fails, or the port is closed.
    pub unreachable: BTreeSet<String>,
    /// Hosts of which nothing can or may be fetched: those of `unreachable` that have no address,
    /// and the host whose robots.txt is unavailable. Names without port.
    pub hosts_unreachable: BTreeSet<String>,
    /// The first URL of the calendar that never ends; a crawl stops somewhere behind it.
    pub calendar: Option<String>,
}

impl Truth {
    /// Walks the links from the front pages given by their hosts.
    pub(super) fn walk(web: &Web, seeds: impl Iterator<Item = u16>) -> Self {
        let mut walk = Walk { web, truth: Self::default(), seen: BTreeSet::new(), next: [].into() };
        walk.next.extend(seeds.map(|host| (host, 0)));
        while let Some((host, nth)) = walk.next.pop_front() {
            if let Some(plan) = web.plan(host).filter(|_| walk.seen.insert((host, nth))) {
                walk.visit(plan, nth);
            }
        }
        walk.close();
        walk.truth
    }
}

struct Walk<'a> {
    web: &'a Web,
    truth: Truth,
    seen: BTreeSet<(u16, usize)>,
    next: VecDeque<(u16, usize)>,
}

impl Walk<'_> {
    fn visit(&mut self, plan: &HostPlan, nth: usize) {
        let Some(node) = plan.node(nth) else { return };
        let url = self.web.shape.url(plan.host, &node.path);
        if plan.robots == RobotsAnswer::Unavailable {
            self.truth.hosts_unreachable.insert(host_name(plan.host));
            let all = plan.nodes.iter().map(|node| self.web.shape.url(plan.host, &node.path));
            self.truth.refused.extend(all);
        } else if node.behaviour == Behaviour::Private {
            self.truth.refused.insert(url);
        } else if let Some((_, to)) = node.redirect {
            self.truth.redirects.insert(url, plan.url_of(&self.web.shape, to));
            self.follow(plan, to);
        } else {
            self.answered(plan, node, url);
        }
    }

    fn answered(&mut self, plan: &HostPlan, node: &Node, url: String) {
        let status = match node.behaviour {
            Behaviour::NotFound => 404,
            Behaviour::Gone => 410,
            Behaviour::ServerError => 500,
            Behaviour::BusyOnce | Behaviour::LimitedOnce => {
                self.truth.retried.insert(url.clone());
                200
            }
            Behaviour::PlainText | Behaviour::Pdf | Behaviour::Image => {
                self.truth.other_types.insert(url.clone());
                200
            }
            Behaviour::Article
            | Behaviour::Duplicate
            | Behaviour::Private
            | Behaviour::NofollowOnly
            | Behaviour::Redirect
            | Behaviour::RedirectChain
            | Behaviour::RedirectLoop
            | Behaviour::RedirectAway
            | Behaviour::RedirectPrivate
            | Behaviour::RedirectHop
            | Behaviour::Slow
            | Behaviour::Drip
            | Behaviour::Big
            | Behaviour::Tangled => 200,
        };
        if status != 200 {
            self.truth.errors.insert(url, status);
            return;
        }
        if let Some(original) = node.original {
            let original = self.web.shape.url(plan.host, plan.path(original));
            self.truth.duplicates.insert(url.clone(), original);
        }
        self.truth.pages.insert(url);
        if ![Behaviour::PlainText, Behaviour::Pdf, Behaviour::Image].contains(&node.behaviour) {
            let shown = node.original.and_then(|original| plan.node(original)).unwrap_or(node);
            self.follow_all(plan, shown);
        }
    }

    fn follow_all(&mut self, plan: &HostPlan, node: &Node) {
        for link in &node.links {
            if link.nofollow {
                self.truth.nofollow_only.insert(plan.url_of(&self.web.shape, link.to));
            } else {
                self.follow(plan, link.to);
            }
        }
    }

    fn follow(&mut self, plan: &HostPlan, to: Target) {
        match to {
            Target::Here(nth) => self.next.push_back((plan.host, nth)),
            Target::There { host, article } => self.next.push_back((host, article)),
            Target::MissingName | Target::FailingName | Target::ClosedPort => {
                self.truth.unreachable.insert(plan.url_of(&self.web.shape, to));
            }
            Target::Calendar => {
                self.truth.calendar = Some(self.web.shape.url(plan.host, &calendar_path(0)));
            }
        }
    }

    /// What is only known at the end.
    fn close(&mut self) {
        let Truth { pages, nofollow_only, unreachable, hosts_unreachable, .. } = &mut self.truth;
        nofollow_only.retain(|url| !pages.contains(url));
        for name in [MISSING_NAME, FAILING_NAME] {
            if unreachable.iter().any(|url| url.contains(name)) {
                hosts_unreachable.insert(name.to_owned());
            }
        }
    }
}
