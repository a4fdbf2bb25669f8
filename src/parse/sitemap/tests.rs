//! What the corpora do not show: bounds, broken nesting, alternates, JSON, damaged gzip.

use std::fmt::Write as _;
use std::io::Write as _;

use bytes::Bytes;

use crate::parse::handler::{Input, Limits, Parsed, is_wanted, parse};
use crate::types::{CrawlUrl, LinkKind, Reason};

fn read(url: &str, content_type: &str, body: &[u8]) -> Parsed {
    let input = Input {
        url: &CrawlUrl::parse(url).unwrap(),
        headers: &vec![("content-type".to_owned(), Bytes::from(content_type.to_owned()))],
        body: &Bytes::copy_from_slice(body),
        product: "mehman",
        extractors: &[],
        out_of_time: &|| false,
    };
    parse(&input, &Limits::default())
}

fn xml(body: &str) -> Parsed {
    read("https://a.test/dir/map", "application/xml", body.as_bytes())
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn found(parsed: &Parsed, kind: LinkKind) -> Vec<&str> {
    parsed.links.iter().filter(|link| link.kind == kind).map(|link| link.url).collect()
}

fn sitemap(count: usize) -> String {
    let mut urls = String::from("<urlset>");
    for number in 0..count {
        write!(urls, "<url><loc>/p/{number}</loc></url>").unwrap();
    }
    urls + "</urlset>"
}

#[test]
fn alternates_in_other_languages_are_links_and_images_are_none() {
    let parsed = xml("<urlset xmlns:x='w3' xmlns:image='i'><url><loc>/en</loc>\
         <x:link rel=\"alternate\" hreflang=\"de\" href=\"https://a.test/de?a=1&amp;b=2\"/>\
         <x:link rel=\"stylesheet\" href=\"/style\"/>\
         <image:image><image:loc>/i.png</image:loc></image:image></url></urlset>");
    assert_eq!(found(&parsed, LinkKind::Sitemap), ["https://a.test/en"]);
    assert_eq!(found(&parsed, LinkKind::LinkRel), ["https://a.test/de?a=1&b=2"]);
    assert_eq!(parsed.links.len(), 2);
}

#[test]
fn what_is_never_closed_ends_with_what_is_around_it() {
    let parsed =
        xml("<urlset><url><loc>/1</loc><url><loc>/2</loc></url></wrong></url><url><loc>/3");
    let expected = ["https://a.test/1", "https://a.test/2"];
    assert_eq!(found(&parsed, LinkKind::Sitemap), expected, "nobody knows how /3 goes on");
    let slip = xml("<urlset><url><loc><url><![CDATA[/a]]></url></loc></url></urlset>");
    assert_eq!(found(&slip, LinkKind::Sitemap), ["https://a.test/a"]);
    let alone = xml("<urlset><url><loc>/a?b=1&c=2</loc></url></urlset>");
    assert_eq!(found(&alone, LinkKind::Sitemap), ["https://a.test/a?b=1&c=2"]);
}

#[test]
fn fifty_thousand_are_taken_and_one_more_is_said() {
    let whole = xml(&sitemap(50_000));
    assert_eq!((whole.links.len(), whole.reasons.len()), (50_000, 0));
    let long = xml(&sitemap(50_001));
    assert_eq!(long.links.len(), 50_000);
    assert!(matches!(&long.reasons[..], [Reason::ParseLimit { limit }] if limit.contains("50000")));
}

#[test]
fn a_long_url_of_the_file_is_not_multiplied_by_its_entries() {
    let own = format!("https://a.test/{}/map.xml", "d".repeat(4000));
    let body = sitemap(49_000).replace("<loc>/p/", "<loc>p");
    let parsed = read(&own, "text/xml", body.as_bytes());
    let bytes: usize = parsed.links.iter().map(|link| link.url.len()).sum();
    assert!((49 << 20..=50 << 20).contains(&bytes), "{bytes}");
    assert!(matches!(&parsed.reasons[..], [Reason::ParseLimit { .. }]), "{:?}", parsed.reasons);
    let own = format!("https://a.test/{}/map.xml", "d".repeat(9000));
    assert_eq!(read(&own, "text/xml", body.as_bytes()).links.len(), 0);
}

#[test]
fn nesting_without_end_ends() {
    let parsed = xml(&format!("<urlset>{}", "<a>".repeat(200_000)));
    assert!(matches!(&parsed.reasons[..], [Reason::ParseLimit { limit }] if limit.contains("64")));
    let time = Input {
        url: &CrawlUrl::parse("https://a.test/x").unwrap(),
        headers: &vec![("content-type".to_owned(), Bytes::from_static(b"text/xml"))],
        body: &Bytes::from(sitemap(20_000)),
        product: "mehman",
        extractors: &[],
        out_of_time: &|| true,
    };
    let parsed = parse(&time, &Limits::default());
    assert!(parsed.links.len() < 1000 && parsed.reasons.len() == 1, "{:?}", parsed.reasons);
}

#[test]
fn entities_are_never_read_from_anywhere() {
    let parsed = xml("<!DOCTYPE f [<!ENTITY a 'b'><!ENTITY x SYSTEM 'file:///etc/passwd'>]>\
         <urlset><url><loc>/&#x41;&amp;&a;&x;z</loc></url></urlset>");
    assert_eq!(found(&parsed, LinkKind::Sitemap), ["https://a.test/A&z"]);
}

#[test]
fn a_feed_names_its_entries_with_title_and_date() {
    let atom =
        xml("<feed xmlns='a'><title>All</title><link href='https://a.test/self' rel='self'/>\
         <entry><title>One</title><link rel='edit' href='/e'/><link href='/1'/>\
         <updated>2020-01-02T03:04:05Z</updated></entry></feed>");
    assert_eq!(atom.title.as_deref(), Some("All"));
    assert_eq!(found(&atom, LinkKind::Feed), ["https://a.test/1"]);
    let entry = atom.links.iter().next().unwrap();
    assert_eq!(entry.text, "One");
    assert_eq!(entry.lastmod.map(|at| at.to_string()), Some("2020-01-02T03:04:05.000Z".to_owned()));

    let json = r#"{"version":"https://jsonfeed.org/version/1.1","title":"J","next_url":"/next",
        "items":[{"id":"1","url":"/1","date_modified":"2020-01-02"},
                 {"id":"2","external_url":"/2"}]}"#;
    let json = read("https://a.test/feed", "application/feed+json", json.as_bytes());
    assert_eq!(found(&json, LinkKind::Feed), ["https://a.test/1", "https://a.test/2"]);
    assert_eq!(found(&json, LinkKind::LinkRel), ["https://a.test/next"]);
    let broken = read("https://a.test/feed", "application/feed+json", b"{");
    assert_eq!((broken.links.len(), broken.reasons.len()), (0, 1));
}

#[test]
fn feeds_and_sitemaps_under_another_type_are_found_out_and_other_xml_is_none() {
    let rss = b"<!-- hello --><?x y?>\n<rss><item><link>/1</link></item></rss>";
    for content_type in ["text/html", "text/plain", "application/octet-stream"] {
        let parsed = read("https://a.test/feed", content_type, rss);
        assert_eq!(found(&parsed, LinkKind::Feed), ["https://a.test/1"], "{content_type}");
    }
    let other = xml("<svg><a href='/x'/></svg>");
    assert!(matches!(&other.reasons[..], [Reason::UnwantedType { .. }]), "{:?}", other.reasons);
    let page = read("https://a.test/", "text/html", b"<!-- rss --><html><a href=/x>x</a>");
    assert_eq!(found(&page, LinkKind::A), ["https://a.test/x"]);
}

#[test]
fn a_list_is_known_by_its_look_whatever_its_type_and_name_say() {
    let urls = b"https://a.test/1\nhttps://a.test/2\n";
    let map = sitemap(2);
    for content_type in ["application/pdf", "image/png", "application/x-unheard-of"] {
        for body in [urls.to_vec(), map.clone().into_bytes(), gzip(urls), gzip(map.as_bytes())] {
            let parsed = read("https://a.test/list?id=1", content_type, &body);
            assert_eq!(found(&parsed, LinkKind::Sitemap).len(), 2, "{content_type} {body:?}");
        }
        let other = read("https://a.test/x", content_type, &gzip(b"<html><a href=/x>"));
        assert_eq!(other.links.len(), 0);
        assert!(matches!(&other.reasons[..], [Reason::UnwantedType { .. }]));
    }
    assert_eq!(read("https://a.test/list", "text/html", urls).links.len(), 2);
    let page = read("https://a.test/", "text/html", b"https://a.test/1\n<a href=/2>two</a>");
    assert_eq!(found(&page, LinkKind::A), ["https://a.test/2"]);
    let long = "https://a.test/12345\n".repeat(1000);
    let parsed = read("https://a.test/list", "application/pdf", long.as_bytes());
    assert_eq!(found(&parsed, LinkKind::Sitemap), ["https://a.test/12345"]);
}

#[test]
fn what_was_left_out_is_counted_and_said() {
    let long = "x".repeat(17 << 10);
    let parsed = xml(&format!(
        "<urlset><url><loc>mailto:a@a.test</loc></url><url><loc>http://</loc></url>\
         <url><loc>/{}</loc></url><url><loc>/{long}</loc></url>\
         <url><loc>/kept</loc><note>{long}</note></url></urlset>",
        "y".repeat(9000)
    ));
    assert_eq!(found(&parsed, LinkKind::Sitemap), ["https://a.test/kept"]);
    let said: Vec<String> = parsed.reasons.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "2 left out: no http or https URL",
            "1 left out: a URL longer than 8192 bytes",
            "1 left out: a title, date or URL of over 16384 bytes",
        ]
    );
    let feed = xml(&format!(
        "<rss><channel><title>{long}</title><item><link>/1</link><title>{long}</title>\
         <description>{long}</description></item></channel></rss>"
    ));
    let entry = feed.links.iter().next().unwrap();
    assert_eq!((entry.url, entry.text, feed.title), ("https://a.test/1", "", None));
    assert!(matches!(&feed.reasons[..], [Reason::LeftOut { count: 2, .. }]), "{:?}", feed.reasons);
}

#[test]
fn a_text_is_a_sitemap_when_every_line_is_a_url_or_its_name_says_so() {
    let lines = b"https://a.test/1\n\n  https://a.test/2#x\n";
    let list = read("https://a.test/list", "text/plain", lines);
    assert_eq!(found(&list, LinkKind::Sitemap), ["https://a.test/1", "https://a.test/2"]);
    let prose = b"See\nhttps://a.test/1\n";
    assert_eq!(read("https://a.test/list", "text/plain", prose).links.len(), 0);
    assert_eq!(read("https://a.test/sitemap.txt", "text/plain", prose).links.len(), 1);
}

#[test]
fn a_gzip_file_is_looked_into_and_a_damaged_one_is_not_believed() {
    let url = "https://a.test/sitemap.gz";
    let mut whole = gzip(sitemap(30).as_bytes());
    assert_eq!(read(url, "application/x-gzip", &whole).links.len(), 30);
    let middle = whole.len() / 2;
    whole[middle] ^= 0xff;
    let damaged = read(url, "application/x-gzip", &whole);
    assert_eq!((damaged.links.len(), damaged.reasons.len()), (0, 1), "{:?}", damaged.reasons);
    let bomb = read(url, "application/gzip", &gzip(&vec![b' '; 60 << 20]));
    assert_eq!(bomb.links.len(), 0);
    assert!(matches!(&bomb.reasons[..], [Reason::TooLarge { .. }]), "{:?}", bomb.reasons);
    assert_eq!(read(url, "application/gzip", b"<urlset><url><loc>/1</loc></url>").links.len(), 1);
}

#[test]
fn archives_are_received_only_where_their_name_says_sitemap() {
    let wanted = |url: &str, content_type| is_wanted(&CrawlUrl::parse(url).unwrap(), content_type);
    assert!(wanted("https://a.test/x", "") && wanted("https://a.test/x", "text/html"));
    assert!(!wanted("https://a.test/linux.tar.gz", "application/gzip"));
    assert!(!wanted("https://a.test/x", "application/octet-stream"));
    for file in ["sitemap.xml.gz", "a/news.xml.gz?x=1", "Sitemap_2"] {
        assert!(wanted(&format!("https://a.test/{file}"), "application/octet-stream"), "{file}");
    }
}
