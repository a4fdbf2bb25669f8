//! One definition per key: its name, type, default, meaning and rules stand once, in a `section!`
//! or a `table!`, and yield the field, the reading, the showing, the documentation, the nearest
//! key of a slip and the name of the variable.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::faults::{Fault, Faults};
use super::raw::{Content, Node, PREFIX};

/// A key as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// `politeness.min_delay`; keys inside a list of tables stand below the list's name.
    pub path: String,
    /// What it means.
    pub doc: String,
    /// What its value is.
    pub wanted: String,
    /// Whether a reload takes it, or only a restart.
    pub live: bool,
    /// Whether it stands in each table of a list.
    pub listed: bool,
}

impl Key {
    /// The variable that sets it: `MEHMAN__POLITENESS__MIN_DELAY`.
    pub fn environment(&self) -> String {
        format!("{PREFIX}{}", self.path.to_uppercase().replace('.', "__"))
    }
}

/// What a value shows of itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shown {
    /// Not set: the key's word for that is shown.
    Absent,
    Value(toml::Value),
    Table(Vec<Entry>),
    Tables(Vec<Vec<Entry>>),
}

/// A key with the value it has, or without where only keys are asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) doc: String,
    pub(super) wanted: String,
    pub(super) live: Option<bool>,
    pub(super) secret: bool,
    pub(super) absent: &'static str,
    pub(super) shown: Option<Shown>,
    /// The keys inside, for a table or a list of tables.
    pub(super) inner: Vec<Self>,
    /// Whether it is a list of tables.
    pub(super) list: bool,
}

/// A type that a key may have.
pub(super) trait Setting: Sized + 'static {
    /// A list of them is a list of tables.
    const TABLE: bool = false;

    /// What would do, as it ends the sentence "wanted …".
    fn wanted() -> String;

    /// Reads a value, or names its faults.
    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self>;

    /// Shows it so that it reads back as itself.
    fn show(&self) -> Shown;

    /// The keys inside it.
    fn inner() -> Vec<Entry> {
        Vec::new()
    }

    /// Whether it is a list of tables.
    fn list() -> bool {
        false
    }
}

/// What begins the wish for a list, before the wish for its elements.
pub(super) const EACH: &str = "a list, each ";

/// A value to be read, with what its key knows.
#[derive(Clone, Debug)]
pub(super) struct Found<'n> {
    pub(super) path: String,
    pub(super) node: &'n Node,
    pub(super) wanted: String,
    pub(super) absent: &'static str,
    pub(super) secret: bool,
}

impl<'n> Found<'n> {
    /// The same key's value, read as something else, or an element of it.
    pub(super) fn inside(&self, index: Option<usize>, node: &'n Node, wanted: String) -> Self {
        let path = match index {
            Some(index) => format!("{}[{index}]", self.path),
            None => self.path.clone(),
        };
        Self { path, node, wanted, ..*self }
    }

    /// Refuses it for being of the wrong type.
    pub(super) fn refuse<T>(&self, faults: &mut Faults) -> Option<T> {
        let problem = match &self.node.content {
            Content::Table(_) => "a table cannot stand here",
            Content::List(_) => "a list cannot stand here",
            Content::Word(_) | Content::Text(_) => "this text does not fit",
            Content::Integer(_) | Content::Float(_) => "this number does not fit",
            Content::Bool(_) => "true and false do not fit",
            Content::Other(_) => "no key has a value of this type",
        };
        self.refuse_because(problem, faults)
    }

    /// Refuses it for a reason.
    pub(super) fn refuse_because<T>(&self, why: impl Display, faults: &mut Faults) -> Option<T> {
        faults.push(Fault {
            key: self.path.clone(),
            origin: self.node.origin.clone(),
            found: Some(if self.secret { "(hidden)".to_owned() } else { self.node.show() }),
            problem: why.to_string(),
            remedy: format!("wanted {}", self.wanted),
        });
        None
    }
}

/// Which part of a value breaks a rule.
pub(super) enum Broken {
    Whole,
    /// So many of a list, one and more.
    Elements(Vec<usize>),
}

/// Says which part of a value breaks a rule, if any does.
type Judge<T> = Box<dyn Fn(&T) -> Option<Broken>>;

/// A rule for values of a type.
pub(super) struct Rule<T> {
    /// Ends the sentence that the type's own wish begins, space or comma included.
    wanted: String,
    broken: Judge<T>,
}

impl<T> Rule<T> {
    /// The part of a value that breaks it.
    pub(super) fn broken(&self, value: &T) -> Option<Broken> {
        (self.broken)(value)
    }
}

/// One key of a table, while it is defined.
pub(super) struct Field<T> {
    pub(super) name: &'static str,
    doc: &'static [&'static str],
    pub(super) default: Option<T>,
    live: Option<bool>,
    pub(super) secret: bool,
    pub(super) absent: &'static str,
    pub(super) rules: Vec<Rule<T>>,
}

impl<T: Setting> Field<T> {
    /// `name` as Rust spells it, `doc` as the lines of the field's documentation.
    pub(super) fn new(name: &'static str, doc: &'static [&'static str]) -> Self {
        let name = name.trim_start_matches("r#");
        let (live, secret, absent, rules) = (None, false, "none", Vec::new());
        Self { name, doc, default: None, live, secret, absent, rules }
    }

    /// Its value when nobody sets it; without, the key is required.
    pub(super) fn default(mut self, value: T) -> Self {
        self.default = Some(value);
        self
    }

    /// The key's name where the field has another.
    pub(super) fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// A reload takes it.
    pub(super) fn live(mut self) -> Self {
        self.live = Some(true);
        self
    }

    /// Only a restart takes it, whatever its section says.
    pub(super) fn restart(mut self) -> Self {
        self.live = Some(false);
        self
    }

    /// Never shown unasked.
    pub(super) fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// The word for "not set", where it is not `none`.
    pub(super) fn absent(mut self, word: &'static str) -> Self {
        self.absent = word;
        self
    }

    /// The values allowed.
    pub(super) fn within<B: Setting + PartialOrd>(mut self, range: RangeInclusive<B>) -> Self
    where
        T: Ranged<B>,
    {
        let (low, high) = (plain(range.start()), plain(range.end()));
        let broken = move |value: &T| (!value.lies_within(&range)).then_some(Broken::Whole);
        let wanted = format!(", from {low} to {high}");
        self.rules.push(Rule { wanted, broken: Box::new(broken) });
        self
    }

    /// Another rule and its words.
    pub(super) fn that(mut self, holds: fn(&T) -> bool, wanted: &str) -> Self {
        let broken = move |value: &T| (!holds(value)).then_some(Broken::Whole);
        self.rules.push(Rule { wanted: format!(" {wanted}"), broken: Box::new(broken) });
        self
    }

    /// The key with its value.
    pub(super) fn entry(self, value: Option<&T>) -> Entry {
        Entry {
            name: self.name,
            doc: self.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n"),
            wanted: self.wanted(),
            live: self.live,
            secret: self.secret,
            absent: self.absent,
            shown: value.map(T::show),
            inner: T::inner(),
            list: T::list(),
        }
    }

    /// What would do, rules included.
    pub(super) fn wanted(&self) -> String {
        let rules: Vec<_> = self.rules.iter().map(|rule| rule.wanted.as_str()).collect();
        let wanted = T::wanted();
        // An optional value names its absence last, behind the rules.
        let slot = if wanted.contains("{rules}") { "" } else { "{rules}" };
        let wanted = (wanted + slot).replace("{rules}", &rules.concat());
        wanted.replace("{absent}", self.absent)
    }
}

impl<E: Setting> Field<Vec<E>> {
    /// A rule for each element of a list.
    pub(super) fn each(mut self, holds: fn(&E) -> bool, wanted: &str) -> Self {
        let broken = move |list: &Vec<E>| {
            let numbered = list.iter().enumerate().filter(|(_, element)| !holds(element));
            let broken: Vec<usize> = numbered.map(|(at, _)| at).collect();
            (!broken.is_empty()).then_some(Broken::Elements(broken))
        };
        self.rules.push(Rule { wanted: format!(" {wanted}"), broken: Box::new(broken) });
        self
    }
}

/// A value that lies in a range or not; one that is absent lies in every range.
pub(super) trait Ranged<B> {
    fn lies_within(&self, range: &RangeInclusive<B>) -> bool;
}

impl<B: PartialOrd> Ranged<B> for B {
    fn lies_within(&self, range: &RangeInclusive<B>) -> bool {
        range.contains(self)
    }
}

impl<B: PartialOrd> Ranged<B> for Option<B> {
    fn lies_within(&self, range: &RangeInclusive<B>) -> bool {
        self.as_ref().is_none_or(|value| range.contains(value))
    }
}

/// A value in a sentence: text without its quotes.
pub(super) fn plain(value: &impl Setting) -> String {
    match value.show() {
        Shown::Value(toml::Value::String(text)) => text,
        Shown::Value(value) => value.to_string(),
        Shown::Absent => "none".to_owned(),
        Shown::Table(_) | Shown::Tables(_) => "{…}".to_owned(),
    }
}

/// All keys of some entries, tables opened.
pub(super) fn flatten(entries: &[Entry]) -> Vec<Key> {
    let mut keys = Vec::new();
    flatten_into(entries, ("", false, false), &mut keys);
    keys
}

fn flatten_into(entries: &[Entry], (path, live, listed): (&str, bool, bool), keys: &mut Vec<Key>) {
    for entry in entries {
        let path = join(path, entry.name);
        let live = entry.live.unwrap_or(live);
        let key = Key {
            path: path.clone(),
            doc: entry.doc.clone(),
            wanted: entry.wanted.clone(),
            live,
            listed,
        };
        keys.push(key);
        flatten_into(&entry.inner, (&path, live, listed || entry.list), keys);
    }
}

/// A key below a path.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
