//! Page-level rules as sites write them, and the corpora's cases.

use bytes::Bytes;

use super::*;

fn headers(values: &[(&str, &str)]) -> Headers {
    values.iter().map(|(n, v)| ((*n).to_owned(), Bytes::from((*v).to_owned()))).collect()
}

fn tag(values: &[&str]) -> PageWishes {
    let values: Vec<_> = values.iter().map(|value| ("X-Robots-Tag", *value)).collect();
    page_wishes(&headers(&values), &[], "mehman")
}

fn meta(name: &str, content: &str) -> PageWishes {
    page_wishes(&Vec::new(), &[(name.to_owned(), content.to_owned())], "Mehman")
}

fn end(wishes: &PageWishes) -> Option<Timestamp> {
    wishes.directives.iter().find_map(|directive| end_of(directive))
}

#[test]
fn a_page_is_over_from_the_earliest_date_on() {
    let at = |text| Timestamp::parse_rfc3339(text).unwrap();
    let noon = at("2010-06-25T12:00:00Z");
    for form in [
        "2010-06-25T12:00:00Z",
        "2010-06-25T14:00:00+02:00",
        "2010-06-25 12:00:00",
        "Fri, 25 Jun 2010 12:00:00 GMT",
        "Friday, 25-Jun-10 12:00:00 UTC",
        "Fri Jun 25 12:00:00 2010",
        "25 Jun 2010 12:00 UTC",
        "25 Jun 2010 04:00:00 PST",
        "25 Jun 2010 04:00:00 -0800",
    ] {
        let says = [
            tag(&[&format!("unavailable_after: {form}")]),
            tag(&[&format!("noarchive, mehman: Unavailable_After:{form}, nosnippet")]),
            meta("robots", &format!("unavailable_after: {form}")),
        ];
        for wishes in says {
            assert!(is_over(&wishes.directives, noon), "{form} {:?}", wishes.directives);
            assert!(!is_over(&wishes.directives, at("2010-06-25T11:59:59Z")), "{form}");
        }
    }
    let two = tag(&["unavailable_after: 2999-01-01", "unavailable_after: 2010-06-25"]);
    assert!(is_over(&two.directives, noon));
    for none in ["unavailable_after: soon", "unavailable_after", "noindex", "otherbot: none"] {
        assert!(!is_over(&tag(&[none]).directives, noon), "{none}");
    }
}

#[test]
fn rules_apply_to_everybody_or_to_the_agent_named() {
    let wishes = tag(&["Mehman: noindex, NoArchive, otherbot: nofollow", "nosnippet"]);
    assert_eq!(wishes.directives, ["noindex", "noarchive", "nosnippet"]);
    assert_eq!((wishes.noindex, wishes.nofollow, wishes.noarchive), (true, false, true));
    assert!(meta("mehman", "noindex").noindex);
    assert!(tag(&["mehman/1.0: noindex"]).noindex && !tag(&["mehmaniac: noindex"]).noindex);
    assert!(meta("robots", "NONE").nofollow);
    assert!(!meta("otherbot", "none").noindex);
    assert_eq!(meta("robots", "noindex nofollow;nosnippet").directives.len(), 3);
    assert_eq!(meta("robots", "all, index,follow").directives, ["all", "index", "follow"]);
}

#[test]
fn dates_keep_their_commas() {
    let wishes = tag(&["unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noarchive"]);
    let text = "unavailable_after: fri, 25 jun 2010 15:00:00 gmt";
    assert_eq!(wishes.directives, [text, "noarchive"]);
    assert_eq!(end(&wishes), Timestamp::parse_rfc3339("2010-06-25T15:00:00Z"));
    assert_eq!(end(&tag(&["mehman: unavailable_after: 2010-06-25T15:00:00Z"])), end(&wishes));
    assert_eq!(tag(&["other: unavailable_after: 25 Jun 2010 15:00:00 PST"]).directives.len(), 0);
}

#[test]
fn values_are_no_agents() {
    let wishes = tag(&["max-snippet:20, max-image-preview: large, noindex"]);
    assert_eq!(wishes.directives, ["max-snippet:20", "max-image-preview: large", "noindex"]);
    assert!(wishes.noindex);
}

#[test]
fn wishes_on_use_are_kept_as_found() {
    let found = headers(&[
        ("Content-Usage", "train-ai=n"),
        ("Content-Signal", "search=yes, ai-train=no"),
        ("TDM-Reservation", "1"),
        ("X-Robots-Tag", "noai, noimageai"),
    ]);
    let metas = [
        ("tdm-policy".to_owned(), "https://example.com/policy.json".to_owned()),
        ("robots".to_owned(), "noai".to_owned()),
    ];
    let wishes = page_wishes(&found, &metas, "mehman");
    let texts: Vec<_> = wishes.usage.iter().map(|w| (w.source.as_str(), w.text.as_str())).collect();
    assert_eq!(
        texts,
        [
            ("header", "content-usage: train-ai=n"),
            ("header", "content-signal: search=yes, ai-train=no"),
            ("header", "tdm-reservation: 1"),
            ("header", "x-robots-tag: noai, noimageai"),
            ("meta", "tdm-policy: https://example.com/policy.json"),
            ("meta", "robots: noai"),
        ]
    );
    assert_eq!(wishes.directives, ["noai", "noimageai"]);
}

#[test]
fn floods_are_bounded() {
    let many = (0..10_000).map(|n| format!("rule{n}")).collect::<Vec<_>>().join(",");
    assert_eq!(tag(&[&many]).directives.len(), DIRECTIVES_MAX);
    let long = format!("noai, {}", "é".repeat(10_000));
    assert!(tag(&[&long]).usage[0].text.len() < 1100);
    let open = "unavailable_after: ,".repeat(5000);
    assert_eq!(end(&tag(&[&open])), None);
}
