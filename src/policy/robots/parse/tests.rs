//! The tolerance, the groups and the bounds of the parser.

use super::*;

fn rules(text: &str) -> Rules {
    rules_of(text.as_bytes())
}

fn rules_of(text: &[u8]) -> Rules {
    Rules::parse(&Bytes::copy_from_slice(text), "mehman")
}

fn allows(text: &str, path: &str) -> bool {
    rules(text).verdict(path).is_allowed()
}

#[test]
fn a_byte_order_mark_hides_nothing() {
    assert!(!allows("\u{FEFF}User-agent: *\nDisallow: /", "/x"));
    assert!(!allows("\u{FEFF}User-agent: mehman\nDisallow: /", "/x"));
}

#[test]
fn keys_are_exact() {
    let text =
        "User-agent: *\nDisallow: /a\nAllowlist: /a/long\nUser-agents: mehman\nDisallowed: /b";
    assert!(!allows(text, "/a/long"));
    assert!(allows(text, "/b"));
    assert_eq!(rules(text).group(), Group::Everyone);
}

#[test]
fn every_line_ending_ends_a_line_and_counts_once() {
    for end in ["\n", "\r", "\r\n"] {
        let text = ["# x", "", "User-agent: *", "Disallow: /a # why", "Allow: /a/b"].join(end);
        let rules = rules(&text);
        assert_eq!(rules.len(), 2);
        let found = rules.verdict("/a/x");
        assert_eq!(found, super::super::Verdict::Disallowed { line: 4, rule: "Disallow: /a" });
    }
}

#[test]
fn groups_that_name_us_are_merged_and_replace_those_for_everyone() {
    let text = "User-agent: *\nDisallow: /\n\nUser-agent: MEHMAN/2.0\nDisallow: /a\n\n\
                User-agent: other\nUser-agent: mehman\nDisallow: /b\n\
                User-agent: third\nDisallow: /c";
    let rules = rules(text);
    assert_eq!((rules.group(), rules.len()), (Group::Named, 2));
    assert!(!rules.verdict("/a").is_allowed() && !rules.verdict("/b").is_allowed());
    assert!(rules.verdict("/c").is_allowed());
}

#[test]
fn a_group_that_names_us_and_says_nothing_allows_everything() {
    assert!(allows("User-agent: *\nDisallow: /\nUser-agent: mehman\nDisallow:", "/x"));
    assert!(allows("User-agent: mehmaniac\nDisallow: /", "/x"));
}

#[test]
fn a_content_usage_line_is_a_rule_of_its_group() {
    let text = "User-agent: *\nContent-Usage: train-ai=n\n\nUser-agent: OtherBot\nDisallow: /\n";
    assert!(allows(text, "/page"), "the refusal is the other's alone");
    let text = "User-agent: *\nX-Other: 1\n\nUser-agent: OtherBot\nDisallow: /\n";
    assert!(!allows(text, "/page"), "any other line has no say in groups (RFC 9309 2.2.4)");
}

#[test]
fn a_file_served_as_a_web_page_is_still_read() {
    let text = "<html><body>\nUser-agent: *<BR>\nDisallow: /a<br />\nCrawl-delay: 3<br>\n</body>";
    assert!(!allows(text, "/a") && allows(text, "/b"));
    assert_eq!(rules(text).crawl_delay(), Some(Duration::from_secs(3)));
}

#[test]
fn rules_before_any_group_are_nobodys() {
    assert_eq!(rules("Disallow: /\nUser-agent: *\nAllow: /").len(), 1);
}

#[test]
fn lines_without_end_and_files_of_one_line_are_bounded() {
    let endless = format!("User-agent: *\nDisallow: /a\n#{}", "x".repeat(3_000_000));
    assert!(!allows(&endless, "/a"));
    assert_eq!(rules(&endless).skipped().lines_cut, 0, "a comment is no loss");
    let many = format!("{}User-agent: *\nDisallow: /a\n", "\n".repeat(LINES_MAX - 1));
    assert!(allows(&many, "/a") && rules(&many).group() == Group::Everyone);
    for text in ["a".repeat(3_000_000), ":".repeat(3_000_000), "\n".repeat(3_000_000)] {
        assert!(rules(&text).is_empty());
    }
}

#[test]
fn every_spelling_of_crawl_delay_is_read() {
    for key in
        ["Crawl-delay", "crawl-Delay", "CRAWL-DELAY", "Crawldelay", "crawl delay", "crawl_delay"]
    {
        for line in [format!("{key}: 90"), format!("{key}:90 # s"), format!("  {key} : 90.0")] {
            let rules = rules(&format!("User-agent: *\n{line}\n"));
            assert_eq!(rules.crawl_delay(), Some(Duration::from_secs(90)), "{line}");
        }
    }
    let of = |text: &str| rules(text).crawl_delay();
    assert_eq!(of("User-agent: *\nCrawl-delay 90"), Some(Duration::from_secs(90)));
    assert_eq!(of("User-agent: *\nCrawl-delay: 0"), Some(Duration::ZERO));
}

#[test]
fn crawl_delays_belong_to_their_own_agents() {
    let delay = |text: &str| rules(text).crawl_delay().map(|delay| delay.as_millis());
    assert_eq!(
        delay("User-agent: a\nCrawl-delay: 9\nUser-agent: mehman\nCrawlDelay: .5"),
        Some(500)
    );
    assert_eq!(delay("User-agent: *\nCrawl-delay: 2\nUser-agent: *\nCRAWL-DELAY : 3"), Some(3000));
    assert_eq!(delay("User-agent: *\nCrawl-delay: 2\nUser-agent: mehman\nDisallow: /"), None);
    for junk in ["-1", "inf", "nan", "10a", "1.2.1", "", ".", "soon", "1 year"] {
        assert_eq!(delay(&format!("User-agent: *\nCrawl-delay: {junk}")), None, "{junk}");
    }
    // What a site asks for is not cut down, be it a millennium.
    let asked = |seconds: &str| delay(&format!("User-agent: *\nCrawl-delay: {seconds}"));
    assert_eq!(asked("63072000"), Some(63_072_000_000));
    assert_eq!(asked("31536000000"), Some(31_536_000_000_000));
    assert_eq!(asked("1e308"), Some(Duration::MAX.as_millis()));
    assert_eq!(asked(&"9".repeat(400)), Some(Duration::MAX.as_millis()));
    for (written, millis) in
        [("10s", 10_000), ("10 seconds # or so", 10_000), ("5 min", 300_000), ("0.0001", 1)]
    {
        assert_eq!(asked(written), Some(millis), "{written}");
    }
}

#[test]
fn sitemaps_are_global_and_each_is_kept_once() {
    let text = "Sitemap: http://a/1\nUser-agent: x\nSITEMAP: /2\nDisallow: /\nsite-map: http://a/1";
    assert_eq!(rules(text).sitemaps(), ["http://a/1", "/2"]);
    let long = format!("Sitemap: /{}\n", "x".repeat(SITEMAP_BYTES_MAX));
    let many: String = (0..SITEMAPS_MAX + 3).map(|n| format!("Sitemap: /{n}\n")).collect();
    let rules = rules(&format!("{long}{many}"));
    assert_eq!((rules.sitemaps().len(), rules.skipped().sitemaps), (SITEMAPS_MAX, 4));
}

#[test]
fn long_lines_of_any_text_are_cut_and_counted() {
    let text = format!("User-agent: *\nDisallow: /{}\nDisallow: /b", "ü".repeat(40_000));
    let rules = rules(&text);
    assert_eq!(rules.skipped().lines_cut, 1);
    assert!(!rules.verdict("/b").is_allowed());
    let long = format!("/{}", "%C3%BC".repeat(10_000));
    assert!(!rules.verdict(&long).is_allowed(), "a cut refusal refuses more, not less");
}

#[test]
fn an_allow_that_is_too_long_to_keep_is_dropped() {
    let long = format!("/{}", "a".repeat(40_000));
    let text = format!("User-agent: *\nDisallow: /\nAllow: {long}");
    let rules = rules(&text);
    assert_eq!((rules.skipped().long_patterns, rules.len()), (1, 1));
    assert!(!rules.verdict(&long).is_allowed());
}

#[test]
fn cut_patterns_end_between_escapes() {
    for shift in 0..3 {
        let text = format!("User-agent: *\nDisallow: /{}{}", "a".repeat(shift), "é".repeat(8_000));
        let rules = rules(&text);
        let path = format!("/{}{}", "a".repeat(shift), "%C3%A9".repeat(8_000));
        assert!(!rules.verdict(&path).is_allowed(), "{shift}");
    }
}

#[test]
fn more_rules_than_are_kept_are_counted() {
    let text = format!("User-agent: *\n{}", "Allow:/\n".repeat(RULES_MAX + 7));
    assert_eq!(rules(&text).len(), RULES_MAX);
    assert_eq!(rules(&text).skipped().rules, 7);
}

#[test]
fn the_bytes_of_all_rules_are_bounded_and_hold_what_the_rfc_asks_for() {
    // The longest lines that are kept, and more of them than the largest file may have.
    let long = format!("Disallow: /{}\n", "ü".repeat(5_400));
    let text = format!("User-agent: *\nUser-agent: mehman\n{}", long.repeat(400));
    let rules = rules(&text);
    let kept: usize = rules.rules().iter().map(|r| r.pattern.octets() + r.text.len()).sum();
    assert!(kept <= RULES_BYTES_MAX && kept > RULES_BYTES_MAX - 64 * 1024, "{kept}");
    assert_eq!(usize::try_from(rules.skipped().rules).unwrap() + rules.len(), 400);
    // RFC 9309 2.5: 500 KiB, of lines of any length, encoded to three times their size.
    for line in [format!("Allow: /{}\n", "ü".repeat(300)), "Allow:é\n".to_owned()] {
        let lines = 500 * 1024 / line.len();
        let rules = rules_of(format!("User-agent: *\n{}", line.repeat(lines)).as_bytes());
        assert_eq!((rules.len(), rules.skipped()), (lines, Skipped::default()));
    }
}

#[test]
fn utf16_with_its_mark_is_read() {
    let text = "\u{FEFF}User-agent: *\r\nDisallow: /ä\nSitemap: /s\n";
    let units = || text.encode_utf16();
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    for mut bytes in [little, big] {
        for cut in ["whole", "odd"] {
            let rules = rules_of(&bytes);
            let found = rules.verdict("/%C3%A4");
            let refused = super::super::Verdict::Disallowed { line: 2, rule: "Disallow: /ä" };
            assert_eq!(found, refused, "{cut}");
            assert_eq!(rules.sitemaps(), ["/s"]);
            bytes.push(b'x');
        }
    }
    let marked = [b"\xFF\xFE\n".as_slice(), b"User-agent: *\nDisallow: /a\n"].concat();
    assert!(!rules_of(&marked).verdict("/a").is_allowed(), "a mark before plain text");
    assert!(rules_of(b"\xFF\xFE").is_empty() && rules_of(b"\xFE\xFF\xD8").is_empty());
}

#[test]
fn octets_that_are_no_utf8_still_match_the_url_that_has_them() {
    let rules = rules_of(b"User-agent: *\nDisallow: /caf\xE9\n");
    assert!(!rules.verdict("/caf%E9/menu").is_allowed());
    assert!(rules.verdict("/caf%C3%A9/menu").is_allowed());
}

#[test]
fn rules_survive_a_snapshot() {
    let rules = rules("User-agent: *\nDisallow: /a*b$\nCrawl-delay: 2\nSitemap: /s");
    let bytes = postcard::to_stdvec(&rules).unwrap();
    assert_eq!(postcard::from_bytes::<Rules>(&bytes).unwrap(), rules);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text: Vec<u8>) {
        rules_of(&text);
    }

    #[test]
    fn no_likely_text_makes_it_panic(
        lines in proptest::collection::vec(
            "(user-agent|Disallow|allow|sitemap|crawl-delay)?[ :#*\\$%/a-z0-9é]{0,12}[\n\r]",
            0..20,
        ),
    ) {
        let rules = rules(&lines.concat());
        rules.verdict("/a/b?c=%C3%A9");
    }
}
