//! The scanner against html5ever, through `scraper`, on generated pages.
//!
//! Known differences, kept out of the generator:
//! - `<noscript>`: `scraper` parses with scripting, for the scanner it is markup.
//! - `<template>`: `scraper` shows its content, in a browser it is inert.
//! - Tables: html5ever moves what stands between the cells before the table; the scanner reads
//!   pages in the order they stand.
//! - What a tree builder drops: a form in a form, frames outside a frameset, `<body>` in `<body>`.
//! - SVG and MathML that nobody closes: the scanner takes every HTML block as their end, browsers
//!   some of them; raw text elements are ordinary ones inside.
//! - A misnested `<a>` is cloned in the tree; both sides keep each target once, so it shows not.

use proptest::prelude::*;
use scraper::{ElementRef, Html, Node};

use super::entities::{Place, decode};
use super::*;
use crate::types::LinkKind;

/// What html5ever finds: links in document order, each once; text without white space; title.
fn by_tree(html: &str) -> (Vec<(LinkKind, String)>, String, Option<String>) {
    let document = Html::parse_document(html);
    let mut links: Vec<(LinkKind, String)> = Vec::new();
    let mut add = |kind, url: &str| {
        let url = url.trim_matches(|c: char| c <= ' ').to_owned();
        let is_self = url.is_empty() && !matches!(kind, LinkKind::A | LinkKind::Area);
        if !is_self && !links.contains(&(kind, url.clone())) {
            links.push((kind, url));
        }
    };
    let mut text = String::new();
    let mut title = None;
    for node in document.tree.root().descendants() {
        let parent = node.parent().and_then(ElementRef::wrap);
        let parent_name = parent.map(|parent| parent.value().name().to_owned());
        if let Node::Text(piece) = node.value() {
            match parent_name.as_deref() {
                Some("script" | "style" | "iframe" | "noembed" | "noframes") => {}
                Some("title") if !is_svg(parent) => {}
                _ => text.push_str(piece),
            }
        }
        let Some(element) = ElementRef::wrap(node) else { continue };
        let attr = |name| element.value().attr(name);
        match element.value().name() {
            "title" if !is_svg(Some(element)) => {
                title.get_or_insert_with(|| fold(&element.text().collect::<String>(), 4096).0);
            }
            "a" => attr("href").into_iter().for_each(|url| add(LinkKind::A, url)),
            "area" => {
                text.push_str(attr("alt").unwrap_or_default());
                attr("href").into_iter().for_each(|url| add(LinkKind::Area, url));
            }
            "audio" | "embed" | "track" => {
                attr("src").into_iter().for_each(|url| add(LinkKind::Media, url));
            }
            "iframe" => attr("src").into_iter().for_each(|url| add(LinkKind::Iframe, url)),
            "script" => attr("src").into_iter().for_each(|url| add(LinkKind::Script, url)),
            "video" => attr("src").into_iter().for_each(|url| add(LinkKind::Media, url)),
            "q" | "blockquote" => attr("cite").into_iter().for_each(|url| add(LinkKind::Cite, url)),
            "img" => {
                text.push_str(attr("alt").unwrap_or_default());
                attr("src").into_iter().for_each(|url| add(LinkKind::Image, url));
                attr("srcset").into_iter().flat_map(candidates).for_each(|url| {
                    add(LinkKind::Image, url);
                });
            }
            _ => {}
        }
    }
    text.retain(|c| !c.is_whitespace() && c > ' ');
    (links, text, title.filter(|title| !title.is_empty()))
}

fn is_svg(element: Option<ElementRef<'_>>) -> bool {
    element.is_some_and(|element| element.value().name.ns.ends_with("svg"))
}

fn by_scan(html: &str) -> (Vec<(LinkKind, String)>, String, Option<String>) {
    let options = ScanOptions {
        links_max: 10_000,
        text_bytes_max: 1 << 20,
        references_bytes_max: usize::MAX,
        meta_names: &[],
        measures_depth: false,
        is_xml: false,
        out_of_time: &|| false,
    };
    let mut scan = scan(html, &options);
    let mut links: Vec<(LinkKind, String)> = Vec::new();
    for link in &scan.links {
        let link = (link.kind, link.url.to_string());
        if !links.contains(&link) {
            links.push(link);
        }
    }
    scan.text.retain(|c| !c.is_whitespace());
    (links, scan.text, scan.title.filter(|title| !title.is_empty()))
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z/?#.]{0,6}",
        "[ a-z&;=<\\n]{0,12}",
        "(&amp;|&copy|&notin;|&#x41;|&lt|&bogus;|é|x|=|;| ){0,5}",
        "(\0|\r\n|\r|/|a|&#0;|&#13;|<b|>|\u{fffe}){0,5}",
        "/[a-z]{1,3}( [12]x)?(, ?/[a-z]{1,3} 2x)?",
    ]
}

fn attribute() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "href", "HREF", "src", "srcset", "alt", "cite", "class", "data-x", "/", "href",
    ]);
    (name, value(), 0..5_u8).prop_map(|(name, value, form)| match form {
        0 => format!("{name}=\"{value}\""),
        1 => format!("{name} = '{value}'"),
        2 => {
            let bare: String = value.chars().filter(|c| c.is_alphanumeric() || *c == '&').collect();
            format!("{name}={bare} ")
        }
        3 => name.to_owned(),
        _ => format!("{name}=\"{value}\"/"),
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,10}",
        "(\0|\r\n|\r|a|&#0;|<|</|<!|<\\?|\u{fffe}|&#x110000;){0,4}",
        "(&amp;|&copy|&notit;|&#65;|&#x80;|& | < |<3|é|\\u{a0}){0,4}",
    ]
}

/// What stands by itself: comments, raw text, foreign content, end tags of nothing.
const RAW: &[&str] = &[
    "<!-- <a href=/no> -->",
    "<!-->",
    "<!--->",
    "<!-- a --!>",
    "<!-- - -- <!-->",
    "<!doctype html>",
    "<!x <a>",
    "<?php echo '<a>' ?>",
    "</>",
    "</ x>",
    "<![CDATA[ <a href=/no> ]]>",
    "<script><!-- <script> </script> <a href=/no> --></script>",
    "<script><!--> <script> </script>",
    "<style><a href=/no></b></style>",
    "<svg><a href=/svg>t</a><style>s</style><![CDATA[<c>]]><p>out",
    "<svg><title><b>t</b></title><desc><img src=/d></desc></svg>",
    "<math><mi><a href=/mi>m</a></mi><![CDATA[x]]></math>",
    "<svg><foreignObject><a href=/fo>f</a><style>s</style></foreignObject><a href=/in></svg>",
    "<svg><desc><math><mtext><img src=/deep><svg><![CDATA[<y>]]></svg></mtext></math></desc></svg>",
    "<math><mo><svg><desc><script>'<a href=/no>'</script></desc></svg></mo>x</math>",
    "<svg><script>s</script><style/>shown</svg>",
    "<svg><b>out<a href=/out>",
    "<math><mi><svg/><a href=/mi2>m</a></mi></math>",
    "<svg><font>in</font><font color=x>out</font>",
    "<svg></p>out<![CDATA[no]]>",
    "<svg></br>out<![CDATA[no]]>",
    "<math><mglyph></mglyph><mi><mglyph><a href=/g>g</a></mi></math>",
    "<script><!-- <script a> </script b> --> </script >",
    "<script>\0<!--<script\n></script></script>",
    "<style>\0</style\n>",
    "<textarea>\n<!-- </textarea>",
    "<!--\0--!><!----!><!----->",
    "</p>",
    "</br>",
    "</b></i>",
    "</div>",
    "</a>",
];

fn piece() -> impl Strategy<Value = String> {
    let tag = prop::sample::select(vec![
        "a",
        "A",
        "b",
        "i",
        "p",
        "div",
        "span",
        "img",
        "q",
        "video",
        "iframe",
        "script",
        "style",
        "textarea",
        "xmp",
        "h1",
        "ul",
        "li",
        "em",
        "x-y",
        "title",
        "area",
        "audio",
        "embed",
        "track",
        "section",
        "blockquote",
        "label",
        "object",
        "noembed",
        "noframes",
        "nobr",
        "font",
        "button",
    ]);
    let raw = prop::sample::select(RAW);
    let element = (tag, prop::collection::vec(attribute(), 0..4), text(), any::<bool>()).prop_map(
        |(tag, attributes, text, closed)| {
            let open = format!("<{tag} {}>{text}", attributes.join(" "));
            let raw_text = matches!(
                tag,
                "iframe"
                    | "script"
                    | "style"
                    | "textarea"
                    | "xmp"
                    | "title"
                    | "noembed"
                    | "noframes"
            );
            if closed || raw_text { format!("{open}</{tag}>") } else { open }
        },
    );
    prop_oneof![4 => element, 2 => text(), 1 => raw.prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn links_text_and_title_are_html5evers(pieces in prop::collection::vec(piece(), 0..12)) {
        let html = format!("<!doctype html><body>{}", pieces.concat());
        prop_assert_eq!(by_scan(&html), by_tree(&html), "{}", html);
    }

    #[test]
    fn any_text_at_all_is_read_to_its_end(
        html in "(<|>|/|!|-|a|href=|\"|'|&|;|#|é|\\[|\\]|script| ){0,60}",
    ) {
        let (links, ..) = by_scan(&html);
        prop_assert!(links.len() <= html.len());
    }

    #[test]
    fn decoding_references_is_html5evers(
        raw in "(&|a|m|p|;|lt|not|in|=|#|x|4|é|copy|1){0,12}",
    ) {
        let quoted = format!("<body><img alt=\"{raw}\">{raw}");
        let document = Html::parse_document(&quoted);
        let image = document.select(&scraper::Selector::parse("img").unwrap()).next().unwrap();
        prop_assert_eq!(decode(&raw, Place::Attribute), image.value().attr("alt").unwrap());
        let shown: String = document.root_element().text().collect();
        prop_assert_eq!(decode(&raw, Place::Text).into_owned(), shown);
    }
}
