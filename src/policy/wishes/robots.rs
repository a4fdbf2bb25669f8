//! What a robots.txt says on the use of its site's pages: read once, asked for every page.
//!
//! Groups are those of RFC 9309 as `policy::robots` reads them: statements count from the groups
//! that name us, or from those for everyone when none does. Content-Usage and Content-Signal are
//! rules of a group; in front of the first group they speak to everyone. Of groups that name an
//! agent known for a use ([`super::table::AGENTS`]) it is kept which paths they refuse it; a group
//! for everyone says nothing about them.
//!
//! Each line is kept once, however many agents its group names.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::evidence::{keep, keep_note};
use super::statement::{ROBOTS, path_and_rest};
use super::table::AGENTS;
use crate::policy::robots::{Key, Line, Path, Pattern, lines, names, names_everyone, pattern_of};
use crate::types::{Timestamp, UsageWish};

/// Lines kept of each kind; a file with more is taken to say no to every page (W-3).
const LINES_MAX: usize = 65_536;

/// The agents of the table, a bit each.
type Agents = u64;

/// What one robots.txt says on use.
#[derive(Clone, Debug, Default)]
pub struct SiteWishes {
    /// The most specific first.
    statements: Vec<Stated>,
    /// The most specific first, `Allow` before `Disallow`.
    rules: Vec<AgentRule>,
    /// All agents that some rule speaks of.
    agents: Agents,
    /// More lines than are kept.
    is_cut: bool,
}

/// A Content-Usage or Content-Signal line.
#[derive(Clone, Debug)]
struct Stated {
    /// `None` for the whole site.
    pattern: Option<Pattern>,
    text: String,
}

/// An `Allow` or `Disallow` line of groups that name known agents.
#[derive(Clone, Debug)]
struct AgentRule {
    agents: Agents,
    allow: bool,
    pattern: Pattern,
    text: String,
}

impl SiteWishes {
    /// Reads the text of a robots.txt for the product token `product` (any case).
    pub fn read(text: &Bytes, product: &str) -> Self {
        let mut reader = Reader::new(product);
        for line in lines(text) {
            reader.line(&Line::read(line, &mut 0));
        }
        let mut wishes = reader.wishes;
        let (named, everyone) = (reader.named, reader.everyone);
        wishes.statements.extend(if reader.names_us { named } else { everyone });
        wishes
            .statements
            .sort_by_key(|one| std::cmp::Reverse(one.pattern.as_ref().map_or(0, Pattern::octets)));
        wishes.rules.sort_by_key(|rule| (std::cmp::Reverse(rule.pattern.octets()), !rule.allow));
        wishes
    }

    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty() && self.rules.is_empty() && !self.is_cut
    }

    /// What it says of `/path?query`, said at `at`.
    pub fn of(&self, path_and_query: &str, at: Option<Timestamp>) -> Vec<UsageWish> {
        let mut kept = Vec::new();
        if self.is_empty() {
            return kept;
        }
        let path = Path::new(path_and_query);
        for stated in &self.statements {
            if stated.pattern.as_ref().is_none_or(|pattern| path.matches(pattern)) {
                keep(&mut kept, ROBOTS, &stated.text, at);
            }
        }
        for (line, agents) in self.refusals(&path) {
            let named = AGENTS.iter().enumerate().filter(|(bit, _)| agents >> bit & 1 == 1);
            let named: String =
                named.map(|(_, (agent, _))| format!("User-agent: {agent}\n")).collect();
            keep(&mut kept, ROBOTS, &(named + line), at);
        }
        if self.is_cut {
            keep_note(&mut kept, at);
        }
        kept
    }

    /// The lines that refuse a path to known agents, each text with all whom it decides for: sites
    /// write the same line in the groups of many.
    fn refusals(&self, path: &Path<'_>) -> BTreeMap<&str, Agents> {
        let mut refusals = BTreeMap::new();
        let mut open = self.agents;
        for rule in &self.rules {
            let decided = rule.agents & open;
            if decided != 0 && path.matches(&rule.pattern) {
                open &= !decided;
                if !rule.allow {
                    *refusals.entry(rule.text.as_str()).or_default() |= decided;
                }
            }
        }
        refusals
    }
}

/// The user-agent lines that the next rule belongs to.
#[derive(Clone, Copy, Default)]
struct Run {
    us: bool,
    everyone: bool,
    agents: Agents,
    closed: bool,
}

/// Reads line for line.
struct Reader<'p> {
    product: &'p str,
    wishes: SiteWishes,
    named: Vec<Stated>,
    everyone: Vec<Stated>,
    names_us: bool,
    /// A group has begun.
    grouped: bool,
    /// As in `policy::robots`: `Allow` and `Disallow` end a run of user-agent lines.
    rule_run: Run,
    /// Wishes on use end it too; those who do not know them read on.
    wish_run: Run,
}

impl<'p> Reader<'p> {
    fn new(product: &'p str) -> Self {
        Self {
            product,
            wishes: SiteWishes::default(),
            named: Vec::new(),
            everyone: Vec::new(),
            names_us: false,
            grouped: false,
            rule_run: Run::default(),
            wish_run: Run::default(),
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        match line.key() {
            Some(Key::UserAgent) => self.user_agent(&String::from_utf8_lossy(line.value())),
            Some(Key::Allow) => self.rule(line, true),
            Some(Key::Disallow) => self.rule(line, false),
            Some(Key::CrawlDelay | Key::Sitemap) => {}
            None if is_wish(line.text()) => self.wish(line),
            None => {}
        }
    }

    fn user_agent(&mut self, value: &str) {
        let us = names(value, self.product);
        let everyone = names_everyone(value);
        let mut agents = 0;
        for (bit, (agent, _)) in AGENTS.iter().enumerate() {
            agents |= Agents::from(names(value, agent)) << bit;
        }
        self.names_us |= us;
        self.grouped = true;
        for run in [&mut self.rule_run, &mut self.wish_run] {
            if run.closed {
                *run = Run::default();
            }
            run.us |= us;
            run.everyone |= everyone;
            run.agents |= agents;
        }
    }

    fn rule(&mut self, line: &Line<'_>, allow: bool) {
        self.rule_run.closed = true;
        self.wish_run.closed = true;
        let agents = self.rule_run.agents;
        if agents == 0 || line.value().is_empty() {
            return;
        }
        if self.wishes.rules.len() >= LINES_MAX {
            self.wishes.is_cut = true;
            return;
        }
        let (pattern, is_cut) = pattern_of(line);
        if is_cut && allow {
            return;
        }
        self.wishes.agents |= agents;
        let text = line.shown();
        self.wishes.rules.push(AgentRule { agents, allow, pattern, text });
    }

    fn wish(&mut self, line: &Line<'_>) {
        self.wish_run.closed = true;
        let run = self.wish_run;
        let kept = match (self.grouped, run.us, run.everyone) {
            (false, ..) => &mut self.wishes.statements,
            (true, true, _) => &mut self.named,
            (true, false, true) => &mut self.everyone,
            (true, false, false) => return,
        };
        if kept.len() >= LINES_MAX {
            self.wishes.is_cut = true;
            return;
        }
        let value = String::from_utf8_lossy(line.value());
        let (path, _) = path_and_rest(&value);
        let pattern = path.map(|path| Pattern::read(path.as_bytes()));
        kept.push(Stated { pattern, text: String::from_utf8_lossy(line.text()).into_owned() });
    }
}

/// Whether a line is a wish on use.
fn is_wish(text: &[u8]) -> bool {
    let colon = memchr::memchr(b':', text).and_then(|at| text.get(..at));
    colon.is_some_and(|name| {
        let name = name.trim_ascii();
        name.eq_ignore_ascii_case(b"content-usage") || name.eq_ignore_ascii_case(b"content-signal")
    })
}
