//! Every scheme as its text has it, the rules between statements, and laws over junk. The rows of
//! docs/wishes.md name these tests.

use proptest::prelude::*;

use super::*;
use crate::policy::robots::Rules;
use crate::types::Timestamp;
use bytes::Bytes;

fn wish(source: &str, text: &str) -> UsageWish {
    UsageWish { source: source.to_owned(), text: text.to_owned(), at: Some(Timestamp::EPOCH) }
}

fn wishes(pieces: &[(&str, &str)]) -> Vec<UsageWish> {
    pieces.iter().map(|(source, text)| wish(source, text)).collect()
}

/// `y`, `n` or `-` for search, ai-train, ai-input and archive.
fn verdicts(usage: &[UsageWish]) -> String {
    let letter = |purpose| match judge(purpose, usage, &[]) {
        Verdict::Allowed(_) => 'y',
        Verdict::Refused(_) => 'n',
        Verdict::NoWish => '-',
    };
    Purpose::ALL.into_iter().map(letter).collect()
}

#[track_caller]
fn check(pieces: &[(&str, &str)], expected: &str) {
    assert_eq!(verdicts(&wishes(pieces)), expected, "{pieces:?}");
}

/// What a robots.txt leads to for a path.
#[track_caller]
fn check_robots(text: &str, path: &str, expected: &str) {
    let site = SiteWishes::read(&Bytes::copy_from_slice(text.as_bytes()), "mehman");
    let usage = site.of(path, None);
    assert_eq!(verdicts(&usage), expected, "{path}: {usage:?}");
}

#[test]
fn content_usage_labels_speak_of_their_purposes() {
    for (value, expected) in [
        ("train-ai=n", "-n--"),
        ("train-ai=y", "-y--"),
        ("ai-use=n", "--n-"),
        ("search=n", "n---"),
        ("train-ai=y, search=n", "ny--"),
        ("train-ai=n, ai-use=n, search=y", "ynn-"),
        // Labels of earlier drafts.
        ("train-genai=n", "-n--"),
        ("ai-output=n", "--n-"),
        ("bots=n", "nnn-"),
    ] {
        check(&[("header", &format!("content-usage: {value}"))], expected);
    }
}

#[test]
fn content_usage_is_read_as_a_dictionary() {
    for (value, expected) in [
        // aipref-vocab 6.3: the last of a key counts, other types say nothing.
        ("train-ai=y, train-ai, search=n, search=\"n\"", "----"),
        ("train-ai;allow=n, train-ai=y", "-y--"),
        ("train-ai;has;parameters=\"?\"", "----"),
        ("train-ai=n;because=\"a, b\", search=y", "yn--"),
        ("other=(a b), train-ai=n", "-n--"),
        ("train-ai=?0", "----"),
        ("train-ai=no", "----"),
        // What is no dictionary says nothing.
        ("Train-AI=n", "----"),
        ("train-ai=n,", "----"),
        ("train-ai=n search=y", "----"),
        ("\u{e9}=n", "----"),
        ("", "----"),
    ] {
        check(&[("header", &format!("content-usage: {value}"))], expected);
    }
}

#[test]
fn broader_content_usage_holds_unless_the_narrower_speaks() {
    check(&[("header", "content-usage: bots=n, search=y")], "ynn-");
    check(&[("header", "content-usage: all=y, train-ai=n")], "yny-");
    check(&[("header", "content-usage: train-ai=y, train-genai=n")], "-n--");
    // Within one statement only: another statement's no stands.
    check(&[("header", "content-usage: bots=n"), ("header", "content-usage: search=y")], "nnn-");
}

#[test]
fn content_usage_rules_follow_the_example_of_the_draft() {
    let text = "User-Agent: *\nAllow: /\nDisallow: /never/\nContent-Usage: / train-ai=n\n\
                Content-Usage: /ai-ok/ train-ai=y\n\n\
                User-Agent: ExampleBot\nAllow: /\nContent-Usage: / train-ai=y\n";
    check_robots(text, "/test", "-n--");
    check_robots(text, "/ai-ok/test", "-y--");
    let theirs = SiteWishes::read(&Bytes::from(text.to_owned()), "examplebot");
    assert_eq!(verdicts(&theirs.of("/test", None)), "-y--");
}

#[test]
fn the_longest_path_of_content_usage_decides() {
    let text = "User-agent: *\nContent-Usage: /a train-ai=y, search=n\n\
                Content-Usage: /a/b train-ai=n\nContent-Usage: /*.pdf$ ai-use=n\n\
                Content-Usage: /a/%62/c train-ai=y\n";
    check_robots(text, "/", "----");
    check_robots(text, "/a", "ny--");
    // Only the longest counts, also for what it does not speak of.
    check_robots(text, "/a/b", "-n--");
    check_robots(text, "/x.pdf", "--n-");
    check_robots(text, "/x.pdf?download", "----");
    check_robots(text, "/a/b/c", "-y--");
    let same = "User-agent: *\nContent-Usage: /a train-ai=y\nContent-Usage: /a train-ai=n\n";
    check_robots(same, "/a", "-n--");
}

#[test]
fn wishes_count_from_the_groups_that_rules_count_from() {
    let both = "User-agent: *\nContent-Signal: ai-train=no\n\n\
                User-agent: Mehman/1.0\nDisallow: /x\nContent-Signal: ai-train=yes\n";
    check_robots(both, "/", "-y--");
    check_robots(
        "User-agent: mehman\nAllow: /\n\nUser-agent: *\nContent-Signal: ai-train=no\n",
        "/",
        "----",
    );
    check_robots("User-agent: other\nContent-Signal: ai-train=no\n", "/", "----");
    // Groups are merged, and a wish ends the run of names before it.
    let merged = "User-agent: *\nContent-Usage: train-ai=n\nUser-agent: other\nContent-Usage: \
                  search=n\nUser-agent: *\nContent-Signal: ai-input=no\n";
    check_robots(merged, "/", "-nn-");
    // In front of all groups it speaks to everyone, also where a group names us.
    check_robots("Content-Signal: ai-train=no\nUser-agent: mehman\nDisallow:\n", "/", "-n--");
}

#[test]
fn content_signals_say_yes_and_no() {
    let managed = "User-agent: *\r\nContent-Signal: search=yes,ai-train=no,use=reference # by us\
                   \r\nAllow: /\r\n";
    check_robots(managed, "/any", "yn--");
    check(&[("header", "content-signal: search=yes, ai-train=no, ai-input=no")], "ynn-");
    check(&[("header", "content-signal: AI-Train = NO")], "-n--");
    check(&[("header", "content-signal: ai-train=maybe; search")], "----");
    check(&[("header", "content-signal: ai-train=yes, ai-train=no")], "-n--");
    let paths = "User-agent: *\nContent-Signal: ai-train=no\nContent-Signal: /open/ ai-train=yes\n";
    check_robots(paths, "/a", "-n--");
    check_robots(paths, "/open/a", "-y--");
}

#[test]
fn a_reservation_keeps_back_mining() {
    check(&[("header", "tdm-reservation: 1")], "-nn-");
    check(&[("header", "tdm-reservation: 0")], "-yy-");
    check(&[("header", "tdm-reservation: 2")], "----");
    check(&[("header", "tdm-reservation: yes")], "----");
    // A policy that may be bought is no leave.
    let policy = ("header", "tdm-policy: https://example.com/policy.json");
    check(&[("header", "tdm-reservation: 1"), policy], "-nn-");
    check(&[policy], "----");
}

#[test]
fn a_pages_own_reservation_stands_in_for_its_header() {
    check(&[("header", "tdm-reservation: 1"), ("meta", "tdm-reservation: 0")], "-yy-");
    check(&[("header", "tdm-reservation: 0"), ("meta", "tdm-reservation: 1")], "-nn-");
    check(&[("header", "tdm-reservation: 1"), ("meta", "tdm-reservation: none")], "-nn-");
    check(&[("header", "tdm-reservation: 0"), ("header", "tdm-reservation: 1")], "-nn-");
}

#[test]
fn noai_refuses_models_and_noimageai_their_training() {
    check(&[("header", "x-robots-tag: noai")], "-nn-");
    check(&[("meta", "robots: index, NoAI")], "-nn-");
    check(&[("meta", "robots: noimageai")], "-n--");
    check(&[("header", "x-robots-tag: mehman: noimageai, noindex")], "-n--");
    check(&[("meta", "robots: noair, all")], "----");
}

#[test]
fn agents_known_for_a_use_refuse_it_where_they_are_refused() {
    let text = "User-agent: *\nAllow: /\n\nUser-agent: GPTBot\nUser-agent: CCBot\nDisallow: /art\n\
                Allow: /art/free\n\nUser-agent: PerplexityBot\nDisallow: /news/\n\n\
                User-agent: Googlebot\nDisallow: /\n";
    check_robots(text, "/", "----");
    check_robots(text, "/art/1", "-n--");
    check_robots(text, "/art/free", "----");
    check_robots(text, "/news/1", "--n-");
    check_robots("User-agent: Google-Extended\nDisallow: /\n", "/", "-nn-");
    // A group that allows all, or names nobody we know, says nothing.
    check_robots("User-agent: GPTBot\nDisallow:\n", "/", "----");
    check_robots("User-agent: GPTBotty\nDisallow: /\n", "/", "----");
    let usage = SiteWishes::read(&Bytes::from(text), "mehman").of("/art/1", None);
    assert_eq!(usage[0].text, "User-agent: CCBot\nUser-agent: GPTBot\nDisallow: /art");
}

#[test]
fn a_group_for_everyone_says_nothing_of_agents() {
    check_robots("User-agent: *\nDisallow: /\n", "/", "----");
    let one = "User-agent: ClaudeBot\nUser-agent: *\nDisallow: /x\n";
    check_robots(one, "/x", "-n--");
}

#[test]
fn all_known_agents_refused_are_one_piece() {
    let groups: String = table::AGENTS
        .iter()
        .map(|(name, _)| format!("User-agent: {name}\nDisallow: /\n"))
        .collect();
    let usage = SiteWishes::read(&Bytes::from(groups.clone()), "mehman").of("/", None);
    assert_eq!((usage.len(), verdicts(&usage).as_str()), (1, "-nn-"));
    let rules = Rules::parse(&Bytes::from(groups), "mehman");
    assert!(rules.verdict("/").is_allowed(), "and we ourselves are not meant");
}

#[test]
fn a_page_that_says_noindex_is_not_for_search() {
    let robots = ["noindex".to_owned()];
    let verdict = judge(Purpose::Search, &[], &robots);
    assert!(matches!(verdict, Verdict::Refused(cause) if cause.scheme == Scheme::NoIndex));
    assert_eq!(judge(Purpose::AiTrain, &[], &robots), Verdict::NoWish);
    assert!(matches!(judge(Purpose::Search, &[], &["none".to_owned()]), Verdict::Refused(_)));
}

#[test]
fn one_refusal_outweighs_every_leave() {
    let usage = wishes(&[
        ("header", "content-usage: train-ai=y"),
        ("header", "content-signal: ai-train=yes"),
        ("meta", "tdm-reservation: 0"),
        ("robots.txt", "Content-Usage: / train-ai=n"),
    ]);
    assert_eq!(verdicts(&usage), "-ny-");
    let Verdict::Refused(cause) = judge(Purpose::AiTrain, &usage, &[]) else { panic!() };
    assert_eq!(cause.to_string(), "content-usage (robots.txt): Content-Usage: / train-ai=n");
    let Verdict::Allowed(cause) = judge(Purpose::AiTrain, &usage[..3], &[]) else { panic!() };
    assert_eq!(cause.scheme, Scheme::ContentUsage);
}

#[test]
fn unknown_words_say_nothing_and_are_kept() {
    check(&[("header", "x-other: n"), ("elsewhere", "no colon"), ("", ":"), ("meta", "")], "----");
    check(&[("header", "content-usage: brewing=n"), ("header", "content-signal: tea=no")], "----");
    let site = SiteWishes::read(&Bytes::from("Content-Usage: / brewing=n"), "mehman");
    let at = Some(Timestamp::from_secs(7));
    let kept = UsageWish { at, ..wish("robots.txt", "Content-Usage: / brewing=n") };
    assert_eq!(site.of("/", at), [kept]);
}

#[test]
fn what_is_left_out_counts_as_a_refusal() {
    let mut kept = Vec::new();
    let long = format!("content-usage: search=y, {}, train-ai=n", "x".repeat(5_000));
    keep(&mut kept, "header", &long, None);
    assert!(kept[0].text.len() < 1_100 && kept[0].text.ends_with(" […]"));
    assert_eq!(verdicts(&kept), "nnn-");
    let mut kept = Vec::new();
    keep(&mut kept, "meta", &format!("robots: {}, noai", "é".repeat(5_000)), None);
    assert_eq!(verdicts(&kept), "-nn-");
    let mut kept = Vec::new();
    keep(&mut kept, "header", &format!("tdm-policy: {}", "x".repeat(5_000)), None);
    assert_eq!(verdicts(&kept), "----");
    let mut kept = Vec::new();
    for number in 0..10_000 {
        keep(&mut kept, "header", &format!("content-usage: a{number}=n"), None);
    }
    assert_eq!((kept.len(), verdicts(&kept).as_str()), (WISHES_MAX + 1, "nnn-"));
    let mut kept = Vec::new();
    for _ in 0..10_000 {
        keep(&mut kept, "header", "content-usage: search=y", None);
    }
    assert_eq!((kept.len(), verdicts(&kept).as_str()), (1, "y---"));
    let flood = "Content-Usage: / search=y\n".repeat(70_000);
    check_robots(&flood, "/", "nnn-");
}

#[test]
fn purposes_have_words() {
    for purpose in Purpose::ALL {
        assert_eq!(Purpose::parse(purpose.as_str()), Some(purpose));
    }
    assert_eq!(Purpose::parse("ai"), None);
}

/// Pieces that mean something more often than chance would have it.
fn piece() -> impl Strategy<Value = UsageWish> {
    let source = prop::sample::select(vec!["header", "meta", "robots.txt", "bound", "odd"]);
    let name = prop::sample::select(vec![
        "content-usage",
        "Content-Signal",
        "tdm-reservation",
        "User-agent",
        "robots",
        "x",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "train-ai=n",
            "train-ai=y",
            "/ train-ai=n",
            "/a train-ai=y",
            "search=yes,ai-train=no",
            "/a/b ai-input=no",
            "0",
            "1",
            "noai",
            "GPTBot\nDisallow: /",
            "bots=n, search=y",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,40}",
    ];
    (source, name, value)
        .prop_map(|(source, name, value)| wish(source, &format!("{name}: {value}")))
}

proptest! {
    #[test]
    fn nothing_a_site_writes_makes_it_fail(
        text in prop::collection::vec(any::<u8>(), 0..2_000),
        lines in prop::collection::vec(piece(), 0..8),
        path in "/\\PC{0,40}",
    ) {
        let mut file = text;
        for line in &lines {
            file.extend_from_slice(b"\nUser-agent: *\n");
            file.extend_from_slice(line.text.as_bytes());
        }
        let site = SiteWishes::read(&Bytes::from(file), "mehman");
        let usage = site.of(&path, None);
        prop_assert!(usage.len() <= WISHES_MAX + 1);
        prop_assert_eq!(verdicts(&usage).len(), 4);
        verdicts(&lines);
    }

    /// W-1: one more piece lifts no refusal, unless it is the more specific of a family.
    #[test]
    fn more_evidence_never_allows_more(
        pieces in prop::collection::vec(piece(), 0..6),
        one in piece(),
    ) {
        let more: Vec<UsageWish> = pieces.iter().chain([&one]).cloned().collect();
        let family = Statement::read(&one).map(|statement| (statement.family, statement.rank));
        for purpose in Purpose::ALL {
            if let (Verdict::Refused(cause), false) = (
                judge(purpose, &pieces, &[]),
                matches!(judge(purpose, &more, &[]), Verdict::Refused(_)),
            ) {
                let (family, rank) = family.expect("what says nothing changes nothing");
                let before = pieces.iter().filter_map(Statement::read);
                let refusing = before.filter(|one| one.says(purpose) == Some(false));
                for overruled in refusing {
                    prop_assert!(overruled.family != Family::Single, "{cause}");
                    prop_assert!(overruled.family != family || overruled.rank < rank, "{cause}");
                }
            }
        }
    }

    /// The order in which pieces were found changes no verdict.
    #[test]
    fn order_changes_nothing(pieces in prop::collection::vec(piece(), 0..6)) {
        let reversed: Vec<UsageWish> = pieces.iter().rev().cloned().collect();
        prop_assert_eq!(verdicts(&pieces), verdicts(&reversed));
    }
}
