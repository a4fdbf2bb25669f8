//! One definition per key: its name, type, default, meaning and rules stand once, in a `section!`
//! or a `table!`, and yield the field, the reading, the showing, the documentation, the nearest
//! key of a slip and the name of the variable.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use super::faults::{Fault, Faults, Origin};
use super::nearest::nearest_key;
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

/// Checks of the keys of one table against each other.
pub(super) trait Checked {
    /// Names what does not go together.
    fn check(&self, _check: &mut Check<'_>) {}
}

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
            Content::Word(_) | Content::Text(_) => "not what is wanted",
            Content::Integer(_) | Content::Float(_) => "a number that does not fit",
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
    Element(usize),
}

struct Rule<T> {
    wanted: String,
    broken: Box<dyn Fn(&T) -> Option<Broken>>,
}

/// One key of a table, while it is defined.
pub(super) struct Field<T> {
    name: &'static str,
    doc: &'static [&'static str],
    default: Option<T>,
    live: Option<bool>,
    secret: bool,
    absent: &'static str,
    rules: Vec<Rule<T>>,
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
        self.rules.push(Rule { wanted: format!("from {low} to {high}"), broken: Box::new(broken) });
        self
    }

    /// Another rule and its words.
    pub(super) fn that(mut self, holds: fn(&T) -> bool, wanted: &str) -> Self {
        let broken = move |value: &T| (!holds(value)).then_some(Broken::Whole);
        self.rules.push(Rule { wanted: wanted.to_owned(), broken: Box::new(broken) });
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

    fn wanted(&self) -> String {
        let rules: Vec<_> = self.rules.iter().map(|rule| format!(" {}", rule.wanted)).collect();
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
            list.iter().position(|element| !holds(element)).map(Broken::Element)
        };
        self.rules.push(Rule { wanted: wanted.to_owned(), broken: Box::new(broken) });
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

/// Reads the keys of one table.
pub(super) struct Reader<'n, 'f> {
    path: String,
    node: &'n Node,
    table: &'n BTreeMap<String, Node>,
    faults: &'f mut Faults,
}

impl<'n, 'f> Reader<'n, 'f> {
    /// `None`, and a fault, when it is not a table.
    pub(super) fn open(found: &Found<'n>, faults: &'f mut Faults) -> Option<Self> {
        match &found.node.content {
            Content::Table(table) => {
                Some(Self { path: found.path.clone(), node: found.node, table, faults })
            }
            Content::Word(_) | Content::Text(_) | Content::Integer(_) | Content::Float(_) => {
                found.refuse_because("not a table", faults)
            }
            Content::Bool(_) | Content::Other(_) | Content::List(_) => {
                found.refuse_because("not a table", faults)
            }
        }
    }

    /// Reads one key. A faulty one is named and stands as its default, so that reading goes on;
    /// `None` when it has none.
    pub(super) fn field<T: Setting>(&mut self, field: Field<T>) -> Option<T> {
        let path = join(&self.path, field.name);
        let wanted = field.wanted();
        let Some(node) = self.table.get(field.name) else {
            if field.default.is_none() {
                self.faults.push(Fault {
                    key: path,
                    origin: self.node.origin.clone(),
                    found: None,
                    problem: "missing".to_owned(),
                    remedy: format!("wanted {wanted}"),
                });
            }
            return field.default;
        };
        let found = Found { path, node, wanted, absent: field.absent, secret: field.secret };
        let Some(value) = T::read(&found, self.faults) else { return field.default };
        let broken = |rule: &Rule<T>| (rule.broken)(&value);
        match field.rules.iter().find_map(broken) {
            None => return Some(value),
            Some(Broken::Whole) => found.refuse_because::<T>("not allowed", self.faults),
            Some(Broken::Element(at)) => {
                let element = node.element(at).unwrap_or(node);
                let found = found.inside(Some(at), element, found.wanted.clone());
                found.refuse_because("not allowed", self.faults)
            }
        };
        field.default
    }

    /// Names the keys that are none of these, each with the nearest known one.
    pub(super) fn refuse_unknown(&mut self, known: &[Entry]) {
        for (name, node) in self.table {
            if known.iter().any(|entry| entry.name == name) {
                continue;
            }
            let path = join(&self.path, name);
            let keys = super::checked::keys();
            let bare = without_indices(&path);
            let nearest = nearest_key(&bare, keys.iter().map(|key| key.path.as_str()));
            self.faults.push(Fault {
                found: Some(node.show()),
                origin: node.origin.clone(),
                problem: "unknown key".to_owned(),
                remedy: nearest.map_or_else(String::new, |key| format!("the nearest is `{key}`")),
                key: path,
            });
        }
    }

    /// The checks that follow the reading.
    pub(super) fn check(&mut self) -> Check<'_> {
        Check { path: self.path.clone(), node: self.node, faults: self.faults }
    }
}

/// Checks keys of one table against each other.
pub(super) struct Check<'f> {
    path: String,
    node: &'f Node,
    faults: &'f mut Faults,
}

impl Check<'_> {
    /// Names a fault of `key`, unless it or one of the keys it was held against is faulty already.
    /// Keys may lead into a table below: `retry.lease`.
    pub(super) fn refuse_unless(&mut self, holds: bool, keys: &[&str], fault: Unfit<'_>) {
        let sound = |key: &&str| self.faults.sound(&join(&self.path, key));
        let Some(key) = keys.first() else { return };
        if holds || !keys.iter().all(sound) {
            return;
        }
        self.faults.push(Fault {
            key: join(&self.path, key),
            origin: self.origin(key),
            found: fault.found,
            problem: fault.problem.to_owned(),
            remedy: fault.remedy.to_owned(),
        });
    }

    /// Refuses `high` when it is below `low`.
    pub(super) fn ordered<T>(&mut self, low: (&str, &T), high: (&str, &T))
    where
        T: Setting + PartialOrd,
    {
        let fault = Unfit {
            found: Some(plain(high.1)),
            problem: &format!("below `{}`, which is {}", join(&self.path, low.0), plain(low.1)),
            remedy: &format!("wanted {} and more", plain(low.1)),
        };
        self.refuse_unless(low.1 <= high.1, &[high.0, low.0], fault);
    }

    fn origin(&self, key: &str) -> Origin {
        let node = key.split('.').try_fold(self.node, |node, name| node.key(name));
        node.map_or(Origin::Default, |node| node.origin.clone())
    }
}

/// What does not go together with another key.
pub(super) struct Unfit<'t> {
    pub(super) found: Option<String>,
    pub(super) problem: &'t str,
    pub(super) remedy: &'t str,
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

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// `politeness.allowance[3].host` → `politeness.allowance.host`.
fn without_indices(path: &str) -> String {
    let parts = path.split('[').enumerate().map(|(at, part)| match part.split_once(']') {
        Some((_, behind)) if at > 0 => behind,
        _ => part,
    });
    parts.collect()
}

/// A table of the configuration: struct, reading, showing. Fields are written
/// `/// Meaning.` `name: Type = default, option(arguments), …;`, without a default where required;
/// the options are the builders of [`Field`].
macro_rules! table {
    (
        $(#[doc = $about:literal])*
        pub struct $table:ident {
            $(
                $(#[doc = $doc:literal])*
                $name:ident: $type:ty $(= $default:expr)? $(, $option:ident($($argument:expr),*))*;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $table {
            $( $(#[doc = $doc])* pub $name: $type, )*
        }

        impl $table {
            fn entries(this: Option<&Self>) -> Vec<$crate::config::keys::Entry> {
                vec![$(
                    $crate::config::keys::Field::<$type>::new(stringify!($name), &[$($doc),*])
                        $(.default($default))?
                        $(.$option($($argument),*))*
                        .entry(this.map(|this| &this.$name)),
                )*]
            }
        }

        impl $crate::config::keys::Setting for $table {
            const TABLE: bool = true;

            fn wanted() -> String {
                let names: Vec<_> = Self::entries(None).iter().map(|entry| entry.name).collect();
                format!("a table of {}", names.join(", "))
            }

            fn read(
                found: &$crate::config::keys::Found<'_>,
                faults: &mut $crate::config::faults::Faults,
            ) -> Option<Self> {
                let mut reader = $crate::config::keys::Reader::open(found, faults)?;
                $(
                    let $name = reader.field(
                        $crate::config::keys::Field::<$type>::new(
                            stringify!($name),
                            &[$($doc),*],
                        )
                        $(.default($default))?
                        $(.$option($($argument),*))*
                    );
                )*
                reader.refuse_unknown(&Self::entries(None));
                let this = Self { $($name: $name?,)* };
                $crate::config::keys::Checked::check(&this, &mut reader.check());
                Some(this)
            }

            fn show(&self) -> $crate::config::keys::Shown {
                $crate::config::keys::Shown::Table(Self::entries(Some(self)))
            }

            fn inner() -> Vec<$crate::config::keys::Entry> {
                Self::entries(None)
            }
        }
    };
}

/// A [`table!`] in which every key has a default, and so the table has one.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        pub struct $table:ident {
            $(
                $(#[doc = $doc:literal])*
                $name:ident: $type:ty = $default:expr $(, $option:ident($($argument:expr),*))*;
            )*
        }
    ) => {
        $crate::config::keys::table! {
            $(#[doc = $about])*
            pub struct $table {
                $(
                    $(#[doc = $doc])*
                    $name: $type = $default $(, $option($($argument),*))*;
                )*
            }
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }
    };
}

pub(super) use {section, table};
