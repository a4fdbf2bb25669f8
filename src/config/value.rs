//! The types of values: how each is read, what would do instead, how it shows itself.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::faults::Faults;
use super::keys::{EACH, Entry, Found, Setting, Shown};
use super::nearest::nearest;
use super::raw::{Content, Node};
use super::units::{ByteSize, parse_duration, show_duration};
use crate::types::{IpNetwork, LinkKind};

/// What stands in a configuration that is shown instead of a secret.
pub(super) const MASK: &str = "(hidden)";

/// A text that is never printed unasked.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text secret.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// The text of a value that must be one.
pub(super) fn text_of<'n>(found: &Found<'n>, faults: &mut Faults) -> Option<&'n str> {
    found.node.text().or_else(|| found.refuse(faults))
}

/// A text value.
pub(super) fn shown_text(text: impl fmt::Display) -> Shown {
    Shown::Value(toml::Value::String(text.to_string()))
}

/// Reads what parses from text, and says why it does not.
pub(super) fn parsed<T: FromStr>(found: &Found<'_>, faults: &mut Faults) -> Option<T>
where
    T::Err: fmt::Display,
{
    match text_of(found, faults)?.trim().parse() {
        Ok(value) => Some(value),
        Err(why) => found.refuse_because(why, faults),
    }
}

/// Reads one of a few words.
pub(super) fn word_of<T: Copy>(
    found: &Found<'_>,
    words: &[(&'static str, T)],
    faults: &mut Faults,
) -> Option<T> {
    let text = text_of(found, faults)?;
    match words.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Some(*value),
        None => {
            let why = match nearest(text, words.iter().map(|(word, _)| *word)) {
                Some(near) => format!("no such word, the nearest is \"{near}\""),
                None => "no such word".to_owned(),
            };
            found.refuse_because(why, faults)
        }
    }
}

/// `"a", "b" or "c"`.
pub(super) fn either(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// An enum of words: its variants, their spelling and their meaning stand once.
macro_rules! words {
    (
        $(#[doc = $about:literal])*
        pub enum $name:ident { $( $(#[doc = $doc:literal])* $variant:ident = $word:literal, )* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[doc = $doc])* $variant, )* }

        impl $name {
            /// Each with its word.
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];

            /// The word in the configuration.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl $crate::config::keys::Setting for $name {
            fn wanted() -> String {
                $crate::config::value::either(&[$($word),*])
            }

            fn read(
                found: &$crate::config::keys::Found<'_>,
                faults: &mut $crate::config::faults::Faults,
            ) -> Option<Self> {
                $crate::config::value::word_of(found, Self::WORDS, faults)
            }

            fn show(&self) -> $crate::config::keys::Shown {
                $crate::config::value::shown_text(self.as_str())
            }
        }
    };
}
pub(super) use words;

macro_rules! whole_number {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn wanted() -> String {
                "a whole number".to_owned()
            }

            fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
                let number = if let Content::Integer(number) = &found.node.content {
                    Self::try_from(*number).ok()
                } else {
                    found.node.word().and_then(|word| word.trim().replace('_', "").parse().ok())
                };
                number.or_else(|| found.refuse(faults))
            }

            fn show(&self) -> Shown {
                // Every limit of a key lies below 2^63, TOML's largest number.
                Shown::Value(toml::Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX)))
            }
        }
    )*};
}
whole_number!(u8, u16, u32, u64);

impl Setting for f64 {
    fn wanted() -> String {
        "a number".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        let number = if let Content::Integer(number) = &found.node.content {
            i32::try_from(*number).ok().map(Self::from)
        } else if let Content::Float(number) = &found.node.content {
            Some(*number)
        } else {
            found.node.word().and_then(|word| word.trim().parse().ok())
        };
        number.filter(|number| number.is_finite()).or_else(|| found.refuse(faults))
    }

    fn show(&self) -> Shown {
        Shown::Value(toml::Value::Float(*self))
    }
}

impl Setting for bool {
    fn wanted() -> String {
        "true or false".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        let truth = if let Content::Bool(truth) = &found.node.content {
            Some(*truth)
        } else {
            found.node.word().and_then(|word| word.trim().parse().ok())
        };
        truth.or_else(|| found.refuse(faults))
    }

    fn show(&self) -> Shown {
        Shown::Value(toml::Value::Boolean(*self))
    }
}

impl Setting for String {
    fn wanted() -> String {
        "text".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        text_of(found, faults).map(str::to_owned)
    }

    fn show(&self) -> Shown {
        shown_text(self)
    }
}

impl Setting for Secret {
    fn wanted() -> String {
        "text".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        text_of(found, faults).map(|text| Self::new(text.to_owned()))
    }

    fn show(&self) -> Shown {
        shown_text(&self.0)
    }
}

impl Setting for PathBuf {
    fn wanted() -> String {
        "the path of a file or directory".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        match text_of(found, faults)? {
            "" => found.refuse_because("it is empty", faults),
            text => Some(text.into()),
        }
    }

    fn show(&self) -> Shown {
        shown_text(self.display())
    }
}

impl Setting for Duration {
    fn wanted() -> String {
        "a duration such as \"200ms\", \"1s\", \"1h30m\" or \"30d\"".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        match parse_duration(text_of(found, faults)?) {
            Ok(duration) => Some(duration),
            Err(why) => found.refuse_because(why, faults),
        }
    }

    fn show(&self) -> Shown {
        shown_text(show_duration(*self))
    }
}

impl Setting for ByteSize {
    fn wanted() -> String {
        "a size such as \"250KB\" or \"1MiB\", or a number of bytes".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        if let Content::Integer(number) = &found.node.content {
            return u64::try_from(*number).ok().map(Self).or_else(|| found.refuse(faults));
        }
        match found.node.word().and_then(|word| word.trim().parse().ok()) {
            Some(bytes) => Some(Self(bytes)),
            None => parsed(found, faults),
        }
    }

    fn show(&self) -> Shown {
        shown_text(self)
    }
}

impl Setting for SocketAddr {
    fn wanted() -> String {
        "an address with its port such as \"127.0.0.1:8070\" or \"[::1]:8070\"".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        parsed(found, faults)
    }

    fn show(&self) -> Shown {
        shown_text(self)
    }
}

impl Setting for IpNetwork {
    fn wanted() -> String {
        "a network such as \"10.0.0.0/8\" or \"::1/128\"".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        parsed(found, faults)
    }

    fn show(&self) -> Shown {
        shown_text(self)
    }
}

/// The kinds of links that pages carry; the others are not found in pages.
const LINK_KINDS: [LinkKind; 12] = [
    LinkKind::A,
    LinkKind::Area,
    LinkKind::Frame,
    LinkKind::Iframe,
    LinkKind::MetaRefresh,
    LinkKind::LinkRel,
    LinkKind::LinkResource,
    LinkKind::Image,
    LinkKind::Script,
    LinkKind::Media,
    LinkKind::Form,
    LinkKind::Cite,
];

impl Setting for LinkKind {
    fn wanted() -> String {
        either(&LINK_KINDS.map(Self::as_str))
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        word_of(found, &LINK_KINDS.map(|kind| (kind.as_str(), kind)), faults)
    }

    fn show(&self) -> Shown {
        shown_text(self.as_str())
    }
}

impl<T: Setting> Setting for Option<T> {
    fn wanted() -> String {
        format!("{}{{rules}}, or \"{{absent}}\"", T::wanted())
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        if found.node.text() == Some(found.absent) {
            return Some(None);
        }
        T::read(found, faults).map(Some)
    }

    fn show(&self) -> Shown {
        self.as_ref().map_or(Shown::Absent, T::show)
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn wanted() -> String {
        format!("{EACH}{}", T::wanted())
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        if let Content::List(items) = &found.node.content {
            let read = |(at, node)| T::read(&found.inside(Some(at), node, T::wanted()), faults);
            let read: Vec<Option<T>> = items.iter().enumerate().map(read).collect();
            return read.into_iter().collect();
        }
        let listed = found.node.word().and_then(|word| Node::list(word, &found.node.origin));
        match listed.filter(|list| !T::TABLE || list.is_toml) {
            Some(list) => Self::read(&found.inside(None, &list.node, found.wanted.clone()), faults),
            None => found.refuse_because("not a list", faults),
        }
    }

    fn show(&self) -> Shown {
        if T::TABLE {
            let tables = self.iter().filter_map(|item| match item.show() {
                Shown::Table(entries) => Some(entries),
                Shown::Absent | Shown::Value(_) | Shown::Tables(_) => None,
            });
            Shown::Tables(tables.collect())
        } else {
            let values = self.iter().filter_map(|item| match item.show() {
                Shown::Value(value) => Some(value),
                Shown::Absent | Shown::Table(_) | Shown::Tables(_) => None,
            });
            Shown::Value(toml::Value::Array(values.collect()))
        }
    }

    fn inner() -> Vec<Entry> {
        T::inner()
    }

    fn list() -> bool {
        T::TABLE
    }
}

impl Setting for [u8; 4] {
    fn wanted() -> String {
        "four whole numbers".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        let numbers = Vec::<u8>::read(found, faults)?;
        match numbers.try_into() {
            Ok(four) => Some(four),
            Err(_) => found.refuse_because("not four", faults),
        }
    }

    fn show(&self) -> Shown {
        self.to_vec().show()
    }
}

impl Setting for BTreeMap<String, String> {
    fn wanted() -> String {
        "a table of names and texts".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        let Content::Table(table) = &found.node.content else {
            return found.refuse_because("not a table", faults);
        };
        let read = |(name, node): (&String, _)| {
            let mut found = found.inside(None, node, String::wanted());
            found.path = format!("{}.{name}", found.path);
            String::read(&found, faults).map(|text| (name.clone(), text))
        };
        let read: Vec<_> = table.iter().map(read).collect();
        read.into_iter().collect()
    }

    fn show(&self) -> Shown {
        let entries = self.iter().map(|(name, text)| (name.clone(), text.clone().into()));
        Shown::Value(toml::Value::Table(entries.collect()))
    }
}
