//! The elements that mean something to a crawler.

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

impl Tag {
    /// The element of a name in any case.
    pub(super) fn of(name: &[u8]) -> Self {
        let mut lower = [0_u8; 13];
        let Some(lower) = lower.get_mut(..name.len()) else { return Self::Other };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        Self::of_lower(lower)
    }

    fn of_lower(name: &[u8]) -> Self {
        match name {
            b"a" => Self::A,
            b"area" => Self::Area,
            b"audio" => Self::Audio,
            b"base" => Self::Base,
            b"bgsound" => Self::BgSound,
            b"blockquote" => Self::Quote,
            b"body" => Self::Body,
            b"button" => Self::Button,
            b"embed" => Self::Embed,
            b"form" => Self::Form,
            b"frame" => Self::Frame,
            b"html" => Self::Html,
            b"iframe" => Self::Iframe,
            b"img" => Self::Image,
            b"image" => Self::SvgImage,
            b"input" => Self::Input,
            b"ins" | b"del" | b"q" => Self::InlineQuote,
            b"link" => Self::Link,
            b"math" => Self::Math,
            b"meta" => Self::Meta,
            b"mi" | b"mo" | b"mn" | b"ms" | b"mtext" => Self::MathText,
            b"object" => Self::Object,
            b"plaintext" => Self::Plaintext,
            b"script" => Self::Script,
            b"source" => Self::Source,
            b"style" | b"noembed" | b"noframes" => Self::RawText,
            b"svg" => Self::Svg,
            b"foreignobject" | b"desc" => Self::SvgHtml,
            b"use" | b"feimage" => Self::SvgUse,
            b"table" | b"tr" | b"td" | b"th" | b"tbody" | b"thead" | b"tfoot" => Self::Table,
            b"template" => Self::Template,
            b"textarea" => Self::Textarea,
            b"title" => Self::Title,
            b"track" => Self::Track,
            b"video" => Self::Video,
            b"xmp" => Self::Xmp,
            b"br" | b"hr" => Self::VoidBlock,
            b"wbr" | b"col" | b"param" | b"basefont" | b"keygen" => Self::Void,
            _ => Self::without_links(name),
        }
    }

    fn without_links(name: &[u8]) -> Self {
        match name {
            b"p" | b"div" | b"li" | b"ul" | b"ol" | b"dl" | b"dt" | b"dd" | b"h1" | b"h2"
            | b"h3" | b"h4" | b"h5" | b"h6" | b"section" | b"article" | b"aside" | b"nav"
            | b"header" | b"footer" | b"main" | b"figure" | b"figcaption" | b"address" | b"pre"
            | b"center" | b"dir" | b"menu" | b"listing" | b"fieldset" | b"legend" | b"details"
            | b"summary" | b"dialog" | b"hgroup" | b"search" | b"caption" | b"colgroup"
            | b"head" | b"frameset" | b"select" | b"option" | b"optgroup" | b"canvas"
            | b"noscript" | b"marquee" => Self::Block,
            b"b" | b"big" | b"code" | b"em" | b"i" | b"nobr" | b"ruby" | b"s" | b"small"
            | b"span" | b"strong" | b"strike" | b"sub" | b"sup" | b"tt" | b"u" | b"var" => {
                Self::Inline
            }
            _ => Self::Other,
        }
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
