//! P3: sitemaps that name each other, with redirects between them.

use super::*;

#[test]
fn sitemaps_that_name_each_other_end() {
    let mut settings = settings();
    settings.follow = BTreeSet::from([LinkKind::Sitemap, LinkKind::Redirect, LinkKind::A]);
    let mut scope = scope(&settings);
    let mut named = |kind, from: u8| {
        let found = found("http://a.test/next", kind, false);
        let judged = link(found, &page(1, from), &mut scope, &settings, Timestamp::EPOCH);
        judged.map(|candidate| (candidate.record.depth, candidate.record.redirects))
    };
    let mut steps = 0;
    for _ in 0..LISTS_MAX {
        // A redirect between two of them hides none.
        let (_, moved) = named(LinkKind::Redirect, steps).unwrap();
        let (depth, listed) = named(LinkKind::Sitemap, moved).unwrap();
        assert_eq!((depth, Steps::of(listed).redirects), (1, 0));
        steps = listed;
    }
    let max = LISTS_MAX;
    assert_eq!(named(LinkKind::Sitemap, steps), Err(Reason::NestedSitemaps { max }));
    assert_eq!(named(LinkKind::A, steps), Ok((2, 0)), "a page they name has links of its own");
    assert!(named(LinkKind::Redirect, steps).is_ok(), "and all its redirects");
}
