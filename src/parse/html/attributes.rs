//! The attributes of a tag: one pass, the first of a name wins, unknown names cost nothing.

use super::names::{Name, Names};
use super::near;

/// The attributes that mean something to a crawler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attr {
    Action,
    Alt,
    Background,
    Cite,
    Color,
    Content,
    Data,
    Face,
    FormAction,
    FormMethod,
    Href,
    HttpEquiv,
    ImageSrcset,
    Lang,
    LongDesc,
    Method,
    Name,
    Poster,
    Rel,
    ShadowRootMode,
    Size,
    Src,
    Srcset,
    Type,
    XlinkHref,
    XmlLang,
}

/// What ends the name of an attribute.
static NAME_ENDS: [bool; 256] = near::set(b"\t\n\x0c\r />=");
/// What ends a value without quotes.
static VALUE_ENDS: [bool; 256] = near::set(b"\t\n\x0c\r >");

const ATTR_COUNT: usize = Attr::XmlLang as usize + 1;

/// What each name is; all others mean nothing here.
#[rustfmt::skip]
static ATTRS: Names<Option<Attr>> = Names::new(&[
    ("action", Some(Attr::Action)),
    ("alt", Some(Attr::Alt)),
    ("background", Some(Attr::Background)),
    ("cite", Some(Attr::Cite)),
    ("color", Some(Attr::Color)),
    ("content", Some(Attr::Content)),
    ("data", Some(Attr::Data)),
    ("face", Some(Attr::Face)),
    ("formaction", Some(Attr::FormAction)),
    ("formmethod", Some(Attr::FormMethod)),
    ("href", Some(Attr::Href)),
    ("http-equiv", Some(Attr::HttpEquiv)),
    ("imagesrcset", Some(Attr::ImageSrcset)),
    ("lang", Some(Attr::Lang)),
    ("longdesc", Some(Attr::LongDesc)),
    ("method", Some(Attr::Method)),
    ("name", Some(Attr::Name)),
    ("poster", Some(Attr::Poster)),
    ("rel", Some(Attr::Rel)),
    ("shadowrootmode", Some(Attr::ShadowRootMode)),
    ("size", Some(Attr::Size)),
    ("src", Some(Attr::Src)),
    ("srcset", Some(Attr::Srcset)),
    ("type", Some(Attr::Type)),
    ("xlink:href", Some(Attr::XlinkHref)),
    ("xml:lang", Some(Attr::XmlLang)),
], None);

/// The values of one tag, as written; the same buffer serves all tags of a page.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    values: [Option<&'a str>; ATTR_COUNT],
    dirty: bool,
    count: usize,
}

/// Where a tag ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TagEnd {
    /// The byte after `>`.
    pub(super) next: usize,
    /// It ends with `/>`.
    pub(super) self_closing: bool,
}

impl<'a> Attributes<'a> {
    /// No attributes.
    pub(super) fn new() -> Self {
        Self { values: [None; ATTR_COUNT], dirty: false, count: 0 }
    }

    /// The raw value.
    pub(super) fn get(&self, attr: Attr) -> Option<&'a str> {
        self.values.get(attr as usize).copied().flatten()
    }

    /// How many the tag has, duplicates included.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Reads from behind the tag's name to its end; keeps values if `wanted`. `None` where the
    /// document ends first, which makes it no tag.
    pub(super) fn read(&mut self, html: &'a str, start: usize, wanted: bool) -> Option<TagEnd> {
        if self.dirty {
            self.values = [None; ATTR_COUNT];
            self.dirty = false;
        }
        self.count = 0;
        let bytes = html.as_bytes();
        let mut at = start;
        loop {
            at = skip(bytes, at, is_space);
            match *bytes.get(at)? {
                b'>' => return Some(TagEnd { next: at + 1, self_closing: false }),
                b'/' if bytes.get(at + 1) == Some(&b'>') => {
                    return Some(TagEnd { next: at + 2, self_closing: true });
                }
                b'/' => at += 1,
                _ => {
                    // A name may begin with `=`.
                    let name_end = near::find_in(&NAME_ENDS, bytes, at + 1);
                    let (value, next) = value(html, name_end)?;
                    self.count += 1;
                    if wanted {
                        self.keep(Name::between(bytes, at, name_end), value);
                    }
                    at = next;
                }
            }
        }
    }

    fn keep(&mut self, name: Name, value: &'a str) {
        let slot = ATTRS.get(name).and_then(|attr| self.values.get_mut(attr as usize));
        if let Some(slot @ None) = slot {
            *slot = Some(value);
            self.dirty = true;
        }
    }
}

/// The value after a name, and where to go on.
fn value(html: &str, name_end: usize) -> Option<(&str, usize)> {
    let bytes = html.as_bytes();
    let equals = skip(bytes, name_end, is_space);
    if bytes.get(equals) != Some(&b'=') {
        return Some(("", equals));
    }
    let start = skip(bytes, equals + 1, is_space);
    let (start, end, next) = match *bytes.get(start)? {
        quote @ (b'"' | b'\'') => {
            let end = near::find(quote, bytes, start + 1)?;
            (start + 1, end, end + 1)
        }
        b'>' => (start, start, start),
        _ => {
            let end = near::find_in(&VALUE_ENDS, bytes, start);
            (start, end, end)
        }
    };
    Some((html.get(start..end).unwrap_or_default(), next))
}

fn skip(bytes: &[u8], start: usize, passes: impl Fn(u8) -> bool) -> usize {
    let mut at = start;
    while bytes.get(at).is_some_and(|b| passes(*b)) {
        at += 1;
    }
    at
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tag: &str) -> (Attributes<'_>, Option<TagEnd>) {
        let mut attributes = Attributes::new();
        let end = attributes.read(tag, 0, true);
        (attributes, end)
    }

    #[test]
    fn values_are_read_in_every_form() {
        for (tag, href) in [
            (" href=\"a b\">", Some("a b")),
            (" href='a\"b'>", Some("a\"b")),
            (" href=a/b/>", Some("a/b/")),
            (" HREF = a >", Some("a")),
            (" href>", Some("")),
            (" href=>", Some("")),
            (" href=\"1\"href=2>", Some("1")),
            ("/href=1>", Some("1")),
            (" x=\"1\"href=2>", Some("2")),
            (" =href=1>", None),
            (" x href\n=\n1>", Some("1")),
            (" h\0ref=1>", None),
        ] {
            let (attributes, end) = read(tag);
            assert_eq!(attributes.get(Attr::Href), href, "{tag}");
            assert_eq!(end.map(|end| end.next), Some(tag.len()), "{tag}");
        }
    }

    #[test]
    fn tags_that_never_end_are_none() {
        for tag in [" href=\"a>", " href", " href=", " href=a", ""] {
            assert_eq!(read(tag).1, None, "{tag}");
        }
    }

    #[test]
    fn self_closing_is_seen_outside_values_only() {
        assert_eq!(read(" />").1.map(|end| end.self_closing), Some(true));
        assert_eq!(read(" href=a/>").1.map(|end| end.self_closing), Some(false));
        assert_eq!(read(" / >").1.map(|end| end.self_closing), Some(false));
    }
}
