//! One entry of a sitemap or a feed, while it is read.

use quick_xml::XmlVersion;
use quick_xml::events::BytesStart;

use super::entries::{Entries, Entry, VALUE_BYTES_MAX};
use crate::types::LinkKind;

/// No form of a date is longer.
const DATE_BYTES_MAX: usize = 64;
/// What a place costs beside its text, with its date.
const PLACE_BYTES: usize = 64 + DATE_BYTES_MAX;

/// What the root element says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `<urlset>` or `<sitemapindex>`.
    Sitemap,
    /// RSS of any version.
    Rss,
    /// Atom.
    Atom,
}

impl Kind {
    /// By the local name of the root.
    pub(super) fn of_root(name: &str) -> Option<Self> {
        Some(match name {
            "urlset" | "sitemapindex" => Self::Sitemap,
            "rss" | "RDF" => Self::Rss,
            "feed" => Self::Atom,
            _ => return None,
        })
    }

    /// An element of this local name is an entry.
    pub(super) fn begins_entry(self, name: &str) -> bool {
        match self {
            Self::Sitemap => matches!(name, "url" | "sitemap"),
            Self::Rss => name == "item",
            Self::Atom => name == "entry",
        }
    }

    fn link_kind(self) -> LinkKind {
        match self {
            Self::Sitemap => LinkKind::Sitemap,
            Self::Rss | Self::Atom => LinkKind::Feed,
        }
    }
}

/// What is read of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Its URL.
    Location,
    /// Its title.
    Title,
    /// The name of a feed's entry, which may be its URL.
    Guid,
    /// When it changed.
    Date,
}

impl Field {
    /// By the local name of the element. Extensions count where they say when (`dc:date`), and
    /// nowhere else.
    pub(super) fn of(kind: Kind, name: &str, is_own: bool) -> Option<Self> {
        Some(match (kind, name) {
            (Kind::Sitemap, "loc") | (Kind::Rss, "link") if is_own => Self::Location,
            (Kind::Rss | Kind::Atom, "title") if is_own => Self::Title,
            (Kind::Rss, "guid") => Self::Guid,
            (Kind::Sitemap, "lastmod") if is_own => Self::Date,
            (Kind::Rss, "pubDate" | "date") | (Kind::Atom, "updated" | "modified") => Self::Date,
            _ => return None,
        })
    }
}

/// What an entry holds so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Locations with their dates. An entry has one; broken ones have more.
    locations: Vec<(String, Option<String>)>,
    /// A date that came before any location.
    early_date: Option<String>,
    /// The same page in other languages.
    alternates: Vec<String>,
    /// Of both, and how much of it there may be.
    bytes: usize,
    bytes_max: usize,
    /// Those that did not fit.
    left_out: u64,
    /// Those that were too long by themselves.
    too_long: u64,
    title: String,
    guid: String,
    /// Text outside all fields.
    pub(super) own_text: String,
}

impl Draft {
    /// Nothing yet, and never more than so many bytes of places.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// There is room for a place of this length (P2).
    fn takes(&mut self, length: usize) -> bool {
        let bytes = self.bytes + length + PLACE_BYTES;
        let fits = bytes <= self.bytes_max;
        if fits {
            self.bytes = bytes;
        } else {
            self.left_out += 1;
        }
        fits
    }

    /// A field opens: some say everything in their attributes.
    pub(super) fn attributes(
        &mut self,
        kind: Kind,
        name: &str,
        is_own: bool,
        tag: &BytesStart<'_>,
    ) {
        if name != "link" {
            return;
        }
        let mut too_long = 0;
        let mut attribute = |name: &str| {
            // The first of a name counts, so the check for later ones is left out.
            let mut attributes = tag.html_attributes();
            let mut attributes = attributes.with_checks(false).flatten();
            let found = attributes.find(|one| one.key.into_inner() == name)?;
            if found.value.len() > VALUE_BYTES_MAX {
                too_long += 1;
                return None;
            }
            let value = found.normalized_value(XmlVersion::Implicit1_0);
            Some(value.map_or_else(|_| found.value.to_string(), String::from))
        };
        let href = attribute("href");
        let is_alternate = attribute("rel").is_none_or(|rel| rel == "alternate");
        self.too_long += too_long;
        let Some(href) = href else { return };
        match kind {
            Kind::Atom if is_own && is_alternate && self.locations.is_empty() => {
                self.locations.push((href, None));
            }
            // `<xhtml:link rel=alternate hreflang=… href=…>`.
            Kind::Sitemap if is_alternate && self.takes(href.len()) => self.alternates.push(href),
            Kind::Atom | Kind::Sitemap | Kind::Rss => {}
        }
    }

    /// A field is complete.
    pub(super) fn field(&mut self, field: Field, value: &str) {
        if value.is_empty() {
            return;
        }
        match field {
            Field::Location if self.takes(value.len()) => {
                self.locations.push((value.to_owned(), None));
            }
            Field::Location => {}
            Field::Title => value.clone_into(&mut self.title),
            Field::Guid => value.clone_into(&mut self.guid),
            Field::Date => self.date(value),
        }
    }

    /// The date of the location before it, else of the one after it.
    fn date(&mut self, value: &str) {
        if value.len() > DATE_BYTES_MAX {
            return;
        }
        match self.locations.last_mut() {
            Some((_, date @ None)) => *date = Some(value.to_owned()),
            Some(_) => {}
            None => self.early_date = Some(value.to_owned()),
        }
    }

    /// The entry is complete.
    pub(super) fn finish(mut self, kind: Kind, entries: &mut Entries) {
        entries.entry_too_long(self.left_out);
        (0..self.too_long).for_each(|_| entries.value_too_long());
        if self.locations.is_empty() {
            let instead = match kind {
                Kind::Sitemap => self.own_text,
                Kind::Rss => self.guid,
                Kind::Atom => return,
            };
            self.locations.push((instead, None));
        }
        let mut early = self.early_date;
        for (url, date) in &self.locations {
            let date = date.clone().or_else(|| early.take());
            let entry = Entry { url, title: &self.title, lastmod: date.as_deref() };
            entries.add(kind.link_kind(), &entry);
        }
        for url in &self.alternates {
            entries.add(LinkKind::LinkRel, &Entry { url, ..Entry::default() });
        }
    }
}
