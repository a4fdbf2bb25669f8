//! The elements that mean something to a crawler.

use super::names::{Name, Names};

/// An element, by its name. What is not listed is an inline element without links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    A,
    Area,
    Audio,
    Base,
    BgSound,
    Body,
    /// `blockquote`: a block with `cite`.
    Quote,
    /// `ins`, `del`, `q`: inline with `cite`.
    InlineQuote,
    Button,
    Embed,
    /// Ends foreign content where it says how the font looks.
    Font,
    Form,
    Frame,
    Html,
    Iframe,
    Image,
    /// `image`: in SVG an element, else another name of `img`.
    SvgImage,
    Input,
    Link,
    Math,
    /// `mi`, `mo`, `mn`, `ms`, `mtext`: HTML goes on inside.
    MathText,
    Meta,
    Object,
    Plaintext,
    /// `style`, `noembed`, `noframes`: raw text that is not shown.
    RawText,
    Script,
    Source,
    Svg,
    /// `foreignObject`, `desc`: HTML goes on inside.
    SvgHtml,
    /// `use`, `feImage`: a reference to an image.
    SvgUse,
    /// `table`, `tr`, `td`, `th` and their groups: blocks with `background`.
    Table,
    Template,
    Textarea,
    Title,
    Track,
    Video,
    /// `xmp`: raw text that is shown.
    Xmp,
    /// Separates words, carries nothing.
    Block,
    /// A block without an end tag: `br`, `hr`.
    VoidBlock,
    /// Inline formatting, which ends foreign content as blocks do.
    Inline,
    /// Without an end tag, carries nothing: `wbr`, `col`, `param`.
    Void,
    Other,
}

/// What each name is; all others are [`Tag::Other`].
#[rustfmt::skip]
static TAGS: Names<Tag> = Names::new(&[
    ("a", Tag::A),
    ("area", Tag::Area),
    ("audio", Tag::Audio),
    ("base", Tag::Base),
    ("bgsound", Tag::BgSound),
    ("blockquote", Tag::Quote),
    ("body", Tag::Body),
    ("button", Tag::Button),
    ("embed", Tag::Embed),
    ("font", Tag::Font),
    ("form", Tag::Form),
    ("frame", Tag::Frame),
    ("html", Tag::Html),
    ("iframe", Tag::Iframe),
    ("img", Tag::Image),
    ("image", Tag::SvgImage),
    ("input", Tag::Input),
    ("ins", Tag::InlineQuote), ("del", Tag::InlineQuote), ("q", Tag::InlineQuote),
    ("link", Tag::Link),
    ("math", Tag::Math),
    ("meta", Tag::Meta),
    ("mi", Tag::MathText), ("mo", Tag::MathText), ("mn", Tag::MathText), ("ms", Tag::MathText),
    ("mtext", Tag::MathText),
    ("object", Tag::Object),
    ("plaintext", Tag::Plaintext),
    ("script", Tag::Script),
    ("source", Tag::Source),
    ("style", Tag::RawText), ("noembed", Tag::RawText), ("noframes", Tag::RawText),
    ("svg", Tag::Svg),
    ("foreignobject", Tag::SvgHtml), ("desc", Tag::SvgHtml),
    ("use", Tag::SvgUse), ("feimage", Tag::SvgUse),
    ("table", Tag::Table), ("tr", Tag::Table), ("td", Tag::Table), ("th", Tag::Table),
    ("tbody", Tag::Table), ("thead", Tag::Table), ("tfoot", Tag::Table),
    ("template", Tag::Template),
    ("textarea", Tag::Textarea),
    ("title", Tag::Title),
    ("track", Tag::Track),
    ("video", Tag::Video),
    ("xmp", Tag::Xmp),
    ("br", Tag::VoidBlock), ("hr", Tag::VoidBlock),
    ("wbr", Tag::Void), ("col", Tag::Void), ("param", Tag::Void), ("basefont", Tag::Void),
    ("keygen", Tag::Void),
    ("p", Tag::Block), ("div", Tag::Block), ("li", Tag::Block), ("ul", Tag::Block),
    ("ol", Tag::Block), ("dl", Tag::Block), ("dt", Tag::Block), ("dd", Tag::Block),
    ("h1", Tag::Block), ("h2", Tag::Block), ("h3", Tag::Block), ("h4", Tag::Block),
    ("h5", Tag::Block), ("h6", Tag::Block), ("section", Tag::Block), ("article", Tag::Block),
    ("aside", Tag::Block), ("nav", Tag::Block), ("header", Tag::Block), ("footer", Tag::Block),
    ("main", Tag::Block), ("figure", Tag::Block), ("figcaption", Tag::Block),
    ("address", Tag::Block), ("pre", Tag::Block), ("center", Tag::Block), ("dir", Tag::Block),
    ("menu", Tag::Block), ("listing", Tag::Block), ("fieldset", Tag::Block),
    ("legend", Tag::Block), ("details", Tag::Block), ("summary", Tag::Block),
    ("dialog", Tag::Block), ("hgroup", Tag::Block), ("search", Tag::Block),
    ("caption", Tag::Block), ("colgroup", Tag::Block), ("head", Tag::Block),
    ("frameset", Tag::Block), ("select", Tag::Block), ("option", Tag::Block),
    ("optgroup", Tag::Block), ("canvas", Tag::Block), ("noscript", Tag::Block),
    ("marquee", Tag::Block),
    ("b", Tag::Inline), ("big", Tag::Inline), ("code", Tag::Inline), ("em", Tag::Inline),
    ("i", Tag::Inline), ("nobr", Tag::Inline), ("ruby", Tag::Inline), ("s", Tag::Inline),
    ("small", Tag::Inline), ("span", Tag::Inline), ("strong", Tag::Inline),
    ("strike", Tag::Inline), ("sub", Tag::Inline), ("sup", Tag::Inline), ("tt", Tag::Inline),
    ("u", Tag::Inline), ("var", Tag::Inline),
], Tag::Other);

impl Tag {
    /// The element of a name.
    pub(super) fn of(name: Name) -> Self {
        TAGS.get(name)
    }

    /// Its start and its end separate words.
    pub(super) fn separates(self) -> bool {
        match self {
            Self::Quote
            | Self::Body
            | Self::Form
            | Self::Frame
            | Self::Html
            | Self::Iframe
            | Self::Table
            | Self::Block
            | Self::VoidBlock
            | Self::Button
            | Self::Input
            | Self::Textarea
            | Self::Object
            | Self::Video
            | Self::Audio
            | Self::Title
            | Self::Plaintext
            | Self::Xmp => true,
            Self::A
            | Self::Area
            | Self::Base
            | Self::BgSound
            | Self::InlineQuote
            | Self::Embed
            | Self::Font
            | Self::Image
            | Self::SvgImage
            | Self::Link
            | Self::Math
            | Self::MathText
            | Self::Meta
            | Self::RawText
            | Self::Script
            | Self::Source
            | Self::Svg
            | Self::SvgHtml
            | Self::SvgUse
            | Self::Template
            | Self::Track
            | Self::Inline
            | Self::Void
            | Self::Other => false,
        }
    }

    /// Its attributes are read.
    pub(super) fn has_attributes(self) -> bool {
        !matches!(
            self,
            Self::Block
                | Self::VoidBlock
                | Self::Inline
                | Self::Void
                | Self::Other
                | Self::Title
                | Self::RawText
                | Self::Xmp
                | Self::Math
                | Self::MathText
                | Self::Svg
                | Self::SvgHtml
                | Self::Textarea
                | Self::Plaintext
        )
    }

    /// Its content is no text of the page, in SVG and MathML too.
    pub(super) fn is_never_shown(self) -> bool {
        matches!(self, Self::RawText | Self::Script | Self::Iframe)
    }

    /// Its content is text up to its end tag.
    pub(super) fn is_raw_text(self) -> bool {
        matches!(self, Self::RawText | Self::Xmp | Self::Iframe | Self::Title | Self::Textarea)
    }

    /// In SVG or MathML, HTML goes on inside it.
    pub(super) fn may_hold_html(self) -> bool {
        matches!(self, Self::SvgHtml | Self::MathText | Self::Title)
    }

    /// It has no end tag.
    pub(super) fn is_void(self) -> bool {
        matches!(
            self,
            Self::Area
                | Self::Base
                | Self::BgSound
                | Self::Embed
                | Self::Frame
                | Self::Image
                | Self::Input
                | Self::Link
                | Self::Meta
                | Self::Source
                | Self::Track
                | Self::VoidBlock
                | Self::Void
        )
    }

    /// Its start tag ends SVG or MathML.
    pub(super) fn breaks_out(self) -> bool {
        matches!(
            self,
            Self::Block
                | Self::VoidBlock
                | Self::Inline
                | Self::Quote
                | Self::Body
                | Self::Embed
                | Self::Image
                | Self::Meta
                | Self::Table
        )
    }
}
