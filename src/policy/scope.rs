//! Which URLs belong to the crawl: `scope.mode`, `scope.include`, `scope.exclude` and the bounds.
//!
//! In the order of judgement: length, exclusions (they win over everything), depth, then either
//! the mode or an inclusion must take the URL in. Every list is looked up, never walked: names in
//! hash sets, SURT prefixes by binary search, regular expressions in one linear automaton.
//!
//! A *site* is a host name with its port, where 80 with http and 443 with https count as one port:
//! a site that moves from http to https stays in a crawl of mode `host`.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use regex::{RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};
use url::{Host, Position};

use super::normalise::{fingerprint, recognised};
use super::surt::{SurtPrefixes, parse_prefix};
use crate::types::{CrawlUrl, HostKey, Reason};

/// Bytes the automaton of all regular expressions may take.
const REGEX_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Columns before an expression in what the library says of it.
const CARET_INDENT: usize = 4;

/// `scope.mode`: what the seeds take in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeMode {
    /// The sites of the seeds.
    #[default]
    Host,
    /// The registered domains of the seeds, with all their hosts.
    Domain,
    /// The seeds and nothing else.
    Seeds,
    /// Everything.
    Any,
}

/// `scope.*`.
#[derive(Clone, Debug)]
pub struct ScopeSettings {
    /// What the seeds take in.
    pub mode: ScopeMode,
    /// What is taken in besides.
    pub include: Arc<RuleSet>,
    /// What is left out in any case.
    pub exclude: Arc<RuleSet>,
    /// Links away from a seed.
    pub max_depth: u16,
    /// Bytes of a URL.
    pub max_url_length: u32,
}

impl Default for ScopeSettings {
    fn default() -> Self {
        Self {
            mode: ScopeMode::Host,
            include: Arc::default(),
            exclude: Arc::default(),
            max_depth: 20,
            max_url_length: 2000,
        }
    }
}

/// One rule, as written in the configuration and in exclusions made at runtime (R5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ScopeRule {
    /// `surt:com,example)/path`: a SURT prefix, see [`parse_prefix`].
    Surt(String),
    /// `domain:example.com`: the name and everything below it.
    Domain(String),
    /// `host:example.com`, `host:example.com:8080` or `host:https://example.com`: any port of the
    /// name, the site, or exactly that host key.
    Host(String),
    /// `regex:…`: found anywhere in the URL.
    Regex(String),
}

impl ScopeRule {
    /// Reads a rule.
    ///
    /// # Errors
    /// One sentence on what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once(':').unwrap_or(("", text));
        match kind {
            "surt" => parse_prefix(value).map(Self::Surt),
            "domain" => {
                let name = value.trim_start_matches("*.").trim_matches('.');
                Ok(Self::Domain(host_of(name, false)?))
            }
            "host" if value.contains("://") => HostKey::parse(value)
                .map(|key| Self::Host(key.as_str().to_owned()))
                .ok_or_else(|| format!("`{value}` is not scheme://host[:port]")),
            "host" => Ok(Self::Host(host_of(value, true)?)),
            "regex" => match regex::Regex::new(value) {
                Ok(_) => Ok(Self::Regex(value.to_owned())),
                Err(why) => {
                    Err(format!("`{value}` is not a regular expression: {}", regex_fault(&why)))
                }
            },
            _ => Err(format!("`{text}` begins with none of surt:, domain:, host: and regex:")),
        }
    }
}

impl fmt::Display for ScopeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Surt(prefix) => write!(f, "surt:{prefix}"),
            Self::Domain(name) => write!(f, "domain:{name}"),
            Self::Host(name) => write!(f, "host:{name}"),
            Self::Regex(pattern) => write!(f, "regex:{pattern}"),
        }
    }
}

/// What is wrong with a regular expression, in one line: the library draws a caret below it.
fn regex_fault(why: &regex::Error) -> String {
    let told = why.to_string();
    let cause = told.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let is_caret = |line: &&str| line.contains('^') && line.trim().bytes().all(|byte| byte == b'^');
    let caret = told.lines().find(is_caret).and_then(|line| line.chars().position(|c| c == '^'));
    match (cause, caret.and_then(|at| at.checked_sub(CARET_INDENT))) {
        (Some(cause), Some(at)) => format!("{cause}, at its character {}", at + 1),
        (Some(cause), None) => cause.to_owned(),
        (None, _) => told,
    }
}

/// The name as URLs carry it: lower case, international names encoded, addresses in their one form.
fn host_of(text: &str, with_port: bool) -> Result<String, String> {
    let wrong = || format!("`{text}` is not a host name");
    if !with_port && text.contains(':') && !text.starts_with('[') {
        return Err(wrong());
    }
    if is_plain(text) {
        return Ok(text.to_owned());
    }
    let key = HostKey::parse(&format!("http://{text}")).ok_or_else(wrong)?;
    // The parser has left out port 80; 443 counts as the same, so a rule that names either says
    // no more than one that names none.
    let authority = key.authority();
    let authority = authority.strip_suffix(":443").unwrap_or(authority).trim_end_matches('.');
    if authority.is_empty() { Err(wrong()) } else { Ok(authority.to_owned()) }
}

/// A name that the parser would leave as it is; of a list of a million most are.
fn is_plain(text: &str) -> bool {
    let mut label = 0;
    let mut letters = false;
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' => letters = true,
            b'0'..=b'9' => {}
            b'.' if label > 0 => (label, letters) = (0, false),
            _ => return false,
        }
        label += usize::from(byte != b'.');
    }
    // A last label that begins with a digit may be the end of an address, and `0x1f` is one.
    let last = text.rsplit('.').next().unwrap_or_default();
    letters && label > 0 && last.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Rules as they are read, one after the other, so that no list of them is ever held twice.
#[derive(Debug, Default)]
pub struct RuleSetBuilder {
    set: RuleSet,
    surts: Vec<Box<str>>,
    patterns: Vec<String>,
}

impl RuleSetBuilder {
    /// Takes one more.
    pub fn add(&mut self, rule: ScopeRule) {
        match rule {
            ScopeRule::Surt(prefix) => self.surts.push(prefix.into()),
            ScopeRule::Domain(name) => drop(self.set.domains.insert(name.into())),
            ScopeRule::Host(name) => drop(self.set.hosts.insert(name.into())),
            ScopeRule::Regex(pattern) => self.patterns.push(pattern),
        }
    }

    /// Takes a line of a rule file; a blank one and one that begins with `#` say nothing.
    ///
    /// # Errors
    /// As [`ScopeRule::parse`].
    pub fn add_line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            self.add(ScopeRule::parse(line)?);
        }
        Ok(())
    }

    /// All of them, to be looked up.
    ///
    /// # Errors
    /// One sentence when the regular expressions together are too large.
    pub fn build(mut self) -> Result<RuleSet, String> {
        self.set.surts = SurtPrefixes::new(self.surts);
        if !self.patterns.is_empty() {
            let built = RegexSetBuilder::new(self.patterns).size_limit(REGEX_BYTES_MAX).build();
            let built = built.map_err(|why| format!("the regular expressions: {why}"))?;
            self.set.regexes = Some(built);
        }
        Ok(self.set)
    }
}

/// Rules, looked up together.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    surts: SurtPrefixes,
    domains: HashSet<Box<str>>,
    hosts: HashSet<Box<str>>,
    regexes: Option<RegexSet>,
}

impl RuleSet {
    /// Takes any number of rules.
    ///
    /// # Errors
    /// As [`RuleSetBuilder::build`].
    pub fn new(rules: impl IntoIterator<Item = ScopeRule>) -> Result<Self, String> {
        let mut builder = RuleSetBuilder::default();
        for rule in rules {
            builder.add(rule);
        }
        builder.build()
    }

    /// A rule that `url` falls under.
    pub fn find(&self, url: &CrawlUrl) -> Option<ScopeRule> {
        if !(self.hosts.is_empty() && self.domains.is_empty()) {
            let host = host(url);
            let named = [host_key(url), site(url), host];
            if let Some(name) = named.into_iter().find(|name| self.hosts.contains(*name)) {
                return Some(ScopeRule::Host(name.to_owned()));
            }
            if let Some(name) = self.domain_of(host) {
                return Some(ScopeRule::Domain(name.to_owned()));
            }
        }
        if let Some(prefix) = self.surts.find(url) {
            return Some(ScopeRule::Surt(prefix.to_owned()));
        }
        let regexes = self.regexes.as_ref()?;
        let first = regexes.matches(url.as_str()).iter().next()?;
        regexes.patterns().get(first).map(|pattern| ScopeRule::Regex(pattern.clone()))
    }

    /// The listed domain that `host` is or lies below.
    fn domain_of<'a>(&self, host: &'a str) -> Option<&'a str> {
        if self.domains.is_empty() {
            return None;
        }
        let mut name = host;
        while !self.domains.contains(name) {
            name = name.split_once('.')?.1;
        }
        Some(name)
    }
}

/// The parts of a URL that rules and modes speak of, borrowed: this is asked for every link.
/// A [`CrawlUrl`] has no credentials, and its default port is left out.
pub(super) fn host_key(url: &CrawlUrl) -> &str {
    &url.as_url()[..Position::AfterPort]
}

/// Host name and port; the default port, of either scheme, left out.
pub(super) fn site(url: &CrawlUrl) -> &str {
    url.as_url()[Position::BeforeHost..Position::AfterPort].trim_end_matches('.')
}

/// Host name without its port.
pub(super) fn host(url: &CrawlUrl) -> &str {
    url.as_url().host_str().unwrap_or_default().trim_end_matches('.')
}

/// The registered domain as [`HostKey::domain`] has it.
fn domain(url: &CrawlUrl) -> &str {
    let host = host(url);
    match url.as_url().host() {
        Some(Host::Domain(_)) => psl::domain_str(host).unwrap_or(host),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => host,
    }
}

/// What belongs to the crawl.
#[derive(Clone, Debug)]
pub struct Scope {
    mode: ScopeMode,
    max_depth: u16,
    max_url_length: u32,
    include: Arc<RuleSet>,
    exclude: Arc<RuleSet>,
    /// Of the seeds, what the mode asks for: sites, domains, or the seeds themselves.
    names: HashSet<Box<str>>,
    seeds: HashSet<u128>,
}

impl Scope {
    /// The scope of `settings` around `seeds`. Rules are shared, not copied.
    pub fn new<'a>(settings: ScopeSettings, seeds: impl IntoIterator<Item = &'a CrawlUrl>) -> Self {
        let mut scope = Self {
            mode: settings.mode,
            max_depth: settings.max_depth,
            max_url_length: settings.max_url_length,
            include: settings.include,
            exclude: settings.exclude,
            names: HashSet::new(),
            seeds: HashSet::new(),
        };
        for seed in seeds {
            scope.add_seed(seed);
        }
        scope
    }

    /// Takes one more seed in.
    pub fn add_seed(&mut self, seed: &CrawlUrl) {
        match self.mode {
            ScopeMode::Host => drop(self.names.insert(site(seed).into())),
            ScopeMode::Domain => drop(self.names.insert(domain(seed).into())),
            ScopeMode::Seeds => drop(self.seeds.insert(identity(seed))),
            ScopeMode::Any => {}
        }
    }

    /// Whether `url`, found `depth` links away from a seed, belongs to the crawl.
    ///
    /// # Errors
    /// The [`Reason`] it does not.
    pub fn judge(&self, url: &CrawlUrl, depth: u16) -> Result<(), Reason> {
        let length = u32::try_from(url.as_str().len()).unwrap_or(u32::MAX);
        if length > self.max_url_length {
            return Err(Reason::TooLong { length, max: self.max_url_length });
        }
        if let Some(rule) = self.exclude.find(url) {
            return Err(Reason::ExcludedByScope { rule: rule.to_string() });
        }
        if depth > self.max_depth {
            return Err(Reason::TooDeep { depth, max: self.max_depth });
        }
        if self.mode_takes(url) || self.include.find(url).is_some() {
            return Ok(());
        }
        let rule = match self.mode {
            ScopeMode::Host => "scope.mode is host, and no seed is of this host",
            ScopeMode::Domain => "scope.mode is domain, and no seed is of this domain",
            ScopeMode::Seeds => "scope.mode is seeds, and this is none",
            ScopeMode::Any => "scope.mode is any",
        };
        Err(Reason::OutOfScope { rule: rule.to_owned() })
    }

    fn mode_takes(&self, url: &CrawlUrl) -> bool {
        match self.mode {
            ScopeMode::Host => self.names.contains(site(url)),
            ScopeMode::Domain => self.names.contains(domain(url)),
            ScopeMode::Seeds => self.seeds.contains(&identity(url)),
            ScopeMode::Any => true,
        }
    }
}

/// A seed in 16 bytes.
fn identity(url: &CrawlUrl) -> u128 {
    fingerprint(&recognised(url), 0)
}

#[cfg(test)]
mod tests;
