//! The walk through the XML of a sitemap or a feed.
//!
//! Names count, namespaces do not: too many files have them wrong. What tells `<image:loc>` from
//! `<loc>` is that the page's own have no prefix, or that of the root. Elements that are never
//! closed end with their parents; a closing tag without an opening one is passed over.

use memchr::memmem;
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::entries::{Entries, Found, VALUE_BYTES_MAX};
use super::entry::{Draft, Field, Kind};
use crate::types::Reason;

/// A sitemap nests three deep, feeds with their extensions a little more.
const DEPTH_MAX: usize = 64;
/// Elements that are never closed: the reader below keeps the name of each.
const OPEN_MAX: usize = 1 << 18;
/// Names are told apart by so much of them.
const NAME_BYTES_MAX: usize = 64;
/// How often the time limit is asked about, in events.
const EVENTS_PER_CHECK: u32 = 1024;
/// Bytes in which the root has to begin: licences and style sheets stand before it.
const PROLOGUE_BYTES_MAX: usize = 4 << 10;

/// Reads as far as the XML goes.
pub(super) fn read(text: &str, entries: &mut Entries, out_of_time: &dyn Fn() -> bool) -> Found {
    let mut reader = lenient(text);
    let mut walk = match first_element(&mut reader) {
        Some((prefix, kind)) => Walk::new(entries, kind, prefix),
        None => return Found::SomethingElse,
    };
    let cut = walk.through(&mut reader, out_of_time);
    walk.end_entry();
    let title = Some(walk.title).filter(|title| !title.is_empty());
    Found::Entries { title, cut: cut.map(|limit| Reason::ParseLimit { limit }) }
}

fn lenient(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text.trim_start());
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

/// The root's prefix and kind, past declarations and comments; `None` where it is neither a
/// sitemap's nor a feed's.
fn first_element(reader: &mut Reader<&[u8]>) -> Option<(String, Kind)> {
    loop {
        match reader.read_event().ok()? {
            Event::Start(root) => {
                let (prefix, name) = split(root.name().into_inner());
                return Some((prefix.to_owned(), Kind::of_root(name)?));
            }
            Event::Eof => return None,
            Event::Text(text) if !text.trim().is_empty() => return None,
            Event::Text(_)
            | Event::End(_)
            | Event::Empty(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_)
            | Event::GeneralRef(_) => {}
        }
    }
}

/// The first element is the root of a sitemap or a feed, whatever the type of the body says: feeds
/// are sent as HTML and as plain text too, as the MIME sniffing standard knows.
pub(in crate::parse) fn is_sitemap_or_feed(body: &[u8]) -> bool {
    let head = body.get(..PROLOGUE_BYTES_MAX).unwrap_or(body);
    let mut rest = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    while let Some(tag) = rest.strip_prefix(b"<") {
        let end: &[u8] = match tag {
            [b'!', b'-', b'-', ..] => b"-->",
            [b'?', ..] => b"?>",
            [b'!', ..] => b">",
            _ => {
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b":_-.".contains(byte);
                let length = tag.iter().position(|byte| !is_name(byte)).unwrap_or(0);
                let name = tag.get(..length).and_then(|name| std::str::from_utf8(name).ok());
                return name.is_some_and(|name| Kind::of_root(split(name).1).is_some());
            }
        };
        let Some(at) = memmem::find(tag, end) else { return false };
        rest = tag.get(at + end.len()..).unwrap_or_default().trim_ascii_start();
    }
    false
}

/// An open element below the root.
struct Open {
    name: String,
    /// It has no prefix, or that of the root.
    is_own: bool,
}

struct Walk<'w> {
    entries: &'w mut Entries,
    kind: Kind,
    root_prefix: String,
    stack: Vec<Open>,
    /// The entry that is open, and its place in the stack.
    entry: Option<(usize, Draft)>,
    /// The text of the field that is open: a child of the entry, or of the feed itself.
    value: String,
    /// There was more of it than is kept.
    is_long: bool,
    title: String,
}

impl<'w> Walk<'w> {
    fn new(entries: &'w mut Entries, kind: Kind, root_prefix: String) -> Self {
        let (stack, value, title) = (Vec::new(), String::new(), String::new());
        Self { entries, kind, root_prefix, stack, entry: None, value, is_long: false, title }
    }

    /// Why it ended before the text did.
    fn through(
        &mut self,
        reader: &mut Reader<&[u8]>,
        out_of_time: &dyn Fn() -> bool,
    ) -> Option<String> {
        let (mut count, mut open) = (0_u32, 0_usize);
        loop {
            count = count.wrapping_add(1);
            if count.is_multiple_of(EVENTS_PER_CHECK) && out_of_time() {
                return Some("parse.max_time".to_owned());
            }
            match reader.read_event() {
                Ok(Event::Eof) => return None,
                Ok(event) => {
                    open += usize::from(matches!(event, Event::Start(_)));
                    open = open.saturating_sub(usize::from(matches!(event, Event::End(_))));
                    self.take(&event);
                }
                Err(error) => return Some(format!("broken XML: {error}")),
            }
            if self.stack.len() > DEPTH_MAX {
                return Some(format!("{DEPTH_MAX} nested elements"));
            }
            if open > OPEN_MAX {
                return Some(format!("{OPEN_MAX} elements without an end"));
            }
            if self.entries.is_cut() {
                return None;
            }
        }
    }

    fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(split(tag.name().into_inner()).1),
            Event::Text(text) => self.text(text),
            Event::CData(text) => self.text(text),
            Event::GeneralRef(reference) => self.text(&resolved(reference)),
            Event::Empty(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_)
            | Event::Eof => {}
        }
    }

    fn open(&mut self, tag: &BytesStart<'_>) {
        let name = tag.name();
        let (prefix, name) = split(name.into_inner());
        let is_own = prefix.is_empty() || prefix == self.root_prefix;
        let opened = Open { name: short(name).to_owned(), is_own };
        if is_own && self.kind.begins_entry(name) && !self.is_in_blank_field() {
            self.end_entry();
            let draft = Draft::new(self.entries.entry_bytes_max());
            self.entry = Some((self.stack.len(), draft));
        } else if let Some((place, draft)) = &mut self.entry {
            if self.stack.len() == *place + 1 {
                self.value.clear();
                self.is_long = false;
                draft.attributes(self.kind, name, is_own, tag);
            }
        } else {
            self.begin_value();
        }
        self.stack.push(opened);
    }

    /// `<url>` inside a `<loc>` that holds nothing yet is a slip of its author and no new entry.
    fn is_in_blank_field(&self) -> bool {
        let place = self.entry.as_ref().map(|(place, _)| *place);
        place.is_some_and(|place| self.stack.len() > place + 1) && self.value.trim().is_empty()
    }

    /// Closes the innermost element of this name, and all that are still open inside it.
    fn close(&mut self, name: &str) {
        let name = short(name);
        let Some(place) = self.stack.iter().rposition(|open| open.name == name) else { return };
        while self.stack.len() > place {
            let Some(open) = self.stack.pop() else { return };
            let at = self.stack.len();
            match &mut self.entry {
                Some((place, draft)) if at == *place + 1 => {
                    match Field::of(self.kind, &open.name, open.is_own) {
                        Some(_) if self.is_long => self.entries.value_too_long(),
                        Some(field) => draft.field(field, self.value.trim()),
                        None => {}
                    }
                    self.begin_value();
                }
                Some((place, _)) if at == *place => self.end_entry(),
                Some(_) => {}
                None if open.name == "title" && open.is_own && self.title.is_empty() => {
                    if self.is_long {
                        self.entries.value_too_long();
                    } else {
                        self.title = self.value.trim().to_owned();
                    }
                    self.begin_value();
                }
                None => {}
            }
        }
    }

    fn text(&mut self, text: &str) {
        let into = match &mut self.entry {
            Some((place, draft)) if self.stack.len() == *place + 1 => &mut draft.own_text,
            Some(_) | None => &mut self.value,
        };
        if into.len() + text.len() <= VALUE_BYTES_MAX {
            into.push_str(text);
        } else {
            self.is_long = true;
        }
    }

    fn begin_value(&mut self) {
        self.value.clear();
        self.is_long = false;
    }

    /// What the entry names is known; of a field that is still open nobody knows how it goes on.
    fn end_entry(&mut self) {
        if let Some((place, draft)) = self.entry.take() {
            self.stack.truncate(place);
            draft.finish(self.kind, self.entries);
        }
        self.begin_value();
    }
}

/// Character references and the five entities of XML; whatever else a file declares is left out,
/// so nothing outside it is ever read.
fn resolved(reference: &BytesRef<'_>) -> String {
    match reference.resolve_char_ref() {
        Ok(Some(character)) => character.to_string(),
        Ok(None) => resolve_xml_entity(reference).unwrap_or_default().to_owned(),
        Err(_) => String::new(),
    }
}

/// What is kept of an element's name.
fn short(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or(name)
}

/// Prefix and local name.
fn split(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or(("", name))
}
