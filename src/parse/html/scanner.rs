//! The loop over the markup: runs of text, tags, comments, raw text.

use std::borrow::Cow;

use memchr::memmem;

use super::attributes::{Attr, Attributes};
use super::entities::{self, Place};
use super::names::Name;
use super::near;
use super::nesting::Nesting;
use super::raw_text::{after_bracket, comment_end, raw_text_end, script_end};
use super::tags::Tag;
use super::text::{TextSink, fold};
use crate::parse::seen::Seen;
use crate::types::{LinkKind, Reason};

/// How often the time limit is asked about, in tags.
const TAGS_PER_CHECK: u32 = 1024;
/// Room is made for so many links at once.
const LINKS_USUAL: usize = 128;
/// Anchor text beyond this is left out: an unclosed `<a>` would take the whole page.
const ANCHOR_TEXT_BYTES_MAX: usize = 1024;
/// Titles and descriptions beyond this are cut.
pub(super) const FIELD_BYTES_MAX: usize = 4096;
/// A longer reference is left out, and of a longer field only so much is read (P2): each is copied
/// where it holds a character reference.
pub(super) const REFERENCE_BYTES_MAX: usize = 64 << 10;
/// SVG in MathML in SVG beyond this depth is read as HTML.
const FOREIGN_DEPTH_MAX: usize = 64;

/// The limits of a scan, and what it looks for.
pub struct ScanOptions<'o> {
    /// Distinct links kept.
    pub links_max: usize,
    /// Bytes of text kept.
    pub text_bytes_max: usize,
    /// Bytes of references that had to be copied because they hold character references.
    pub references_bytes_max: usize,
    /// Names of `<meta>` to keep besides those the scan reads itself, in lower case.
    pub meta_names: &'o [&'o str],
    /// Measure [`Scan::depth_max`], which costs time and is needed only before a tree is built.
    pub measures_depth: bool,
    /// The type says XML: `/>` ends an element, CDATA is text.
    pub is_xml: bool,
    /// Time is up (P2). Asked at coarse intervals.
    pub out_of_time: &'o dyn Fn() -> bool,
}

/// A link as the page has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawLink<'a> {
    /// The reference, character references decoded.
    pub url: Cow<'a, str>,
    /// Its anchor text or alternative: where it stands in [`Scan::text`], in bytes.
    pub text: (usize, usize),
    /// `rel` as written.
    pub rel: Cow<'a, str>,
    /// What carries it.
    pub kind: LinkKind,
    /// Its `rel` asks not to follow it (R4).
    pub nofollow: bool,
}

/// What a page holds.
#[derive(Clone, Debug, Default)]
pub struct Scan<'a> {
    /// Links in the order found, each reference once per kind.
    pub links: Vec<RawLink<'a>>,
    /// `href` of the first `<base>` that has one.
    pub base_href: Option<Cow<'a, str>>,
    /// The first `<title>`.
    pub title: Option<String>,
    /// `<html lang>`.
    pub language: Option<String>,
    /// `<meta http-equiv=content-language>`.
    pub content_language: Option<String>,
    /// `<meta name=description>`.
    pub description: Option<String>,
    /// The first `<link rel=canonical>`, as written.
    pub canonical: Option<Cow<'a, str>>,
    /// The first `<meta http-equiv=refresh>`: seconds and URL; an empty URL is the page itself.
    pub refresh: Option<(u64, String)>,
    /// The `<meta>` asked for: name in lower case, content.
    pub metas: Vec<(String, String)>,
    /// Visible text.
    pub text: String,
    /// What was cut, and by which limit.
    pub reasons: Vec<Reason>,
    /// How deep a tree of it would be, at most; 0 unless asked for.
    pub depth_max: usize,
    /// The most attributes on one element; those of `<html>` and `<body>` add up, as in a tree.
    pub attributes_max: usize,
}

/// What ends the name of an element.
static NAME_ENDS: [bool; 256] = near::set(b"\t\n\x0c\r />");

/// Inside which language the scanner is, innermost last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    Svg,
    Math,
    /// HTML inside one of them.
    Html(Tag),
}

/// In which of the two an element that holds HTML stands.
fn home(tag: Tag) -> Foreign {
    if tag == Tag::MathText { Foreign::Math } else { Foreign::Svg }
}

/// Reads a page. Time and memory are linear in its length.
pub fn scan<'a>(html: &'a str, options: &ScanOptions<'_>) -> Scan<'a> {
    let mut scanner = Scanner {
        html,
        options,
        scan: Scan::default(),
        sink: TextSink::new(options.text_bytes_max),
        attributes: Attributes::new(),
        seen: Seen::with_capacity(LINKS_USUAL),
        anchor: None,
        templates: Vec::new(),
        hidden: 0,
        foreign: Vec::new(),
        muted: false,
        in_post_form: false,
        copied_bytes: 0,
        nesting: Nesting::default(),
        root_attributes: 0,
        tags: 0,
        late: false,
    };
    scanner.run();
    scanner.finish()
}

pub(super) struct Scanner<'a, 'o> {
    html: &'a str,
    pub(super) options: &'o ScanOptions<'o>,
    pub(super) scan: Scan<'a>,
    pub(super) sink: TextSink,
    pub(super) attributes: Attributes<'a>,
    /// Raw references already kept, with their place in `scan.links`.
    pub(super) seen: Seen<(&'a str, usize)>,
    /// The open `<a>`: its link, and where its text began.
    pub(super) anchor: Option<(usize, usize)>,
    /// Open templates: whether each hides what it holds.
    templates: Vec<bool>,
    /// How many of them do; nothing inside is shown or followed.
    hidden: usize,
    foreign: Vec<Foreign>,
    /// Inside `<style>` or `<script>` of SVG, whose text is no raw text but is not shown either.
    muted: bool,
    pub(super) in_post_form: bool,
    /// Of references, so far.
    pub(super) copied_bytes: usize,
    nesting: Nesting,
    root_attributes: usize,
    tags: u32,
    late: bool,
}

impl<'a> Scanner<'a, '_> {
    fn run(&mut self) {
        let bytes = self.html.as_bytes();
        let mut at = 0;
        while at < bytes.len() && !self.late {
            let open = near::find(b'<', bytes, at).unwrap_or(bytes.len());
            if open > at {
                self.show(at, open);
            }
            at = if open < bytes.len() { self.markup(open) } else { open };
        }
    }

    /// What stands at a `<`; gives the byte after it.
    fn markup(&mut self, open: usize) -> usize {
        let bytes = self.html.as_bytes();
        match bytes.get(open + 1) {
            Some(b'!') => self.declaration(open),
            Some(b'?') => after_bracket(bytes, open + 1),
            Some(b'/') => match bytes.get(open + 2) {
                Some(first) if first.is_ascii_alphabetic() => self.end_tag(open + 2),
                Some(_) => after_bracket(bytes, open + 2),
                None => {
                    self.show(open, bytes.len());
                    bytes.len()
                }
            },
            Some(first) if first.is_ascii_alphabetic() => self.start_tag(open + 1),
            Some(_) | None => {
                self.show(open, open + 1);
                open + 1
            }
        }
    }

    /// Comments, doctypes, and what looks like them.
    fn declaration(&mut self, open: usize) -> usize {
        let bytes = self.html.as_bytes();
        let rest = bytes.get(open..).unwrap_or_default();
        if rest.starts_with(b"<!--") {
            return comment_end(bytes, open + 4);
        }
        let has_cdata = self.options.is_xml || self.is_foreign();
        if !has_cdata || !rest.starts_with(b"<![CDATA[") {
            return after_bracket(bytes, open + 2);
        }
        let start = open + 9;
        let end = memmem::find(bytes.get(start..).unwrap_or_default(), b"]]>");
        let end = end.map_or(bytes.len(), |found| start + found);
        self.show_verbatim(start, end);
        bytes.len().min(end + 3)
    }

    fn start_tag(&mut self, start: usize) -> usize {
        let bytes = self.html.as_bytes();
        let name_end = near::find_in(&NAME_ENDS, bytes, start);
        let name = bytes.get(start..name_end).unwrap_or_default();
        let tag = Tag::of(Name::between(bytes, start, name_end));
        let Some(end) = self.attributes.read(self.html, name_end, tag.has_attributes()) else {
            return bytes.len();
        };
        self.count(tag, name, end.self_closing && self.is_foreign());
        if tag.separates() {
            self.sink.separate();
        }
        if self.is_foreign() && self.breaks_out(tag) {
            self.leave_foreign();
        }
        let is_empty = self.options.is_xml && end.self_closing;
        let raw = !self.is_foreign() && !is_empty;
        self.enter(tag, end.self_closing);
        if self.hidden == 0 {
            self.element(tag);
        }
        if raw {
            return self.content(tag, name, end.next);
        }
        if tag == Tag::A && end.self_closing {
            self.close_anchor();
        }
        end.next
    }

    /// Jumps over the content of elements whose content is no markup.
    fn content(&mut self, tag: Tag, name: &[u8], start: usize) -> usize {
        let bytes = self.html.as_bytes();
        let end = if tag == Tag::Script {
            script_end(bytes, start)
        } else if tag == Tag::Plaintext {
            bytes.len()
        } else if tag.is_raw_text() {
            raw_text_end(bytes, start, name)
        } else {
            return start;
        };
        if matches!(tag, Tag::Plaintext | Tag::Xmp) {
            self.show_verbatim(start, end);
        } else if tag == Tag::Textarea {
            self.show_in(start, end, Place::Contained);
        } else if tag == Tag::Title && self.scan.title.is_none() && self.hidden == 0 {
            let title = entities::decode(head(self.slice(start, end)), Place::Contained);
            self.scan.title = Some(fold(&title, FIELD_BYTES_MAX).0);
        }
        end
    }

    fn end_tag(&mut self, start: usize) -> usize {
        let bytes = self.html.as_bytes();
        let name_end = near::find_in(&NAME_ENDS, bytes, start);
        let name = bytes.get(start..name_end).unwrap_or_default();
        let tag = Tag::of(Name::between(bytes, start, name_end));
        let Some(end) = self.attributes.read(self.html, name_end, false) else {
            return bytes.len();
        };
        self.tick();
        if self.options.measures_depth {
            self.nesting.end(name);
        }
        if tag.separates() {
            self.sink.separate();
        }
        // The two end tags that stand for elements of their own.
        if self.is_foreign()
            && (name.eq_ignore_ascii_case(b"p") || name.eq_ignore_ascii_case(b"br"))
        {
            self.leave_foreign();
        }
        self.close(tag);
        end.next
    }

    /// What an end tag ends.
    fn close(&mut self, tag: Tag) {
        if tag == Tag::A {
            self.close_anchor();
        } else if tag == Tag::Form {
            self.in_post_form = false;
        } else if tag == Tag::Template {
            let hid = self.templates.pop() == Some(true);
            self.hidden -= usize::from(hid);
        } else if tag.is_never_shown() {
            self.muted = false;
        } else if tag == Tag::Svg {
            self.leave(Foreign::Svg);
        } else if tag == Tag::Math {
            self.leave(Foreign::Math);
        } else if tag.may_hold_html() {
            self.leave(Foreign::Html(tag));
        }
    }

    /// P2: counts what a tree would hold, and asks for the time.
    fn count(&mut self, tag: Tag, name: &[u8], is_empty: bool) {
        self.tick();
        let mut attributes = self.attributes.count();
        if matches!(tag, Tag::Html | Tag::Body) {
            self.root_attributes += attributes;
            attributes = self.root_attributes;
        }
        self.scan.attributes_max = self.scan.attributes_max.max(attributes);
        if self.options.measures_depth && !tag.is_void() && !is_empty {
            self.nesting.start(name, tag.separates());
        }
    }

    fn tick(&mut self) {
        self.tags = self.tags.wrapping_add(1);
        if self.tags.is_multiple_of(TAGS_PER_CHECK) && (self.options.out_of_time)() {
            self.late = true;
        }
    }

    /// Keeps track of templates and foreign content.
    fn enter(&mut self, tag: Tag, self_closing: bool) {
        let is_foreign = self.is_foreign();
        let is_empty = self_closing && (is_foreign || self.options.is_xml);
        if tag == Tag::Template && !is_foreign && !is_empty {
            let hides = self.attributes.get(Attr::ShadowRootMode).is_none();
            self.templates.push(hides);
            self.hidden += usize::from(hides);
        } else if tag.is_never_shown() && is_foreign {
            self.muted = !is_empty;
        } else if self_closing {
            // `<svg/>` ends at once in HTML too.
        } else if tag == Tag::Svg {
            self.push_foreign(Foreign::Svg);
        } else if tag == Tag::Math {
            self.push_foreign(Foreign::Math);
        } else if tag.may_hold_html() && self.foreign.last() == Some(&home(tag)) {
            self.push_foreign(Foreign::Html(tag));
        }
    }

    /// Inside SVG or MathML, where raw text elements are ordinary ones and CDATA is text.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self.foreign.last(), Some(Foreign::Svg | Foreign::Math))
    }

    fn push_foreign(&mut self, inside: Foreign) {
        if self.foreign.len() < FOREIGN_DEPTH_MAX {
            self.foreign.push(inside);
        }
    }

    /// An end tag: closes the innermost of its kind and what is open inside it.
    fn leave(&mut self, what: Foreign) {
        if let Some(at) = self.foreign.iter().rposition(|open| *open == what) {
            self.foreign.truncate(at);
            self.muted = false;
        }
    }

    /// A start tag that is HTML's and nothing of SVG or MathML.
    fn breaks_out(&self, tag: Tag) -> bool {
        let looks = [Attr::Color, Attr::Face, Attr::Size];
        let is_html_font = || looks.iter().any(|attr| self.attributes.get(*attr).is_some());
        tag.breaks_out() || tag == Tag::Font && is_html_font()
    }

    /// HTML that cannot stand in SVG or MathML ends them, up to an element that holds HTML.
    fn leave_foreign(&mut self) {
        self.muted = false;
        while self.is_foreign() {
            self.foreign.pop();
        }
    }

    /// Shows text, character references decoded.
    fn show(&mut self, start: usize, end: usize) {
        let place = if self.is_foreign() { Place::Contained } else { Place::Text };
        self.show_in(start, end, place);
    }

    fn show_in(&mut self, start: usize, end: usize, place: Place) {
        if self.hidden == 0 && !self.muted && !self.sink.is_full() {
            self.sink.push(&entities::decode(self.slice(start, end), place));
        }
    }

    fn show_verbatim(&mut self, start: usize, end: usize) {
        if self.hidden == 0 && !self.muted && !self.sink.is_full() {
            let mut pieces = self.slice(start, end).split('\0');
            self.sink.push(pieces.next().unwrap_or_default());
            for piece in pieces {
                self.sink.push("\u{fffd}");
                self.sink.push(piece);
            }
        }
    }

    /// Why something is missing, once.
    pub(super) fn note(&mut self, reason: Reason) {
        if !self.scan.reasons.contains(&reason) {
            self.scan.reasons.push(reason);
        }
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.html.get(start..end).unwrap_or_default()
    }

    /// Ends the open `<a>`: what was shown since is its text, unless an earlier one had some.
    pub(super) fn close_anchor(&mut self) {
        let Some((link, start)) = self.anchor.take() else { return };
        let shown = self.sink.between(start, self.sink.position());
        let start = start + (shown.len() - shown.trim_start().len());
        let text = shown.trim_start();
        let length = (0..=text.len().min(ANCHOR_TEXT_BYTES_MAX))
            .rev()
            .find(|length| text.is_char_boundary(*length))
            .unwrap_or(0);
        if let Some(link) = self.scan.links.get_mut(link).filter(|link| link.text.0 == link.text.1)
        {
            link.text = (start, start + length);
        }
    }

    fn finish(mut self) -> Scan<'a> {
        self.close_anchor();
        self.scan.depth_max = self.nesting.max();
        if self.late {
            self.scan.reasons.push(Reason::ParseLimit { limit: "parse.max_time".to_owned() });
        }
        let (text, cut) = self.sink.finish();
        if cut {
            let limit = format!("{} bytes of text", self.options.text_bytes_max);
            self.scan.reasons.push(Reason::ParseLimit { limit });
        }
        self.scan.text = text;
        self.scan
    }
}

/// The beginning of a field, which is all that may be kept of it and more.
pub(super) fn head(raw: &str) -> &str {
    raw.get(..raw.floor_char_boundary(REFERENCE_BYTES_MAX)).unwrap_or(raw)
}
