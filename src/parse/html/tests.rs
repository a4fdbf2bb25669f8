//! What a page says, in small pages.

use super::*;
use crate::types::{LinkKind, Reason};

fn read(html: &str) -> Scan<'_> {
    read_with(html, 1000, 10_000, &|| false)
}

fn read_with<'a>(
    html: &'a str,
    links_max: usize,
    text_bytes_max: usize,
    out_of_time: &dyn Fn() -> bool,
) -> Scan<'a> {
    let meta_names = &["robots", "mehman"];
    scan(
        html,
        &ScanOptions {
            links_max,
            text_bytes_max,
            references_bytes_max: usize::MAX,
            meta_names,
            measures_depth: true,
            is_xml: false,
            out_of_time,
        },
    )
}

/// One line a link: kind, URL, text, rel, `!` where it is not to be followed.
fn links(html: &str) -> Vec<String> {
    let scan = read(html);
    let line = |link: &RawLink<'_>| {
        let text = scan.text.get(link.text.0..link.text.1).unwrap();
        let nofollow = if link.nofollow { "!" } else { "" };
        format!("{} {}|{text}|{}{nofollow}", link.kind.as_str(), link.url, link.rel)
    };
    scan.links.iter().map(line).collect()
}

#[test]
fn every_kind_of_link_is_found() {
    for (html, expected) in [
        ("<a href=x rel='a NoFollow'>te <b>x</b>t</a>", "a x|te xt|a NoFollow!"),
        ("<A HREF='?a=1&amp;b=2'>", "a ?a=1&b=2||"),
        ("<a href=x>one<a href=x>two", "a x|one|"),
        ("<a href=x></a><a href=x>late</a>", "a x|late|"),
        ("<a href=x rel=nofollow></a><a href=x></a>", "a x||nofollow"),
        ("<area href=x alt='the area'>", "area x|the area|"),
        ("<frame src=x>", "frame x||"),
        ("<iframe src=x><a href=y></iframe>", "iframe x||"),
        ("<meta http-equiv=Refresh content='0;url=x'>", "meta-refresh x||"),
        ("<link rel='shortcut icon' href=x>", "link-resource x||shortcut icon"),
        ("<link rel='Next' href=x>", "link-rel x||Next"),
        ("<link rel='alternate stylesheet' href=x>", "link-resource x||alternate stylesheet"),
        ("<img src=' x ' alt='a  b'>", "image x|a b|"),
        ("<img srcset='x 1x, data:,y 2x'>", "image x||"),
        ("<input type=image src=x>", "image x||"),
        ("<body background=x>", "image x||"),
        ("<svg><image xlink:href=x></svg>", "image x||"),
        ("<svg><a xlink:href=x>t</a></svg>", "a x|t|"),
        ("<script src=x><a href=y></script>", "script x||"),
        ("<video src=x>", "media x||"),
        ("<object data=x>", "media x||"),
        ("<form action=x><button formaction=x>", "form x||"),
        ("<q cite=x>", "cite x||"),
        ("<noscript><a href=x>t</a></noscript>", "a x|t|"),
        ("<template shadowrootmode=open><a href=x>t</a></template>", "a x|t|"),
    ] {
        assert_eq!(links(html), [expected], "{html}");
    }
}

#[test]
fn what_is_no_link_is_not_found() {
    for html in [
        "<a>x</a><a name=y>",
        "<a href='javascript:void(0)'><a href=' JavaScript:x'><img src='data:,x'>",
        "<!-- <a href=x> --><!-- --!> <!--><!-->",
        "<![CDATA[<a href=x]]>",
        "<textarea><a href=x></textarea><title><a href=x></title><xmp><a href=x></xmp>",
        "<style><a href=x></style><noframes><a href=x></noframes>",
        "<script>'<a href=x>'<!-- <script> </script> <a href=x> --></script>",
        "<template><a href=x><template></template><a href=x></template>",
        "<form method=POST action=x><input type=submit formaction=x></form>",
        "<link href=x><link rel=preconnect href=x><img src=''><script src=' '></script>",
        "<a href='x",
        "<plaintext><a href=x></plaintext><a href=x>",
    ] {
        assert_eq!(links(html), Vec::<String>::new(), "{html}");
    }
}

#[test]
fn text_is_what_a_reader_sees() {
    for (html, text) in [
        ("<p>one</p><p>two<br>three <b>bo</b>ld", "one two three bold"),
        ("<title>no</title><style>no</style><script>no</script>yes", "yes"),
        ("a<!-- no -->b &lt;i&gt; &amp;amp; &nbsp; c", "ab <i> &amp; c"),
        ("x<img src=y alt='an image'>z<img alt=''>!", "x an image z!"),
        ("1 < 2 <3> </ 4>5", "1 < 2 <3> 5"),
        ("<textarea> a &amp; b</textarea><xmp>&amp;<b></xmp>", "a & b &amp;<b>"),
        ("<svg><style>no<![CDATA[no]]></style><![CDATA[<x>]]></svg>", "<x>"),
        ("<svg><style>no<p>out", "out"),
        ("<svg><text><![CDATA[<x>]]></text></svg>", "<x>"),
        ("<template>no</template><td>a<td>b", "a b"),
        ("a</p>b", "a b"),
        ("<plaintext>&amp;<b>", "&amp;<b>"),
        ("a<", "a<"),
        ("a</", "a</"),
        ("a<b", "a"),
    ] {
        assert_eq!(read(html).text, text, "{html}");
    }
}

#[test]
fn metadata_is_the_first_of_its_kind() {
    let scan = read(
        "<html lang=de><html lang=fr><svg><title>no</title></svg><title> A &amp;\n B </title>\
        <title>no</title><base target=x><base href='/b/'><base href='/c/'>\
        <meta name=Description content=' d&eacute; '><meta name=description content=no>\
        <meta NAME=robots content='noindex'><meta name=MEHMAN content=nofollow>\
        <meta http-equiv=Content-Language content=en><link rel=CANONICAL href='/c?a&amp;b'>\
        <link rel=canonical href=no><meta http-equiv=refresh content='5; url=/r'>",
    );
    assert_eq!(scan.title.as_deref(), Some("A & B"));
    assert_eq!(scan.language.as_deref(), Some("de"));
    assert_eq!(scan.content_language.as_deref(), Some("en"));
    assert_eq!(scan.base_href.as_deref(), Some("/b/"));
    assert_eq!(scan.description.as_deref(), Some("dé"));
    assert_eq!(scan.canonical.as_deref(), Some("/c?a&b"));
    assert_eq!(scan.refresh, Some((5, "/r".to_owned())));
    let metas: Vec<_> = scan.metas.iter().map(|(n, c)| (n.as_str(), c.as_str())).collect();
    assert_eq!(metas, [("robots", "noindex"), ("mehman", "nofollow")]);
}

#[test]
fn xml_elements_end_where_they_say() {
    let options = |is_xml| ScanOptions {
        links_max: 10,
        text_bytes_max: 100,
        references_bytes_max: usize::MAX,
        meta_names: &[],
        measures_depth: false,
        is_xml,
        out_of_time: &|| false,
    };
    let page = "<html xml:lang='hi'><script src='s'/><a href='x'/>text<![CDATA[ <b>]]></html>";
    let scanned = scan(page, &options(true));
    assert_eq!((scanned.links.len(), scanned.text.as_str()), (2, "text <b>"));
    assert_eq!(scanned.language.as_deref(), Some("hi"));
    assert_eq!(scan(page, &options(false)).links.len(), 1);
}

#[test]
fn limits_cut_and_say_so() {
    let many: String = (0..100).map(|n| format!("<a href=/{n}>text {n}</a>")).collect();
    let scan = read_with(&many, 10, 20, &|| false);
    assert_eq!((scan.links.len(), scan.text.len()), (10, 19));
    let text_limit = Reason::ParseLimit { limit: "20 bytes of text".to_owned() };
    assert_eq!(scan.reasons, [Reason::LinkCap, text_limit]);
    let long = many.repeat(100);
    let late = read_with(&long, 1000, 1 << 20, &|| true);
    assert_eq!(late.reasons, [Reason::ParseLimit { limit: "parse.max_time".to_owned() }]);
    assert!(late.text.len() < 10_000);
    let open = format!("<a href=x>{}", "word ".repeat(10_000));
    let scan = read_with(&open, 10, 1 << 20, &|| false);
    assert!(scan.links.iter().all(|link| link.text.1 - link.text.0 <= 1024));
}

/// P2: each of these makes a tree builder or a careless scanner quadratic. They are large enough
/// that quadratic time would not end within the test's patience.
#[test]
fn hostile_pages_end() {
    let n = 200_000;
    let attributes: String = (0..1_000_000).map(|k| format!(" a{k}={k}")).collect();
    for html in [
        "<div>".repeat(n),
        "<b><i><a href=x>".repeat(n),
        "<svg>".repeat(n) + &"</math>".repeat(n),
        "<template>".repeat(n) + &"</template>".repeat(n),
        "<table><tr><td>".repeat(n),
        "<".repeat(n * 10),
        "<!--".repeat(n) + &"--".repeat(n),
        "<!".repeat(n),
        "</".repeat(n),
        "<a href=\"".repeat(n),
        "<script><!--<script>".repeat(n),
        "<title></titl".repeat(n),
        "<![CDATA[".repeat(n),
        format!("<svg>{}", "<![CDATA[".repeat(n)),
        format!("<a {attributes}>"),
        format!("<a {attributes}"),
        "&".repeat(n * 10),
        "&#".repeat(n) + &"9".repeat(n),
        "&CounterClockwiseContourIntegra".repeat(n / 4),
        format!("<a href='{}'>", "&notit;".repeat(n)),
        format!("<img srcset='{}'>", "a ( b, ".repeat(n)),
        format!("<img srcset='{}'>", ",".repeat(n * 10)),
        format!("<img srcset='{}'>", "a 1x, ".repeat(n)),
        format!("<meta http-equiv=refresh content='{}'>", "9".repeat(n)),
        format!("<base href='{}'>", "x".repeat(n)) + &"<a href=y>".repeat(n),
        "\u{a0}".repeat(n * 4),
        "<meta name=robots content=x>".repeat(n),
        "<a href=x rel='".to_owned() + &"nofollow ".repeat(n) + "'>",
    ] {
        let scan = read(&html);
        assert!(scan.links.len() <= 1000 && scan.text.len() <= 10_000);
    }
}

#[test]
fn what_a_tree_would_hold_is_never_underestimated() {
    let depth = |html: &str| read(&html.repeat(600)).depth_max;
    for flat in [
        "<p><img><br></p>",
        "<p>one",
        "<p>one<div></div>",
        "<ul><li>a<li>b</ul>",
        "<table><tr><td>1<td>2<tr><td>3</table>",
        "<DIV><Span></sPAN></div>",
        "<svg><path /><g/></svg>",
        "<select><option>1<option>2</select>",
    ] {
        assert!(depth(flat) < 8, "{flat} {}", depth(flat));
    }
    for deep in ["<div>", "<div></span>", "<b><div></b>", "<p><b></p>", "<p><b x=1><p>"] {
        assert!(depth(deep) >= 600, "{deep} {}", depth(deep));
    }
    assert_eq!(read("<a a b=c d>").attributes_max, 3);
    assert_eq!(read(&"<body a><html b>".repeat(600)).attributes_max, 1200);
}

#[test]
fn kinds_are_not_mixed_up_when_targets_repeat() {
    let kinds: Vec<_> =
        read("<a href=x><img src=x><a href=x>").links.iter().map(|link| link.kind).collect();
    assert_eq!(kinds, [LinkKind::A, LinkKind::Image]);
}
