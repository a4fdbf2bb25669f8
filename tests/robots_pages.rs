//! R4, R5, D5: what a page asks for by meta robots, X-Robots-Tag, `rel` and its status, against the
//! real binary: what is fetched, stored, followed and given out. `docs/robots.md` names this test.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use support::data;
use support::node::{Home, LOCAL};
use support::site::{Reply, Request, Site};

/// The pages by name: what their headers and their head say. Each links to `/to/{name}`.
const PAGES: [(&str, &[&str], &str); 16] = [
    ("plain", &[], ""),
    ("noindex", &[], "<meta name=robots content=noindex>"),
    ("nofollow", &[], "<meta name=robots content='index, nofollow'>"),
    ("none", &[], "<meta name=ROBOTS content=NONE>"),
    ("noarchive", &["noarchive"], ""),
    ("nosnippet", &["nosnippet, max-snippet: 0"], ""),
    ("header", &["noindex"], ""),
    ("several", &["noarchive", "otherbot: nofollow", "noindex"], ""),
    ("named", &["otherbot: none, mehman: noindex, nosnippet"], ""),
    ("other", &["otherbot: noindex, nofollow"], "<meta name=otherbot content=none>"),
    ("own-meta", &[], "<meta name=Mehman content=nofollow>"),
    ("added", &["noindex"], "<meta name=robots content='index, nofollow'>"),
    ("over", &["unavailable_after: 25 Jun 2010 15:00:00 PST"], ""),
    ("long-over", &["unavailable_after: Wednesday, 01-Jan-98 00:00:00 GMT"], ""),
    ("far", &["unavailable_after: 2999-01-01T00:00:00Z, noarchive"], ""),
    ("canonical", &[], "<link rel=canonical href=/plain>"),
];

fn site(request: &Request) -> Reply {
    let name = request.path.trim_start_matches('/');
    let link = |to: &str, rel: &str| format!("<a href='{to}' rel='{rel}'>{to}</a> ");
    if let Some((name, tags, head)) = PAGES.iter().find(|(found, ..)| *found == name) {
        let page = format!("<html><head>{head}<title>{name}</title></head>");
        let body = format!(
            "{page}<p>The page of {name} and no other. {}",
            link(&format!("/to/{name}"), "")
        );
        return tags
            .iter()
            .fold(Reply::html(body), |reply, tag| reply.header("X-Robots-Tag", *tag));
    }
    match name {
        "" => {
            let own =
                PAGES.iter().map(|(name, ..)| link(&format!("/{name}"), "")).collect::<String>();
            let rels = ["nofollow", "NoFollow ugc", "ugc", "sponsored", "ugc sponsored"];
            let rels: String = rels
                .iter()
                .map(|rel| link(&format!("/rel/{}", rel.replace(' ', "-")), rel))
                .collect();
            let pair = link("/rel/both", "nofollow") + &link("/rel/both", "");
            Reply::html(format!("{own}{rels}{pair}{}{}", link("/paid", ""), link("/moved", "")))
        }
        "paid" => Reply::status(402).header("Content-Type", "text/html").body(link("/to/paid", "")),
        "moved" => Reply::redirect(301, "/to/moved").header("X-Robots-Tag", "noindex, nofollow"),
        "robots.txt" => Reply::status(404),
        _ => Reply::html(format!("<title>{name}</title>{name}")),
    }
}

/// The names of the page records in files that begin so, with their directives.
fn records(home: &Home, prefix: &str, site: &Site) -> BTreeMap<String, Value> {
    let of_prefix = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    };
    let files = data::files(&home.data().join("pages")).into_iter().filter(of_prefix);
    let lines = files.flat_map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    let name = |page: &Value| page["url"].as_str().unwrap().replace(&site.url("/"), "");
    lines
        .map(|line| serde_json::from_str(&line).unwrap())
        .map(|page: Value| (name(&page), page))
        .collect()
}

fn named(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_pages_ask_for_is_done() {
    let site = Site::start(site).await;
    let outputs = "[[output]]\nkind = \"jsonl\"\npurpose = \"archive\"\n\
                   [[output]]\nkind = \"jsonl\"\npurpose = \"search\"\n";
    let home = Home::new(&format!("{LOCAL}{outputs}"));
    let told = home.run(&["crawl", &site.url("/"), "--json"], 60).await.expect(0).json();
    assert_eq!(told["ended"], "done", "{told}");

    // Fetching and following.
    let asked = site.counts();
    assert!(PAGES.iter().all(|(name, ..)| asked[&format!("/{name}")] == 1));
    let barred: BTreeSet<String> = PAGES
        .iter()
        .map(|(name, ..)| (*name).to_owned())
        .filter(|name| !asked.contains_key(&format!("/to/{name}")))
        .collect();
    assert_eq!(barred, named(&["nofollow", "none", "own-meta", "added"]));
    let rels: BTreeSet<String> =
        asked.keys().filter_map(|path| path.strip_prefix("/rel/")).map(str::to_owned).collect();
    assert_eq!(rels, named(&["ugc", "sponsored", "ugc-sponsored", "both"]));

    // R5: a price is recorded and obeyed: asked once, nothing of it followed, none of it a page.
    assert_eq!(asked["/paid"], 1);
    assert!(!asked.contains_key("/to/paid"));
    // A redirect is no link of a page, so directives beside it bar nothing.
    assert_eq!(asked["/to/moved"], 1);

    // Storing: the archive has what came, whatever the page says of indexes.
    let index = data::index(&home.data());
    let archived: BTreeSet<&str> =
        index.iter().map(|line| line.fields["url"].as_str().unwrap()).collect();
    for (name, ..) in PAGES {
        assert!(archived.contains(site.url(&format!("/{name}")).as_str()), "{name}");
    }
    let paid = index.iter().find(|line| line.fields["url"] == site.url("/paid")).unwrap();
    assert_eq!(paid.fields["status"], "402");

    // Giving out.
    let all = records(&home, "pages-", &site);
    let search = records(&home, "pages1-", &site);
    assert!(!all.contains_key("paid"), "402 is no page");
    let left_out: BTreeSet<String> =
        all.keys().filter(|name| !search.contains_key(*name)).cloned().collect();
    let unwanted = ["noindex", "none", "header", "several", "named", "added", "over", "long-over"];
    assert_eq!(left_out, named(&unwanted));
    let directives = |name: &str| all[name]["robots"].clone();
    assert_eq!(directives("several"), serde_json::json!(["noarchive", "noindex"]));
    assert_eq!(directives("named"), serde_json::json!(["noindex", "nosnippet"]));
    assert_eq!(directives("other"), serde_json::json!([]));
    assert_eq!(directives("nosnippet"), serde_json::json!(["nosnippet", "max-snippet: 0"]));
    let over = ["unavailable_after: 25 jun 2010 15:00:00 pst", "noindex"];
    assert_eq!(directives("over"), serde_json::json!(over), "as found, and what follows from it");
    assert_eq!(directives("far")[0], "unavailable_after: 2999-01-01t00:00:00z");

    // D5: what rel=canonical names is a claim; the URL seen stays a fact.
    let canonical = &all["canonical"];
    assert_eq!(canonical["url"], site.url("/canonical"));
    assert_eq!(canonical["canonical"], site.url("/plain"));
}
