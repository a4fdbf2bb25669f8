//! JSON Feed, versions 1 and 1.1. Its items are taken one by one as they are read, so that a feed
//! of millions of empty ones costs no memory (P2).

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::bare;
use super::entries::{Entries, Entry, VALUE_BYTES_MAX};
use crate::parse::charset::to_text;
use crate::parse::handler::{Handler, Input, Limits, Parsed};
use crate::parse::memory::Memory;
use crate::types::{LinkKind, Reason};

/// `application/feed+json`.
pub struct JsonFeedHandler;

/// A string that is short enough to be a title, a date or a URL. What is no string is none.
#[derive(Debug, Default)]
enum Short {
    #[default]
    None,
    Text(String),
    TooLong,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    url: Short,
    #[serde(default)]
    external_url: Short,
    #[serde(default)]
    title: Short,
    #[serde(default)]
    date_modified: Short,
    #[serde(default)]
    date_published: Short,
}

/// The feed itself, without its items.
#[derive(Default)]
struct Feed {
    title: Short,
    next_url: Short,
}

impl Handler for JsonFeedHandler {
    fn accepts(&self, content_type: &str) -> bool {
        content_type == "application/feed+json"
    }

    fn parse(&self, input: &Input<'_>, limits: &Limits) -> Parsed {
        let memory = limits.memory;
        let read = to_text(input.body, None, false, memory.json());
        if read.is_cut || read.text.len() > memory.json() {
            let reasons = vec![Memory::reason(memory.json(), "JSON")];
            return Parsed { reasons, ..bare(input) };
        }
        let mut entries = Entries::new(input.url, memory);
        let mut feed = Feed::default();
        let mut json = serde_json::Deserializer::from_str(&read.text);
        let whole = FeedSeed { feed: &mut feed, entries: &mut entries }.deserialize(&mut json);
        let broken = whole.and_then(|()| json.end()).err().map(|error| {
            let limit = format!("broken JSON: {error}");
            Reason::ParseLimit { limit }
        });
        if let Some(url) = feed.next_url.text(&mut entries) {
            entries.add(LinkKind::LinkRel, &Entry { url: &url, ..Entry::default() });
        }
        let title = feed.title.text(&mut entries).filter(|title| !title.is_empty());
        let charset = Some(read.encoding.name());
        let mut parsed = Parsed { title, charset, ..entries.into_parsed(input) };
        parsed.reasons.extend(broken);
        parsed
    }
}

impl Item {
    fn add(self, entries: &mut Entries) {
        let mut text = |short: Short| short.text(entries);
        let url = text(self.url).or_else(|| text(self.external_url));
        let title = text(self.title).unwrap_or_default();
        let lastmod = text(self.date_modified).or_else(|| text(self.date_published));
        let (url, lastmod) = (url.unwrap_or_default(), lastmod.as_deref());
        entries.add(LinkKind::Feed, &Entry { url: &url, title: &title, lastmod });
    }
}

impl Short {
    /// The text; what was too long is counted among what was left out.
    fn text(self, entries: &mut Entries) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::TooLong => {
                entries.value_too_long();
                None
            }
            Self::None => None,
        }
    }
}

impl<'de> Deserialize<'de> for Short {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShortVisitor)
    }
}

struct ShortVisitor;

impl<'de> Visitor<'de> for ShortVisitor {
    type Value = Short;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Short, E> {
        let fits = text.len() <= VALUE_BYTES_MAX;
        Ok(if fits { Short::Text(text.to_owned()) } else { Short::TooLong })
    }

    fn visit_unit<E>(self) -> Result<Short, E> {
        Ok(Short::None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Short, E> {
        Ok(Short::None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Short, E> {
        Ok(Short::None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Short, E> {
        Ok(Short::None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Short, E> {
        Ok(Short::None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Short, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Short::None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Short, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Short::None)
    }
}

/// Reads the object that a feed is.
struct FeedSeed<'f> {
    feed: &'f mut Feed,
    entries: &'f mut Entries,
}

impl<'de> DeserializeSeed<'de> for FeedSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FeedSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a feed")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Short::Text(key)) = map.next_key()? {
            match key.as_str() {
                "title" => self.feed.title = map.next_value()?,
                "next_url" => self.feed.next_url = map.next_value()?,
                "items" => map.next_value_seed(ItemsSeed(self.entries))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads the list of items.
struct ItemsSeed<'e>(&'e mut Entries);

impl<'de> DeserializeSeed<'de> for ItemsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ItemsSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while !self.0.is_cut() {
            match items.next_element::<Item>()? {
                Some(item) => item.add(self.0),
                None => return Ok(()),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
