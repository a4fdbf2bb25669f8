//! Exactly what was written: the TOML file as a tree with lines, the environment and the command
//! line laid over it. Nothing is judged here but the syntax.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::faults::{Fault, Faults, Origin};

/// What every environment variable of the configuration begins with.
pub(crate) const PREFIX: &str = "MEHMAN__";

/// A value and where it was set.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) origin: Origin,
}

/// A value as written.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// Text without a type, from a variable or an option: the key says how to read it.
    Word(String),
    Text(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    /// A kind no key has: dates, numbers beyond counting.
    Other(String),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

/// A list that was read from a word.
pub(super) struct Listed {
    pub(super) node: Node,
    /// Written as TOML, and so with types.
    pub(super) is_toml: bool,
}

/// Where the text of a value stands.
enum Place<'t> {
    File { path: Arc<Path>, text: &'t str, lines: Vec<usize> },
    Word(Origin),
}

impl Place<'_> {
    /// `at` is a byte offset.
    fn origin(&self, at: usize) -> Origin {
        match self {
            Self::File { path, text, lines } => {
                let line = lines.partition_point(|start| *start <= at);
                let start = line.checked_sub(1).and_then(|line| lines.get(line)).copied();
                let before = text.get(start.unwrap_or(0)..at).unwrap_or_default();
                Origin::File { path: Arc::clone(path), line, column: before.chars().count() + 1 }
            }
            Self::Word(origin) => origin.clone(),
        }
    }
}

impl Node {
    /// A table with nothing in it.
    pub(super) fn empty() -> Self {
        Self { content: Content::Table(BTreeMap::new()), origin: Origin::Default }
    }

    /// Parses a file; faults of its syntax go to `faults`, and the tree is then empty.
    pub(super) fn from_toml(text: &str, path: &Path, faults: &mut Faults) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        let place = Place::File { path: path.into(), text, lines };
        let (table, mut errors) = DeTable::parse_recoverable(text);
        errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
        if errors.is_empty() {
            return Self::of_table(table.get_ref(), Origin::Default, &place);
        }
        for error in errors {
            faults.push_unreadable(Fault {
                key: String::new(),
                origin: place.origin(error.span().map_or(0, |span| span.start)),
                found: None,
                problem: format!("not TOML: {}", error.message()),
                remedy: String::new(),
            });
        }
        Self::empty()
    }

    /// Reads a word as a list: as TOML writes it when it begins with a bracket, else its parts
    /// between commas. `None` when it is neither.
    pub(super) fn list(word: &str, origin: &Origin) -> Option<Listed> {
        if word.trim_start().starts_with('[') {
            let value = DeValue::parse(word).ok()?;
            let place = Place::Word(origin.clone());
            let node = Self::of_value(value.get_ref(), origin.clone(), &place);
            return Some(Listed { node, is_toml: true });
        }
        let words = word.split(',').map(str::trim).filter(|word| !word.is_empty());
        let item = |word: &str| {
            let content = Content::Word(word.to_owned());
            Self { content, origin: origin.clone() }
        };
        let content = Content::List(words.map(item).collect());
        Some(Listed { node: Self { content, origin: origin.clone() }, is_toml: false })
    }

    /// The text of a value that is one.
    pub(super) fn text(&self) -> Option<&str> {
        if let Content::Word(text) | Content::Text(text) = &self.content {
            Some(text)
        } else {
            None
        }
    }

    /// The text of a value without a type.
    pub(super) fn word(&self) -> Option<&str> {
        if let Content::Word(word) = &self.content { Some(word) } else { None }
    }

    /// An element of a list.
    pub(super) fn element(&self, at: usize) -> Option<&Self> {
        if let Content::List(items) = &self.content { items.get(at) } else { None }
    }

    /// The value of a key in a table.
    pub(super) fn key(&self, name: &str) -> Option<&Self> {
        if let Content::Table(table) = &self.content { table.get(name) } else { None }
    }

    /// Where the value of a path was set, `output[2].kind`: the nearest that is there.
    pub(super) fn origin_of(&self, path: &str) -> Origin {
        let mut node = self;
        for part in path.split(['.', '[']) {
            let inner = match part.strip_suffix(']').and_then(|at| at.parse().ok()) {
                Some(at) => node.element(at),
                None => node.key(part),
            };
            let Some(inner) = inner else { break };
            node = inner;
        }
        if std::ptr::eq(node, self) { Origin::Default } else { node.origin.clone() }
    }

    /// Lays a word over what stands at a path, `fetch.workers`. Where the path leads through
    /// something that is not a table, that something stays, to be named as the fault it is.
    pub(super) fn lay_over(&mut self, path: &[&str], word: &str, origin: Origin) {
        let Content::Table(table) = &mut self.content else { return };
        match path {
            [] => {}
            [name] => {
                let content = Content::Word(word.to_owned());
                table.insert((*name).to_owned(), Self { content, origin });
            }
            [name, rest @ ..] => {
                let inner = table.entry((*name).to_owned()).or_insert_with(|| Self {
                    content: Content::Table(BTreeMap::new()),
                    origin: origin.clone(),
                });
                inner.lay_over(rest, word, origin);
            }
        }
    }

    /// The value as TOML would write it, cut where it is long.
    pub(super) fn show(&self) -> String {
        match &self.content {
            Content::Word(text) | Content::Text(text) => {
                let cut: String = text.chars().take(100).collect();
                let dots = if cut.len() < text.len() { "…" } else { "" };
                format!("{}{dots}", toml::Value::String(cut))
            }
            Content::Integer(number) => number.to_string(),
            Content::Float(number) => toml::Value::Float(*number).to_string(),
            Content::Bool(truth) => truth.to_string(),
            Content::Other(text) => text.clone(),
            Content::List(items) if items.is_empty() => "[]".to_owned(),
            Content::List(items) if items.len() <= 8 => {
                let shown: Vec<String> = items.iter().map(Self::show).collect();
                format!("[{}]", shown.join(", "))
            }
            Content::List(items) => format!("[{} elements]", items.len()),
            Content::Table(_) => "{…}".to_owned(),
        }
    }

    fn of_table(table: &DeTable<'_>, origin: Origin, place: &Place<'_>) -> Self {
        let entries = table.iter().map(|(name, value)| {
            let origin = place.origin(name.span().start);
            (name.get_ref().to_string(), Self::of_value(value.get_ref(), origin, place))
        });
        Self { content: Content::Table(entries.collect()), origin }
    }

    fn of_value(value: &DeValue<'_>, origin: Origin, place: &Place<'_>) -> Self {
        let content = match value {
            DeValue::String(text) => Content::Text(text.to_string()),
            DeValue::Integer(number) => {
                match i128::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Content::Integer(number),
                    Err(_) => Content::Other(number.to_string()),
                }
            }
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => Content::Float(number),
                Err(_) => Content::Other(number.to_string()),
            },
            DeValue::Boolean(truth) => Content::Bool(*truth),
            DeValue::Datetime(date) => Content::Other(date.to_string()),
            DeValue::Array(items) => {
                let node = |item: &Spanned<DeValue<'_>>| {
                    Self::of_value(item.get_ref(), place.origin(item.span().start), place)
                };
                Content::List(items.iter().map(node).collect())
            }
            DeValue::Table(table) => return Self::of_table(table, origin, place),
        };
        Self { content, origin }
    }
}
