//! Whole sites, found by what they list: the set-ups of a public corpus, written anew (P3).

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod support;

use std::collections::BTreeSet;
use std::io::Write as _;

use support::node::Home;
use support::site::{Reply, Request, Site};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A whole site: what it serves, and the pages that only its lists name.
struct Scenario {
    name: &'static str,
    robots: &'static str,
    /// Path, type, body. `{h}` is the site; `gz:` is packed, `ce:` is sent with a content coding,
    /// `-> ` is a redirect.
    files: &'static [(&'static str, &'static str, &'static str)],
    pages: &'static [&'static str],
}

const XML: &str = "application/xml";
const MAP: &str = "Sitemap: {h}/sitemap.xml\n";
/// A sitemap with pictures.
const EXTENSIONS: &str = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
    xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'>\
    <url><loc>{h}/one</loc><image:image><image:loc>{h}/one.jpg</image:loc></image:image></url>\
    <url><loc>{h}/two</loc><image:image><image:loc>{h}/two.jpg</image:loc></image:image></url>\
    </urlset>";

/// The set-ups of site_scenarios.json, written anew: what matters of each, and where ours is
/// another result, ours, with the reason.
const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "a sitemap of an index redirects to the index",
        robots: MAP,
        files: &[
            (
                "/sitemap.xml",
                XML,
                "<sitemapindex><sitemap><loc>{h}/moved.xml</loc></sitemap></sitemapindex>",
            ),
            ("/moved.xml", "", "-> {h}/sitemap.xml"),
        ],
        pages: &[],
    },
    Scenario {
        name: "three indexes name each other in a circle",
        robots: "Sitemap: {h}/sitemap_1.xml\n",
        files: &[
            (
                "/sitemap_1.xml",
                XML,
                "<sitemapindex><sitemap><loc>{h}/sitemap_2.xml</loc></sitemap></sitemapindex>",
            ),
            (
                "/sitemap_2.xml",
                XML,
                "<sitemapindex><sitemap><loc>{h}/sitemap_3.xml</loc></sitemap></sitemapindex>",
            ),
            (
                "/sitemap_3.xml",
                XML,
                "<sitemapindex><sitemap><loc>{h}/sitemap_1.xml</loc></sitemap></sitemapindex>",
            ),
        ],
        pages: &[],
    },
    Scenario {
        name: "another name redirects to the sitemap; we ask for no name that nobody gave",
        robots: MAP,
        files: &[
            ("/sitemap.xml", XML, "<urlset><url><loc>{h}/about.html</loc></url></urlset>"),
            ("/sitemap-index.xml", "", "-> {h}/sitemap.xml"),
        ],
        pages: &["/about.html"],
    },
    Scenario {
        name: "an index names itself",
        robots: MAP,
        files: &[(
            "/sitemap.xml",
            XML,
            "<sitemapindex><sitemap><loc>{h}/sitemap.xml</loc></sitemap></sitemapindex>",
        )],
        pages: &[],
    },
    Scenario {
        name: "indexes, news, a missing sitemap, and an index that names an index",
        robots: "User-agent: *\nDisallow: /whatever\nSitemap: {h}/sitemap_pages.xml\n\
                 Sitemap: {h}/news_index_1.xml\n",
        files: &[
            (
                "/sitemap_pages.xml",
                XML,
                "<urlset><url><loc>{h}/about.html</loc></url><url><loc>{h}/contact.html</loc>\
                    </url></urlset>",
            ),
            (
                "/news_index_1.xml",
                XML,
                "<sitemapindex><sitemap><loc>{h}/news_1.xml</loc></sitemap><sitemap>\
                    <loc>{h}/news_index_2.xml</loc></sitemap></sitemapindex>",
            ),
            (
                "/news_1.xml",
                XML,
                "<urlset xmlns:news='n'><url><loc>{h}/news/foo.html</loc><news:news>\
                    <news:title>Foo &lt;1&gt;</news:title></news:news></url><url>\
                    <loc>{h}/news/bar.html</loc></url></urlset>",
            ),
            (
                "/news_index_2.xml",
                XML,
                "<sitemapindex><sitemap><loc>{h}/news_2.xml</loc></sitemap><sitemap>\
                    <loc>{h}/news_missing.xml</loc></sitemap></sitemapindex>",
            ),
            (
                "/news_2.xml",
                XML,
                "<urlset><url><loc>{h}/news/bar.html</loc></url><url>\
                    <loc>{h}/news/baz.html</loc></url></urlset>",
            ),
        ],
        pages: &[
            "/about.html",
            "/contact.html",
            "/news/foo.html",
            "/news/bar.html",
            "/news/baz.html",
        ],
    },
    Scenario {
        name: "gzip by name, by type, by neither although both say so, and by content coding",
        robots: "Sitemap: {h}/sitemap_1.gz\nSitemap: {h}/sitemap_2.dat\n\
            Sitemap: {h}/sitemap_3.xml.gz\n\
                 Sitemap: {h}/sitemap_4.xml\n",
        files: &[
            ("/sitemap_1.gz", "", "gz:<urlset><url><loc>{h}/foo.html</loc></url></urlset>"),
            (
                "/sitemap_2.dat",
                "application/x-gzip",
                "gz:<urlset><url><loc>{h}/bar.html</loc></url></urlset>",
            ),
            (
                "/sitemap_3.xml.gz",
                "application/x-gzip",
                "<urlset><url><loc>{h}/baz.html</loc></url></urlset>",
            ),
            ("/sitemap_4.xml", XML, "ce:<urlset><url><loc>{h}/four.html</loc></url></urlset>"),
        ],
        pages: &["/foo.html", "/bar.html", "/baz.html", "/four.html"],
    },
    Scenario {
        name: "an index names robots.txt",
        robots: MAP,
        files: &[(
            "/sitemap.xml",
            XML,
            "<sitemapindex><sitemap><loc>{h}/robots.txt</loc></sitemap></sitemapindex>",
        )],
        pages: &[],
    },
    Scenario {
        name: "no namespaces",
        robots: "Sitemap: {h}/sitemap_index.xml\n",
        files: &[
            (
                "/sitemap_index.xml",
                XML,
                "<?xml version='1.0'?><sitemapindex><sitemap><loc>{h}/sitemap_pages.xml</loc>\
                    </sitemap></sitemapindex>",
            ),
            ("/sitemap_pages.xml", XML, "<urlset><url><loc>{h}/about.html</loc></url></urlset>"),
        ],
        pages: &["/about.html"],
    },
    Scenario {
        name: "a byte order mark before robots.txt and before the sitemap, and no type",
        robots: "\u{feff}User-agent: *\nDisallow: /whatever\n\nSitemap: {h}/sitemap.xml\n",
        files: &[(
            "/sitemap.xml",
            "",
            "\u{feff}<?xml version='1.0' encoding='UTF-8'?><urlset><url>\
                <loc>{h}/first.html</loc></url></urlset>",
        )],
        pages: &["/first.html"],
    },
    Scenario {
        name: "cut in the middle of a URL",
        robots: MAP,
        files: &[(
            "/sitemap.xml",
            XML,
            "<urlset><url><loc>{h}/1</loc></url><url><loc>{h}/2</loc></url><url><loc>{h}/on",
        )],
        pages: &["/1", "/2"],
    },
    Scenario {
        name: "cut before the end of the list",
        robots: MAP,
        files: &[(
            "/sitemap.xml",
            XML,
            "<urlset><url><loc>{h}/1</loc></url><url><loc>{h}/2</loc></url>",
        )],
        pages: &["/1", "/2"],
    },
    Scenario {
        name: "text, plain and packed, with lines that are no URLs",
        robots: "Sitemap: {h}/sitemap_1.txt\nSitemap: {h}/sitemap_2.txt.dat\n",
        files: &[
            (
                "/sitemap_1.txt",
                "",
                "{h}/foo.html\n\n\n{h}/bar.html\n\nSome words that are none\n\
                ",
            ),
            ("/sitemap_2.txt.dat", "application/x-gzip", "gz:{h}/bar.html\n{h}/baz.html\n"),
        ],
        pages: &["/foo.html", "/bar.html", "/baz.html"],
    },
    Scenario {
        name: "a robots.txt that names none",
        robots: "User-agent: *\nDisallow: /whatever",
        files: &[("/sitemap.xml", XML, "<urlset><url><loc>{h}/unsaid</loc></url></urlset>")],
        pages: &[],
    },
    Scenario {
        name: "no robots.txt",
        robots: "",
        files: &[("/sitemap.xml", XML, "<urlset><url><loc>{h}/unsaid</loc></url></urlset>")],
        pages: &[],
    },
    Scenario {
        name: "white space about the line",
        robots: "User-agent: *\n Sitemap:{h}/sitemap.xml    ",
        files: &[("/sitemap.xml", "", "<urlset><url><loc>{h}/first.html</loc></url></urlset>")],
        pages: &["/first.html"],
    },
    Scenario {
        name: "feeds as sitemaps: RSS 2, Atom 0.3, Atom 1.0 with links that are none",
        robots: "Sitemap: {h}/rss.xml\nSitemap: {h}/atom3.xml\nSitemap: {h}/atom1.xml\n",
        files: &[
            (
                "/rss.xml",
                "application/rss+xml",
                "<rss version='2.0'><channel><title>R</title><link>{h}</link><item>\
                    <title>1</title><link>{h}/rss_1</link><guid \
                    isPermaLink='true'>{h}/rss_1</guid></item></channel></rss>",
            ),
            (
                "/atom3.xml",
                "application/atom+xml",
                "<feed version='0.3' xmlns='http://purl.org/atom/ns#'><link \
                    rel='alternate' href='{h}'/><entry><link \
                    rel='alternate' href='{h}/atom3_1'/><id>{h}/id</id></entry></feed>",
            ),
            (
                "/atom1.xml",
                "application/atom+xml",
                "<feed xmlns='http://www.w3.org/2005/Atom'><link \
                    rel='self' href='{h}/atom1.xml'/><entry><link href='{h}/atom1_1'/><link \
                    rel='alternate' href='{h}/atom1_1?alt'/><link \
                    rel='edit' href='{h}/atom1_1?edit'/></entry></feed>",
            ),
        ],
        pages: &["/rss_1", "/atom3_1", "/atom1_1"],
    },
    Scenario {
        name: "feeds without entries",
        robots: "Sitemap: {h}/rss.xml\nSitemap: {h}/atom.xml\n",
        files: &[
            (
                "/rss.xml",
                "application/rss+xml",
                "<rss version='2.0'><channel><link>{h}</link></channel></rss>",
            ),
            ("/atom.xml", "application/atom+xml", "<feed><link href='{h}'/></feed>"),
        ],
        pages: &[],
    },
    Scenario {
        name: "an entity bomb; expected is that the file is refused, ours expands nothing and \
            reads on",
        robots: MAP,
        files: &[(
            "/sitemap.xml",
            XML,
            "<?xml version='1.0'?><!DOCTYPE l [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;\
                &a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;'>]><urlset><url><loc>{h}/page.html</loc>\
                </url></urlset>",
        )],
        pages: &["/page.html"],
    },
    Scenario {
        name: "cut inside an element that no page needs",
        robots: MAP,
        files: &[(
            "/sitemap.xml",
            "",
            "<urlset xmlns:news='n'><url><loc>{h}/1</loc></url><url><loc>{h}/2</loc></url><url>\
                <news:news><news:ti",
        )],
        pages: &["/1", "/2"],
    },
    Scenario {
        name: "a sitemap that robots.txt does not name; expected is that usual names are \
            tried, ours are not",
        robots: "Sitemap: {h}/public.xml\n",
        files: &[
            ("/public.xml", "", "<urlset><url><loc>{h}/public.html</loc></url></urlset>"),
            ("/sitemap_index.xml", "", "<urlset><url><loc>{h}/private.html</loc></url></urlset>"),
        ],
        pages: &["/public.html"],
    },
    Scenario {
        name: "pictures",
        robots: MAP,
        files: &[("/sitemap.xml", "text/xml", EXTENSIONS)],
        pages: &["/one", "/two"],
    },
    Scenario {
        name: "other languages, with attributes missing",
        robots: MAP,
        files: &[(
            "/sitemap.xml",
            "text/xml",
            "<urlset xmlns:xhtml='x'><url><loc>{h}/en</loc><xhtml:link \
                rel='alternate' hreflang='fr-FR' href='{h}/fr'/></url><url><loc>{h}/fr</loc>\
                <xhtml:link rel='alternate' hreflang='en-GB'/></url><url><loc>{h}/fr2</loc>\
                <xhtml:link hreflang='en-GB' href='{h}/en2'/></url></urlset>",
        )],
        pages: &["/en", "/fr", "/fr2", "/en2"],
    },
    Scenario {
        name: "the rule of folders, which we leave aside: the whole host is the sitemap's",
        robots: "Sitemap: {h}/catalog/sitemap.xml\nSitemap: {h}/index.php?route=path/sitemap\n",
        files: &[
            (
                "/catalog/sitemap.xml",
                XML,
                "<urlset><url><loc>{h}/catalog/show?item=233</loc></url><url>\
                    <loc>{h}/image/show?item=233</loc></url></urlset>",
            ),
            (
                "/index.php?route=path/sitemap",
                XML,
                "<urlset><url><loc>{h}/catalog/page1.php</loc></url></urlset>",
            ),
        ],
        pages: &["/catalog/show?item=233", "/image/show?item=233", "/catalog/page1.php"],
    },
    Scenario {
        name: "a name and a type that say nothing, named by robots.txt",
        robots: "Sitemap: {h}/lists?a=1\nSitemap: {h}/lists?a=2\nSitemap: {h}/lists?a=3\n\
            Sitemap: {h}/lists?a=4\n",
        files: &[
            (
                "/lists?a=1",
                "text/html",
                "<?xml version='1.0'?><urlset><url><loc>{h}/html</loc></url></urlset>",
            ),
            (
                "/lists?a=2",
                "application/octet-stream",
                "gz:<urlset><url><loc>{h}/octets</loc></url></urlset>",
            ),
            ("/lists?a=3", "application/x-download", "{h}/download\n"),
            ("/lists?a=4", "application/gzip", "gz:{h}/packed\n"),
        ],
        pages: &["/html", "/octets", "/download", "/packed"],
    },
];

impl Scenario {
    fn answer(&self, request: &Request) -> Reply {
        let host = format!("http://{}", request.headers["host"]);
        let fill = |text: &str| text.replace("{h}", &host);
        if request.path == "/robots.txt" {
            return if self.robots.is_empty() {
                Reply::status(404)
            } else {
                Reply::text(fill(self.robots))
            };
        }
        let file = self.files.iter().find(|(path, ..)| *path == request.path);
        let Some((_, content_type, body)) = file else {
            return Reply::html("<p>a page");
        };
        if let Some(target) = body.strip_prefix("-> ") {
            return Reply::redirect(301, fill(target));
        }
        let reply = Reply::status(200);
        let reply = match *content_type {
            "" => reply,
            content_type => reply.header("Content-Type", content_type),
        };
        match body.split_once(':') {
            Some(("gz", body)) => reply.body(gzip(&fill(body))),
            Some(("ce", body)) => reply.header("Content-Encoding", "gzip").body(gzip(&fill(body))),
            Some(_) | None => reply.body(fill(body)),
        }
    }

    /// The pages that were asked for.
    fn found(&self, site: &Site) -> BTreeSet<String> {
        let is_page = |path: &String| {
            !matches!(path.as_str(), "/" | "/robots.txt")
                && !self.files.iter().any(|(file, ..)| file == path)
        };
        site.paths().into_iter().filter(is_page).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_sites_are_found_as_their_lists_have_them() {
    let mut sites = Vec::new();
    for scenario in SCENARIOS {
        sites.push(Site::start(move |request| scenario.answer(request)).await);
    }
    let home = Home::local();
    let seeds: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
    let mut line = vec!["crawl", "--json"];
    line.extend(seeds.iter().map(String::as_str));
    let told = home.run(&line, 90).await.expect(0).json();
    assert_eq!(told["ended"], "done", "{told}");
    for (scenario, site) in SCENARIOS.iter().zip(&sites) {
        let missing = ["/news_missing.xml"];
        let found: BTreeSet<String> = scenario.found(site);
        let expected = scenario.pages.iter().map(|page| (*page).to_owned());
        let found: BTreeSet<_> =
            found.into_iter().filter(|path| !missing.contains(&path.as_str())).collect();
        assert_eq!(found, expected.collect(), "{}", scenario.name);
    }
}
