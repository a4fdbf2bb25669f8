//! One piece of evidence, read: who speaks, how specifically, and what is said of each purpose.

use sfv::{Dictionary, ListEntry, Parser};

use super::evidence::{BOUND, CUT_MARK};
use super::table::{CONTENT_SIGNAL, CONTENT_USAGE, DIRECTIVES, MINING, USES, purposes_of};
use super::{Cause, Purpose, Scheme};
use crate::policy::robots::Pattern;
use crate::types::UsageWish;

/// The source of what was said in robots.txt.
pub(super) const ROBOTS: &str = "robots.txt";

/// Statements of which the more specific stands in for the less specific (W-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Each stands for itself.
    Single,
    /// Content-Usage rules of robots.txt, by the length of their paths.
    UsageRules,
    /// Content-Signal lines of robots.txt, likewise.
    SignalRules,
    /// TDMRep, by its place.
    Mining,
}

impl Family {
    /// How many there are.
    pub(super) const COUNT: usize = 4;
}

/// What one piece says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statement<'e> {
    scheme: Scheme,
    pub(super) family: Family,
    /// The more specific, the higher.
    pub(super) rank: usize,
    /// By purpose, in the order of [`Purpose::ALL`].
    says: [Option<bool>; Purpose::ALL.len()],
    wish: &'e UsageWish,
}

impl<'e> Statement<'e> {
    /// Reads a piece; `None` where nothing in it is known to us.
    pub(super) fn read(wish: &'e UsageWish) -> Option<Self> {
        let of = |scheme| Self::new(scheme, wish);
        if wish.source == BOUND {
            return Some(of(Scheme::Bound).saying(USES, false));
        }
        let (name, value) = wish.text.split_once(':')?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        let is_cut = wish.text.ends_with(CUT_MARK);
        Some(match name.as_str() {
            "content-usage" => of(Scheme::ContentUsage).with_rule(value, Family::UsageRules, usage),
            "content-signal" => {
                of(Scheme::ContentSignal).with_rule(value, Family::SignalRules, signals)
            }
            "tdm-reservation" => of(Scheme::TdmRep).with_reservation(value, is_cut)?,
            // Where leave may be bought, which nobody has.
            "tdm-policy" => return None,
            "user-agent" => of(Scheme::Agent).with_agents(is_cut),
            _ => of(Scheme::NoAi).with_directives(value, is_cut)?,
        })
    }

    fn new(scheme: Scheme, wish: &'e UsageWish) -> Self {
        Self { scheme, family: Family::Single, rank: 0, says: Default::default(), wish }
    }

    /// Content-Usage and Content-Signal: in robots.txt a path may come first.
    fn with_rule(mut self, value: &str, family: Family, read: fn(&str, &mut Self)) -> Self {
        let mut value = value;
        if self.wish.source == ROBOTS {
            let path;
            (path, value) = path_and_rest(value);
            self.family = family;
            self.rank = path.map_or(0, |path| Pattern::read(path.as_bytes()).octets());
        }
        read(value, &mut self);
        if self.wish.text.ends_with(CUT_MARK) {
            self = self.saying(USES, false);
        }
        self
    }

    /// TDMRep 1.0, 6.5: what a page says stands in for its headers, and those for the file. A value
    /// that is none is as good as unsaid.
    fn with_reservation(self, value: &str, is_cut: bool) -> Option<Self> {
        let may = match value {
            "0" => true,
            "1" => false,
            _ if is_cut => false,
            _ => return None,
        };
        let rank = match self.wish.source.as_str() {
            "meta" => 2,
            "header" => 1,
            _ => 0,
        };
        Some(Self { family: Family::Mining, rank, ..self }.saying(MINING, may))
    }

    /// A piece is kept for directives where one is for us; which part of it is not told apart here.
    fn with_directives(self, value: &str, is_cut: bool) -> Option<Self> {
        let words = || value.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':'));
        let found = DIRECTIVES
            .iter()
            .filter(|(name, _)| words().any(|word| word.eq_ignore_ascii_case(name)));
        let mut statement = found.fold(self, |all, (_, purposes)| all.saying(purposes, false));
        if is_cut && matches!(self.wish.source.as_str(), "header" | "meta") {
            statement = statement.saying(MINING, false);
        }
        statement.says.iter().any(Option::is_some).then_some(statement)
    }

    /// Groups that name agents and a line that refuses the path to them.
    fn with_agents(self, is_cut: bool) -> Self {
        let named = self.wish.text.lines().filter_map(|line| {
            let (key, agent) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case("user-agent").then(|| agent.trim())
        });
        let statement = named.fold(self, |all, agent| all.saying(purposes_of(agent), false));
        if is_cut { statement.saying(MINING, false) } else { statement }
    }

    fn saying(mut self, purposes: &[Purpose], may: bool) -> Self {
        for purpose in purposes {
            self.says[*purpose as usize] = Some(may);
        }
        self
    }

    /// Whether the purpose may have the page; `None` where nothing is said of it.
    pub(super) fn says(&self, purpose: Purpose) -> Option<bool> {
        self.says[purpose as usize]
    }

    /// This piece as the cause of a verdict.
    pub(super) fn cause(&self) -> Cause<'e> {
        Cause { scheme: self.scheme, source: &self.wish.source, text: &self.wish.text }
    }
}

/// aipref-attach 3.2: the path ends before the first space or tab. Lines without one are of earlier
/// drafts and speak of the whole site.
pub(super) fn path_and_rest(value: &str) -> (Option<&str>, &str) {
    if !value.starts_with('/') {
        return (None, value);
    }
    match value.split_once([' ', '\t']) {
        Some((path, rest)) => (Some(path), rest.trim()),
        None => (Some(value), ""),
    }
}

/// aipref-vocab 6: a dictionary (RFC 9651) of tokens `y` and `n`; parameters, unknown labels and
/// other values say nothing, and neither does what is no dictionary.
fn usage(value: &str, statement: &mut Statement<'_>) {
    let Ok(dictionary) = Parser::new(value).parse::<Dictionary>() else { return };
    let preference = |label: &&str| match dictionary.get(*label)? {
        ListEntry::Item(item) => match item.bare_item.as_token()?.as_str() {
            "y" => Some(true),
            "n" => Some(false),
            _ => None,
        },
        ListEntry::InnerList(_) => None,
    };
    for (purpose, levels) in CONTENT_USAGE {
        let of_level = |labels: &&[&str]| labels.iter().filter_map(preference).min();
        statement.says[purpose as usize] = levels.iter().find_map(of_level);
    }
}

/// `name=yes` or `name=no`, separated by commas; of two for one name the one that refuses.
fn signals(value: &str, statement: &mut Statement<'_>) {
    for part in value.split(',') {
        let Some((name, answer)) = part.split_once('=') else { continue };
        let purpose =
            CONTENT_SIGNAL.iter().find(|(known, _)| name.trim().eq_ignore_ascii_case(known));
        let may = match answer.trim().to_ascii_lowercase().as_str() {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        if let (Some((_, purpose)), Some(may)) = (purpose, may) {
            let says = &mut statement.says[*purpose as usize];
            *says = Some(says.unwrap_or(true) && may);
        }
    }
}
