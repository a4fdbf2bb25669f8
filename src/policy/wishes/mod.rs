//! R6: what a site wishes its pages to be used for, from its own words to one verdict a purpose.
//!
//! In: pieces of evidence ([`UsageWish`]), kept as found, and a page's directives. Out: whether a
//! purpose may have the page, and which piece says so. Nothing is decided when a piece is kept, so
//! what is stored can be judged anew when the drafts have moved: the words are in `table.rs`.
//!
//! - W-1 Any statement that refuses a purpose refuses it, whatever else allows it. Only within one
//!   scheme the more specific statement stands in for the less specific: the longest path of
//!   robots.txt (aipref-attach 3.1), and a page's own TDMRep before its header before the file.
//! - W-2 Nobody is taken to have said what the words do not say: no evidence is no wish, and what
//!   to do then is up to whoever asks.
//! - W-3 Every bound errs towards refusing: a piece that was cut, and pieces beyond the number that
//!   is kept, refuse every use.
//! - W-4 Nothing that a site writes makes this fail; words that nobody knows say nothing.

mod table;
mod evidence;
mod statement;
mod robots;
mod reservations;

pub use evidence::{WISHES_MAX, keep};
pub use reservations::Reservations;
pub use robots::SiteWishes;

use std::fmt;

use crate::types::UsageWish;
use statement::{Family, Statement};

/// What a page is used for: `purpose` of an `[[output]]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A search index.
    Search,
    /// Training of models.
    AiTrain,
    /// Input of models at the time they answer.
    AiInput,
    /// Keeping. Nothing that sites say today speaks of it.
    #[default]
    Archive,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Search, Self::AiTrain, Self::AiInput, Self::Archive];

    /// The word in configuration and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::AiTrain => "ai-train",
            Self::AiInput => "ai-input",
            Self::Archive => "archive",
        }
    }

    /// The purpose of a word; `None` when there is none such.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.as_str() == word)
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// In whose terms something was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Content-Usage of the aipref drafts.
    ContentUsage,
    /// Content-Signal.
    ContentSignal,
    /// The TDM Reservation Protocol.
    TdmRep,
    /// `noai` and `noimageai`.
    NoAi,
    /// robots.txt refuses the path to an agent known for the purpose.
    Agent,
    /// `noindex` of the page (R4).
    NoIndex,
    /// More was said than is kept.
    Bound,
}

impl Scheme {
    /// The word in reports and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContentUsage => "content-usage",
            Self::ContentSignal => "content-signal",
            Self::TdmRep => "tdmrep",
            Self::NoAi => "noai",
            Self::Agent => "agent-group",
            Self::NoIndex => "noindex",
            Self::Bound => "bound",
        }
    }
}

/// Whether a purpose may have a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'e> {
    /// It is said that it may.
    Allowed(Cause<'e>),
    /// It is said that it may not.
    Refused(Cause<'e>),
    /// Nobody says anything on it.
    NoWish,
}

/// The piece that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause<'e> {
    /// In whose terms.
    pub scheme: Scheme,
    /// Where it was found.
    pub source: &'e str,
    /// What it says.
    pub text: &'e str,
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.scheme.as_str(), self.source, self.text.replace('\n', "; "))
    }
}

/// Judges a page for a purpose, by what was kept of its site's words and its own directives.
///
/// The first piece that refuses is the cause; without one the first that allows. Time is linear in
/// what was kept.
pub fn judge<'e>(purpose: Purpose, usage: &'e [UsageWish], robots: &'e [String]) -> Verdict<'e> {
    let directive = robots.iter().find(|word| table::refuses_index(word));
    if let Some(text) = directive.filter(|_| purpose == Purpose::Search) {
        return Verdict::Refused(Cause { scheme: Scheme::NoIndex, source: "page", text });
    }
    let statements: Vec<Statement<'e>> = usage.iter().filter_map(Statement::read).collect();
    let mut ranks = [0; Family::COUNT];
    for statement in &statements {
        let highest = &mut ranks[statement.family as usize];
        *highest = statement.rank.max(*highest);
    }
    let mut allowed = None;
    for statement in &statements {
        if statement.rank < ranks[statement.family as usize] {
            continue;
        }
        match statement.says(purpose) {
            Some(false) => return Verdict::Refused(statement.cause()),
            Some(true) => allowed = allowed.or(Some(statement.cause())),
            None => {}
        }
    }
    allowed.map_or(Verdict::NoWish, Verdict::Allowed)
}

#[cfg(test)]
mod tests;
