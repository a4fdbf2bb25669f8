//! What each element means: its links and its metadata.

use std::borrow::Cow;

use super::attributes::Attr;
use super::entities::{Place, decode};
use super::refresh::parse_refresh;
use super::scanner::{FIELD_BYTES_MAX, REFERENCE_BYTES_MAX, RawLink, Scanner, head};
use super::srcset::candidates;
use super::tags::Tag;
use super::text::fold;
use crate::parse::memory::Memory;
use crate::types::{LinkKind, Reason};

/// `rel` beyond this is left out.
const REL_BYTES_MAX: usize = 256;
/// `<meta>` kept for later reading; more are noise.
const METAS_MAX: usize = 64;
/// The schemes whose URLs name no place to go to.
const NO_PLACE: [&str; 4] = ["javascript:", "data:", "about:", "blob:"];

impl<'a> Scanner<'a, '_> {
    /// P1: links of all kinds are recorded.
    pub(super) fn element(&mut self, tag: Tag) {
        match tag {
            Tag::A => self.anchor(),
            Tag::Area => {
                let text = self.alternative();
                self.link_with(LinkKind::Area, Attr::Href, text);
            }
            Tag::Base => self.base(),
            Tag::Body | Tag::Table => self.link(LinkKind::Image, Attr::Background),
            Tag::Quote | Tag::InlineQuote => self.link(LinkKind::Cite, Attr::Cite),
            Tag::Button => self.form_action(),
            Tag::Form => self.form(),
            Tag::Frame => self.frame(LinkKind::Frame),
            Tag::Html => self.html_element(),
            Tag::Iframe => self.frame(LinkKind::Iframe),
            Tag::Image | Tag::SvgImage => self.image(),
            Tag::Input => self.input(),
            Tag::Link => self.link_element(),
            Tag::Meta => self.meta(),
            Tag::Object => self.link(LinkKind::Media, Attr::Data),
            Tag::Script => {
                self.link(LinkKind::Script, Attr::Src);
                self.svg_link(LinkKind::Script);
            }
            Tag::Source => {
                self.link(LinkKind::Media, Attr::Src);
                self.srcset(Attr::Srcset);
            }
            Tag::SvgUse => self.svg_link(LinkKind::Image),
            Tag::Video => {
                self.link(LinkKind::Media, Attr::Src);
                self.link(LinkKind::Image, Attr::Poster);
            }
            Tag::Audio | Tag::BgSound | Tag::Embed | Tag::Track => {
                self.link(LinkKind::Media, Attr::Src);
            }
            Tag::Font
            | Tag::Math
            | Tag::MathText
            | Tag::Plaintext
            | Tag::RawText
            | Tag::Svg
            | Tag::SvgHtml
            | Tag::Template
            | Tag::Textarea
            | Tag::Title
            | Tag::Xmp
            | Tag::Block
            | Tag::VoidBlock
            | Tag::Inline
            | Tag::Void
            | Tag::Other => {}
        }
    }

    fn anchor(&mut self) {
        self.close_anchor();
        let href = self.attributes.get(Attr::Href);
        let Some(href) = href.or_else(|| self.attributes.get(Attr::XlinkHref)) else { return };
        let start = self.sink.position();
        let link = self.add(LinkKind::A, href, (start, start));
        self.anchor = link.map(|link| (link, start));
    }

    fn base(&mut self) {
        if let (None, Some(href)) = (&self.scan.base_href, self.attributes.get(Attr::Href)) {
            // One that is too long is no usable base, and hides those after it all the same.
            let is_short = href.len() <= REFERENCE_BYTES_MAX;
            let decoded = is_short.then(|| decode(href, Place::Attribute));
            self.scan.base_href = Some(decoded.unwrap_or(Cow::Borrowed(href)));
        }
    }

    fn html_element(&mut self) {
        if self.scan.language.is_none() {
            self.scan.language = self.field(Attr::Lang).or_else(|| self.field(Attr::XmlLang));
        }
    }

    /// Only forms that GET: what they lead to is a page, what POST does is an act.
    fn form(&mut self) {
        self.in_post_form = self.is_post(Attr::Method);
        if !self.in_post_form {
            self.link(LinkKind::Form, Attr::Action);
        }
    }

    fn form_action(&mut self) {
        let post = match self.attributes.get(Attr::FormMethod) {
            Some(_) => self.is_post(Attr::FormMethod),
            None => self.in_post_form,
        };
        if !post {
            self.link(LinkKind::Form, Attr::FormAction);
        }
    }

    fn is_post(&self, attr: Attr) -> bool {
        let method = self.attributes.get(attr).unwrap_or_default();
        ["post", "dialog"].iter().any(|other| method.eq_ignore_ascii_case(other))
    }

    fn frame(&mut self, kind: LinkKind) {
        self.link(kind, Attr::Src);
        self.link(LinkKind::Cite, Attr::LongDesc);
    }

    fn image(&mut self) {
        let text = self.alternative();
        self.link_with(LinkKind::Image, Attr::Src, text);
        self.srcset(Attr::Srcset);
        self.svg_link(LinkKind::Image);
        self.link(LinkKind::Cite, Attr::LongDesc);
    }

    fn input(&mut self) {
        let is_image = self.attributes.get(Attr::Type).unwrap_or_default();
        if is_image.eq_ignore_ascii_case("image") {
            let text = self.alternative();
            self.link_with(LinkKind::Image, Attr::Src, text);
        }
        self.form_action();
    }

    /// O4: the alternative of an image is part of the text; gives its place there.
    fn alternative(&mut self) -> (usize, usize) {
        let alt = decode(self.attributes.get(Attr::Alt).unwrap_or_default(), Place::Attribute);
        if alt.trim().is_empty() {
            let at = self.sink.position();
            return (at, at);
        }
        self.sink.separate();
        let start = self.sink.position();
        self.sink.push(&alt);
        self.sink.separate();
        let end = self.sink.position();
        let leading = usize::from(self.sink.between(start, end).starts_with(' '));
        (start + leading, end)
    }

    /// In SVG, `href` or `xlink:href`.
    fn svg_link(&mut self, kind: LinkKind) {
        if self.is_foreign() {
            let attr = [Attr::Href, Attr::XlinkHref]
                .into_iter()
                .find(|attr| self.attributes.get(*attr).is_some());
            if let Some(attr) = attr {
                self.link(kind, attr);
            }
        }
    }

    fn link_element(&mut self) {
        let rel = self.attributes.get(Attr::Rel).unwrap_or_default();
        let has = |name: &str| tokens(rel).any(|token| token.eq_ignore_ascii_case(name));
        if tokens(rel).next().is_none() {
            return;
        }
        // These name a host to get ready for or a place to send to, not a thing to fetch.
        if ["dns-prefetch", "preconnect", "pingback", "webmention"].iter().any(|name| has(name)) {
            return;
        }
        let canonical = has("canonical");
        let leads_on = canonical || has("next") || has("prev") || has("alternate");
        let kind =
            if leads_on && !has("stylesheet") { LinkKind::LinkRel } else { LinkKind::LinkResource };
        let href = self.attributes.get(Attr::Href).map(trim);
        let href = href.filter(|href| (1..=REFERENCE_BYTES_MAX).contains(&href.len()));
        if let (true, None, Some(href)) = (canonical, &self.scan.canonical, href) {
            self.scan.canonical = Some(decode(href, Place::Attribute));
        }
        self.link(kind, Attr::Href);
        self.srcset(Attr::ImageSrcset);
    }

    fn meta(&mut self) {
        let Some(content) = self.attributes.get(Attr::Content) else { return };
        match self.attributes.get(Attr::HttpEquiv) {
            Some(what) if what.eq_ignore_ascii_case("refresh") => self.refresh(content),
            Some(what) if what.eq_ignore_ascii_case("content-language") => {
                if self.scan.content_language.is_none() && !content.contains(',') {
                    self.scan.content_language = self.field(Attr::Content);
                }
            }
            Some(_) | None => {}
        }
        let Some(name) = self.attributes.get(Attr::Name) else { return };
        let name = decode(trim(name), Place::Attribute);
        if self.scan.description.is_none() && name.eq_ignore_ascii_case("description") {
            self.scan.description = self.field(Attr::Content);
        }
        let wanted = self.options.meta_names.iter().any(|want| name.eq_ignore_ascii_case(want));
        if wanted && self.scan.metas.len() < METAS_MAX {
            let content = self.field(Attr::Content).unwrap_or_default();
            self.scan.metas.push((name.to_ascii_lowercase(), content));
        }
    }

    fn refresh(&mut self, content: &'a str) {
        if content.len() > REFERENCE_BYTES_MAX {
            self.note(too_long());
            return;
        }
        let decoded = decode(content, Place::Attribute);
        let Some((seconds, url)) = parse_refresh(&decoded) else { return };
        if self.scan.refresh.is_none() {
            self.scan.refresh = Some((seconds, url.to_owned()));
        }
        if !url.is_empty() {
            let url = Cow::Owned(url.to_owned());
            let at = self.sink.position();
            self.push(RawLink {
                url,
                text: (at, at),
                rel: Cow::Borrowed(""),
                kind: LinkKind::MetaRefresh,
                nofollow: false,
            });
        }
    }

    /// An attribute's value, decoded, folded and bounded; `None` where it is empty.
    fn field(&self, attr: Attr) -> Option<String> {
        let value = decode(head(self.attributes.get(attr)?), Place::Attribute);
        Some(fold(&value, FIELD_BYTES_MAX).0).filter(|value| !value.is_empty())
    }

    fn link(&mut self, kind: LinkKind, attr: Attr) {
        let at = self.sink.position();
        self.link_with(kind, attr, (at, at));
    }

    fn link_with(&mut self, kind: LinkKind, attr: Attr, text: (usize, usize)) {
        if let Some(raw) = self.attributes.get(attr) {
            self.add(kind, raw, text);
        }
    }

    /// Adds a link, or finds it among those there are.
    fn add(&mut self, kind: LinkKind, raw: &'a str, text: (usize, usize)) -> Option<usize> {
        let raw = trim(raw);
        if raw.is_empty() && !may_be_self(kind) || names_no_place(raw) {
            return None;
        }
        let rel = trim(self.attributes.get(Attr::Rel).unwrap_or_default());
        let nofollow = tokens(rel).any(|token| token.eq_ignore_ascii_case("nofollow"));
        self.keep(kind, raw, text, (rel, nofollow))
    }

    /// Adds a link whose tag was read, or finds it among those there are.
    fn keep(
        &mut self,
        kind: LinkKind,
        raw: &'a str,
        text: (usize, usize),
        (rel, nofollow): (&'a str, bool),
    ) -> Option<usize> {
        if raw.len() > REFERENCE_BYTES_MAX {
            self.note(too_long());
            return None;
        }
        let hash = self.seen.hash(kind, raw);
        if let Some((_, found)) = self.seen.get(hash).filter(|(known, _)| *known == raw)
            && let Some(link) = self.scan.links.get_mut(found).filter(|link| link.kind == kind)
        {
            link.merge(nofollow, text);
            return Some(found);
        }
        let rel = if rel.len() > REL_BYTES_MAX { "" } else { rel };
        let url = match decode(raw, Place::Attribute) {
            // White space may be written as a character reference too.
            Cow::Owned(url) => Cow::Owned(trim(&url).to_owned()),
            borrowed @ Cow::Borrowed(_) => borrowed,
        };
        if url.is_empty() && !may_be_self(kind) {
            return None;
        }
        let link =
            self.push(RawLink { url, text, rel: decode(rel, Place::Attribute), kind, nofollow })?;
        self.seen.insert(hash, (raw, link));
        Some(link)
    }

    fn srcset(&mut self, attr: Attr) {
        let Some(raw) = self.attributes.get(attr) else { return };
        let at = self.sink.position();
        match decode(raw, Place::Attribute) {
            Cow::Borrowed(value) => {
                // Thousands of them may share a tag, so nothing of the tag is read again for each.
                for url in candidates(value).filter(|url| !names_no_place(url)) {
                    self.keep(LinkKind::Image, url, (at, at), ("", false));
                }
            }
            Cow::Owned(value) => {
                for url in candidates(&value).filter(|url| !names_no_place(url)) {
                    if url.len() > REFERENCE_BYTES_MAX {
                        self.note(too_long());
                        continue;
                    }
                    let added = self.push(RawLink {
                        url: Cow::Owned(url.to_owned()),
                        text: (at, at),
                        rel: Cow::Borrowed(""),
                        kind: LinkKind::Image,
                        nofollow: false,
                    });
                    if added.is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// P2: never more than `links_max`, and no more copies than there is room for; the cut is
    /// recorded once.
    fn push(&mut self, link: RawLink<'a>) -> Option<usize> {
        if self.scan.links.len() >= self.options.links_max {
            self.note(Reason::LinkCap);
            return None;
        }
        if let Cow::Owned(url) = &link.url {
            let room = self.options.references_bytes_max;
            if self.copied_bytes.saturating_add(url.capacity()) > room {
                self.note(Memory::reason(room, "references"));
                return None;
            }
            self.copied_bytes += url.capacity();
        }
        self.scan.links.push(link);
        Some(self.scan.links.len() - 1)
    }
}

impl RawLink<'_> {
    /// The same link again: followed if one of them may be, with the first text there is.
    fn merge(&mut self, nofollow: bool, text: (usize, usize)) {
        self.nofollow &= nofollow;
        if self.text.0 == self.text.1 {
            self.text = text;
        }
    }
}

/// An empty reference is the page itself, which some links lead to and no image is.
fn may_be_self(kind: LinkKind) -> bool {
    matches!(kind, LinkKind::A | LinkKind::Area)
}

fn too_long() -> Reason {
    Reason::ParseLimit { limit: format!("{REFERENCE_BYTES_MAX} bytes of a reference") }
}

fn names_no_place(url: &str) -> bool {
    NO_PLACE.iter().any(|scheme| {
        url.get(..scheme.len()).is_some_and(|found| found.eq_ignore_ascii_case(scheme))
    })
}

/// Without what a URL loses at its ends; NUL is no more one there, but U+FFFD.
fn trim(value: &str) -> &str {
    value.trim_matches(|c: char| c <= ' ' && c != '\0')
}

fn tokens(rel: &str) -> impl Iterator<Item = &str> {
    rel.split_ascii_whitespace()
}
