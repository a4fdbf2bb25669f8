//! The whole configuration: typed, complete, immutable, made from the defaults, the file, the
//! environment and the command line, each stronger than the one before (U1).

use std::path::Path;

use super::cluster::{Cluster, Frontier};
use super::data::Data;
use super::define::section;
use super::faults::{ConfigFaults, Fault, Faults, Origin};
use super::fetch::{Dns, Fetch};
use super::identity::{Admin, Identity};
use super::keys::{Found, Key, Setting, flatten};
use super::limits::{Limits, Retry, Robots};
use super::output::{Archive, Extract, Output, Parse};
use super::politeness::Politeness;
use super::raw::{Node, PREFIX};
use super::reader::{Check, Checked, Unfit};
use super::recrawl::Recrawl;
use super::scope::{Scope, Traps};
use super::units::show_duration;

section! {
    /// Everything an operator can set. A value of this type has passed every check.
    pub struct Config {
        /// Who the crawler says it is.
        identity: Identity = Identity::default(), live();
        /// Where state is kept.
        data: Data = Data::default();
        /// The admin HTTP server.
        admin: Admin = Admin::default();
        /// How names become addresses.
        dns: Dns = Dns::default();
        /// How pages are fetched.
        fetch: Fetch = Fetch::default(), live();
        /// How often a site is visited.
        politeness: Politeness = Politeness::default(), live();
        /// Bounds of the whole crawl and of this machine.
        limits: Limits = Limits::default(), live();
        /// What happens to a URL that failed.
        retry: Retry = Retry::default(), live();
        /// How robots.txt is kept.
        robots: Robots = Robots::default(), live();
        /// What belongs to the crawl.
        scope: Scope = Scope::default(), live();
        /// Where a site without end is cut off.
        traps: Traps = Traps::default(), live();
        /// Where responses are stored before anything parses them.
        archive: Archive = Archive::default();
        /// How pages are parsed, and what one page may cost.
        parse: Parse = Parse::default();
        /// When pages are visited again.
        recrawl: Recrawl = Recrawl::default(), live();
        /// How the frontier is cut and what of it is in memory.
        frontier: Frontier = Frontier::default();
        /// Membership and ownership over several nodes.
        cluster: Cluster = Cluster::default();
        /// Outputs of parsed pages; page records as JSON Lines unless any is given.
        output: Vec<Output> = Output::defaults();
        /// Fields taken from pages by CSS selectors.
        extract: Vec<Extract> = Vec::new();
    }
}

impl Checked for Config {
    fn check(&self, check: &mut Check<'_>) {
        let (lease, total) = (self.retry.lease, self.fetch.total_timeout);
        let fault = Unfit {
            found: Some(show_duration(lease)),
            problem: &format!(
                "an exchange may take {} and outlive its lease",
                show_duration(total)
            ),
            remedy: "wanted more than `fetch.total_timeout`",
        };
        check.refuse_unless(lease > total, &["retry.lease", "fetch.total_timeout"], fault);
    }
}

/// Every key, in the order of the sections.
pub fn keys() -> Vec<Key> {
    flatten(&Config::inner())
}

impl Config {
    /// Reads a file if one is given, variables that begin with `MEHMAN__`, and options given as
    /// `("scope.mode", "domain")`; later ones win. Without any of them: the defaults.
    ///
    /// # Errors
    /// Every fault found, also when the file cannot be read.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        options: &[(String, String)],
    ) -> Result<Self, ConfigFaults> {
        Self::load_for(file, environment, options, &|_| Vec::new())
    }

    /// The same for somebody who works with it: `unfit` names the values that it cannot use, and
    /// they are told beside those that cannot be read.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_for(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
        options: &[(String, String)],
        unfit: &dyn Fn(&Self) -> Vec<Fault>,
    ) -> Result<Self, ConfigFaults> {
        let mut faults = Faults::default();
        let mut root = file.map_or_else(Node::empty, |path| read_file(path, &mut faults));
        lay_over(&mut root, environment, options);
        Self::judge(&root, faults, unfit)
    }

    /// Reads TOML; `name` stands for the file in faults.
    ///
    /// # Errors
    /// Every fault found.
    pub fn from_toml(text: &str, name: &str) -> Result<Self, ConfigFaults> {
        let mut faults = Faults::default();
        let root = Node::from_toml(text, Path::new(name), &mut faults);
        Self::judge(&root, faults, &|_| Vec::new())
    }

    /// R5: whether a crawl may start: only with a contact for site owners.
    ///
    /// # Errors
    /// That it is missing, and how to give it.
    pub fn crawlable(&self) -> Result<(), ConfigFaults> {
        if self.identity.contact_url.is_some() || self.identity.contact_email.is_some() {
            return Ok(());
        }
        let problem = "the owners of sites need a way to reach whoever crawls them";
        let remedy = "set `identity.contact_url` or `identity.contact_email`, or give `crawl` \
                      one of them with --contact";
        Err(Fault::of("identity.contact_url", problem).remedy(remedy).into())
    }

    /// What a reload makes of this configuration and a new one: the new values where that is safe,
    /// the old ones where only a restart will do.
    #[must_use]
    pub fn reloaded(&self, new: &Self) -> Self {
        let fetch = Fetch {
            workers: self.fetch.workers,
            allow_networks: self.fetch.allow_networks.clone(),
            extra_ca_files: self.fetch.extra_ca_files.clone(),
            ..new.fetch.clone()
        };
        Self {
            fetch,
            data: self.data.clone(),
            admin: self.admin.clone(),
            dns: self.dns.clone(),
            archive: self.archive.clone(),
            parse: self.parse.clone(),
            frontier: self.frontier.clone(),
            cluster: self.cluster.clone(),
            output: self.output.clone(),
            extract: self.extract.clone(),
            ..new.clone()
        }
    }

    fn judge(
        root: &Node,
        mut faults: Faults,
        unfit: &dyn Fn(&Self) -> Vec<Fault>,
    ) -> Result<Self, ConfigFaults> {
        let (path, wanted) = (String::new(), Self::wanted());
        let found = Found { path, node: root, wanted, absent: "none", secret: false };
        let config = Self::read(&found, &mut faults);
        for fault in config.iter().flat_map(unfit).collect::<Vec<_>>() {
            if faults.sound(&fault.key) {
                faults.push(Fault { origin: root.origin_of(&fault.key), ..fault });
            }
        }
        faults.into_result()?;
        Ok(config.expect("a configuration without fault is complete"))
    }
}

fn read_file(path: &Path, faults: &mut Faults) -> Node {
    match std::fs::read_to_string(path) {
        Ok(text) => Node::from_toml(&text, path, faults),
        Err(why) => {
            faults.push_unreadable(Fault {
                key: String::new(),
                origin: Origin::File { path: path.into(), line: 0, column: 0 },
                found: None,
                problem: format!("failed to read: {why}"),
                remedy: String::new(),
            });
            Node::empty()
        }
    }
}

fn lay_over(
    root: &mut Node,
    environment: impl Iterator<Item = (String, String)>,
    options: &[(String, String)],
) {
    for (name, value) in environment {
        if let Some(key) = name.strip_prefix(PREFIX) {
            let key = key.to_lowercase();
            let path: Vec<&str> = key.split("__").collect();
            root.lay_over(&path, &value, Origin::Environment(name.clone()));
        }
    }
    for (key, value) in options {
        let path: Vec<&str> = key.split('.').collect();
        root.lay_over(&path, value, Origin::Flag);
    }
}
