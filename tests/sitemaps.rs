//! What sites list for crawlers: Sitemap lines, indexes, gzip files, feeds, end to end (P3, R3).

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod support;

use std::collections::BTreeSet;
use std::io::Write as _;

use support::data;
use support::node::Home;
use support::site::{Reply, Request, Site};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn xml(text: &str) -> Reply {
    Reply::status(200).header("Content-Type", "application/xml").body(text)
}

/// Pages that only lists name, among them one of another host and one that robots.txt closes.
fn site(request: &Request) -> Reply {
    match request.path.as_str() {
        "/robots.txt" => Reply::text(
            "Sitemap: /maps/index.xml\nSitemap: /plain/sitemap.txt\n\
             User-agent: *\nDisallow: /closed\n",
        ),
        "/maps/index.xml" => xml("<sitemapindex><sitemap><loc>/maps/one.xml.gz</loc></sitemap>\
             <sitemap><loc>/maps/gone.xml</loc></sitemap></sitemapindex>"),
        "/maps/one.xml.gz" => {
            let list = "<urlset><url><loc>/from/gzip</loc><lastmod>2024-05-06</lastmod></url>\
                <url><loc>/closed/a</loc></url>\
                <url><loc>http://elsewhere.test/stolen</loc></url></urlset>";
            Reply::status(200).header("Content-Type", "application/octet-stream").body(gzip(list))
        }
        "/plain/sitemap.txt" => {
            Reply::text(format!("http://{}/from/text\n", request.headers["host"]))
        }
        "/feed" => Reply::status(200)
            .header("Content-Type", "application/rss+xml")
            .body("<rss><channel><item><title>News</title><link>/from/feed</link></item>"),
        "/" => Reply::html("<link rel=alternate type=application/rss+xml href=/feed><p>front"),
        path if path.starts_with("/from/") => Reply::html(format!("<title>{path}</title>{path}")),
        _ => Reply::status(404),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_lists_name_is_found_and_nothing_else() {
    let site = Site::start(site).await;
    let home = Home::local();
    let scope = ["crawl", &site.url("/"), "--json"];
    let told = home.run(&scope, 60).await.expect(0).json();
    assert_eq!(told["ended"], "done", "{told}");

    let asked: BTreeSet<String> = site.requests().into_iter().map(|request| request.path).collect();
    let expected = [
        "/",
        "/feed",
        "/from/feed",
        "/from/gzip",
        "/from/text",
        "/maps/gone.xml",
        "/maps/index.xml",
        "/maps/one.xml.gz",
        "/plain/sitemap.txt",
        "/robots.txt",
    ];
    assert_eq!(asked, expected.map(str::to_owned).into());

    let pages = data::pages(&home.data());
    let page = |path: &str| {
        let url = site.url(path);
        pages.iter().find(|page| page["url"] == url).unwrap_or_else(|| panic!("no {url}"))
    };
    let map = page("/maps/one.xml.gz");
    assert_eq!(map["links"][0]["kind"], "sitemap");
    assert_eq!(map["links"][0]["lastmod"], "2024-05-06T00:00:00.000Z");
    assert_eq!(map["discovered_from"], site.url("/maps/index.xml"));
    assert_eq!(page("/maps/index.xml")["discovered_from"], site.url("/robots.txt"));
    assert_eq!(
        (&page("/from/gzip")["depth"], &page("/from/feed")["depth"]),
        (&1.into(), &2.into())
    );
    let item = &page("/feed")["links"][0];
    assert_eq!((&item["kind"], &item["text"]), (&"feed".into(), &"News".into()));
}

/// Each index names the next, for ever.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_without_end_ends_and_what_is_left_out_is_said() {
    let endless = |request: &Request| {
        let next = request.path.len();
        match request.path.as_str() {
            "/robots.txt" => Reply::text("Sitemap: /i\n"),
            "/" => Reply::html("<p>front"),
            _ => xml(&format!(
                "<sitemapindex><sitemap><loc>/{}</loc></sitemap>\
                 <sitemap><loc>http://elsewhere.test/{next}</loc></sitemap></sitemapindex>",
                "i".repeat(next)
            )),
        }
    };
    let site = Site::start(endless).await;
    let home = Home::local();
    let told = home.run(&["crawl", &site.url("/"), "--json"], 60).await.expect(0).json();
    assert_eq!(told["ended"], "done", "{told}");
    let asked: BTreeSet<String> = site.paths().into_iter().collect();
    let expected = ["/", "/i", "/ii", "/iii", "/iiii", "/iiiii", "/robots.txt"];
    assert_eq!(asked, expected.map(str::to_owned).into());

    let pages = data::pages(&home.data());
    let reasons = |path: &str| {
        let page = pages.iter().find(|page| page["url"] == site.url(path)).unwrap();
        page["reason"].clone()
    };
    let foreign = "1 left out: a sitemap may only name URLs of its own host";
    assert_eq!(reasons("/i"), serde_json::json!([foreign]));
    let nested = "1 left out: more than 4 sitemaps in a row";
    assert_eq!(reasons("/iiiii"), serde_json::json!([foreign, nested]));
}
