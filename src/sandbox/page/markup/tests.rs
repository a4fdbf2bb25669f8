//! The shape of pages is the one that is promised, and they lead nowhere else.

use std::collections::BTreeSet;

use libdeflater::{CompressionLvl, Compressor};

use super::super::super::options::{PageSizes, SandboxOptions};
use super::super::super::site::{HostPlan, Shape};
use super::super::page;
use super::*;
use crate::parse::charset::to_text;
use crate::parse::html::{ScanOptions, scan};
use crate::parse::links::{Base, Links, resolve_links};
use crate::types::LinkKind;

fn shape() -> Shape {
    let sizes = PageSizes::Realistic;
    let options =
        SandboxOptions { sizes, hosts: 16, pages_per_host: 120, ..SandboxOptions::default() };
    Shape { options, http_port: 8080, closed_port: 8081 }
}

/// What a page holds: bytes of text, links, title.
fn read(url: &str, body: &[u8]) -> (usize, Links, Option<String>) {
    let text = to_text(body, None, true, usize::MAX);
    let options = ScanOptions {
        links_max: 10_000,
        text_bytes_max: 1 << 20,
        references_bytes_max: usize::MAX,
        meta_names: &[],
        measures_depth: false,
        is_xml: false,
        out_of_time: &|| false,
    };
    let found = scan(&text.text, &options);
    let base = Base::new(&url::Url::parse(url).unwrap(), None, text.encoding);
    let (links, _) = resolve_links(&found.links, &found.text, &base, usize::MAX, &|| false);
    (found.text.len(), links, found.title)
}

/// Pages of every host, spread over its articles.
fn sample(shape: &Shape, mut each: impl FnMut(&HostPlan, usize, &[u8])) {
    for host in 0..shape.options.hosts {
        let plan = HostPlan::new(shape, host);
        for nth in (0..plan.nodes.len()).step_by(9) {
            if plan.nodes[nth].behaviour == Behaviour::Article {
                each(&plan, nth, &page(shape, &plan, nth).body);
            }
        }
    }
}

#[test]
fn pages_are_mostly_markup_with_the_links_and_the_gzip_of_the_web() {
    let shape = shape();
    let mut gzip = Compressor::new(CompressionLvl::default());
    let (mut pages, mut bytes, mut text, mut links, mut packed) = (0, 0, 0, 0, 0);
    sample(&shape, |plan, nth, body| {
        let mut out = vec![0; gzip.gzip_compress_bound(body.len())];
        packed += gzip.gzip_compress(body, &mut out).unwrap();
        let (shown, found, _) = read(&shape.url(plan.host, plan.path(nth)), body);
        (pages, bytes, text, links) =
            (pages + 1, bytes + body.len(), text + shown, links + found.len());
    });
    assert!(pages > 100);
    let seen = (bytes / pages / 1024, packed / pages / 1024, links / pages, text * 100 / bytes);
    assert!((210..270).contains(&seen.0), "{seen:?}");
    assert!((36..50).contains(&seen.1), "{seen:?}");
    assert!((140..185).contains(&seen.2), "{seen:?}");
    assert!((5..15).contains(&seen.3), "{seen:?}");
}

#[test]
fn pages_lead_to_what_the_plan_says_and_to_articles_of_their_host() {
    let shape = shape();
    sample(&shape, |plan, nth, body| {
        let (_, links, title) = read(&shape.url(plan.host, plan.path(nth)), body);
        assert!(title.is_some_and(|title| !title.is_empty()));
        let leading = links.iter().filter(|link| link.kind == LinkKind::A && !link.nofollow);
        let found: BTreeSet<String> = leading.map(|link| link.url.to_owned()).collect();
        let node = plan.node(nth).unwrap();
        let planned: BTreeSet<String> = node
            .links
            .iter()
            .filter(|link| !link.nofollow)
            .map(|link| plan.url_of(&shape, link.to))
            .collect();
        assert!(planned.is_subset(&found), "{} lacks links", node.path);
        let articles = plan.nodes.iter().take_while(|node| node.behaviour == Behaviour::Article);
        let mut known: BTreeSet<String> =
            articles.map(|node| shape.url(plan.host, &node.path)).collect();
        known.extend(planned);
        let stray: Vec<_> = found.difference(&known).collect();
        assert!(stray.is_empty(), "{} leads to {stray:?}", node.path);
    });
}

#[test]
fn navigation_is_the_same_on_all_large_pages_of_a_host() {
    let shape = shape();
    let mut navigation: Vec<(u16, String)> = Vec::new();
    sample(&shape, |plan, _, body| {
        let text = to_text(body, None, true, usize::MAX).text.into_owned();
        let from = text.find("<nav").unwrap();
        let nav = text.get(from..text.find("</nav>").unwrap()).unwrap();
        if body.len() > NAVIGATION_MAX * NAVIGATION_BYTES * 2 {
            navigation.push((plan.host, nav.to_owned()));
        }
    });
    assert!(navigation.len() > 20);
    navigation.dedup();
    let hosts: BTreeSet<u16> = navigation.iter().map(|(host, _)| *host).collect();
    assert_eq!(navigation.len(), hosts.len(), "it differs within a host");
}
