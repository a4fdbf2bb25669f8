//! U1: the files in `config/` load, `config/default.toml` is the default, and every fault is named
//! with its place, its value and what would do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use expect_test::{expect, expect_file};
use mehman::config::{
    Config, ConfigChange, Effect, Identity, OutputKind, Oversize, Purpose, ScopeMode, Secrets, keys,
};
use mehman::types::HostKey;
use proptest::prelude::*;

fn config_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config")
}

fn load(name: &str) -> Config {
    Config::load(Some(&config_dir().join(name)), std::iter::empty(), &[])
        .unwrap_or_else(|faults| panic!("{name}: {faults}"))
}

#[test]
fn every_file_in_config_loads_and_asks_for_a_contact() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(config_dir()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".toml") {
            let config = load(&name);
            assert!(config.crawlable().is_err(), "{name} names somebody's contact");
            let contact = vec![("identity.contact_url".into(), "https://example.org/bot".into())];
            let file = config_dir().join(&name);
            let with = Config::load(Some(&file), std::iter::empty(), &contact).unwrap();
            assert_eq!(with.crawlable(), Ok(()), "{name}");
            names.push(name);
        }
    }
    names.sort();
    let expected = [
        "archive.toml",
        "billion-pages.toml",
        "default.toml",
        "ring.toml",
        "search-index.toml",
        "training-text.toml",
    ];
    assert_eq!(names, expected);
}

#[test]
fn the_default_file_is_the_default_and_documents_every_key() {
    assert_eq!(load("default.toml"), Config::default());
    let text = Config::default().to_documented_toml();
    expect_file!["../config/default.toml"].assert_eq(&text);
    for key in keys() {
        let (_, name) = key.path.rsplit_once('.').unwrap_or(("", &key.path));
        assert!(text.contains(name), "{}", key.path);
        assert!(!key.doc.is_empty(), "{} has no meaning", key.path);
    }
}

#[test]
fn profiles_say_what_their_systems_are_known_for() {
    let search = load("search-index.toml");
    assert_eq!(search.limits.daily_fetches, Some(1_000_000_000));
    assert_eq!(search.politeness, Config::default().politeness);
    let billion = load("billion-pages.toml");
    assert_eq!(billion.politeness.per_domain_min_delay, Duration::from_secs(70));
    assert_eq!(billion.fetch.max_body.bytes(), 250_000);
    assert_eq!(billion.fetch.oversize, Oversize::Truncate);
    assert_eq!(load("ring.toml").frontier.shards, 256);
    let training = load("training-text.toml");
    assert!(training.output.iter().all(|output| output.purpose == Purpose::AiTrain));
    assert_eq!(training.fetch.oversize, Oversize::Skip);
}

#[test]
fn the_effective_configuration_loads_as_itself() {
    let mut name_and_config = vec![("default", Config::default())];
    name_and_config.push(("search", load("search-index.toml")));
    name_and_config.push(("ring", load("ring.toml")));
    let everything = r#"
        identity = { product = "guest_bot", contact_email = "a@example.org" }
        output = []
        [admin]
        listen = "0.0.0.0:0"
        token = 'quite-"secret"'
        [dns]
        nameservers = ["127.0.0.1:5353", "[::1]:53"]
        [politeness]
        jitter = 0.25
        per_address_exempt = ["10.0.0.0/8"]
        [[politeness.allowance]]
        host = "https://example.org:8443"
        min_delay = "1h30m"
        [[politeness.allowance]]
        domain = "example.org"
        per_address_exempt = []
        max_in_flight = 2
        [limits]
        memory = 1_000_000_000
        [robots]
        long_unreachable = "allow-after:45d"
        [[extract]]
        match = "domain:example.org"
        fields = { price = "span.price", "a name" = "h1 > a" }
    "#;
    let everything = Config::from_toml(everything, "test").unwrap();
    name_and_config.push(("everything", everything));
    for (name, config) in name_and_config {
        let text = config.to_toml(Secrets::Shown);
        assert_eq!(Config::from_toml(&text, "shown").unwrap(), config, "{name}:\n{text}");
        let text = config.to_documented_toml();
        if config.admin.token.is_none() {
            assert_eq!(Config::from_toml(&text, "documented").unwrap(), config, "{name}:\n{text}");
        }
    }
}

#[test]
fn secrets_are_shown_only_when_asked_for() {
    let config = Config::from_toml("admin.token = \"xyzzy\"", "test").unwrap();
    assert!(!config.to_toml(Secrets::Masked).contains("xyzzy"));
    assert!(!format!("{config:?}").contains("xyzzy"));
    assert!(config.to_toml(Secrets::Shown).contains("xyzzy"));
    let changes = Config::default().changes(&config);
    assert!(!format!("{changes:?}").contains("xyzzy"));
    // A masked configuration does not load with the mask as its token.
    assert!(Config::from_toml(&config.to_toml(Secrets::Masked), "test").is_err());
    let faulty = Config::from_toml("admin.token = \"xyzzy plugh\"", "test").unwrap_err();
    assert!(!faulty.to_string().contains("xyzzy"), "{faulty}");
    // A slip of the key, of its section, of its place.
    for slip in ["admin.tokn = \"xyzzy\"", "[admn]\ntoken = \"xyzzy\"", "token = \"xyzzy\""] {
        let faulty = Config::from_toml(slip, "test").unwrap_err();
        assert!(!format!("{faulty}{:?}", faulty.faults).contains("xyzzy"), "{slip}: {faulty}");
    }
}

#[test]
fn faults_are_lines_in_the_order_of_the_file() {
    let text =
        "[scope]\ninclude = [\"name:x\"]\n[admin]\nlisten = \"here\"\n[fetch]\nworkers = 0\n";
    let faults = Config::from_toml(text, "t").unwrap_err().faults;
    let lines: Vec<_> = faults.iter().map(|fault| fault.origin.line()).collect();
    assert_eq!(lines, [Some(2), Some(4), Some(6)]);
    assert!(faults.iter().all(|fault| !fault.to_string().contains('\n')));
}

/// The faults of a text, one a line.
fn faults(text: &str) -> String {
    let faults = Config::from_toml(text, "mehman.toml").expect_err("faults");
    faults.faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[test]
fn all_faults_are_named_at_once_each_with_what_would_do() {
    let text = r#"
        colour = "red"
        [identity]
        product = "my bot"
        contact_url = "ftp://example.org"
        contact_email = "nobody"
        [politeness]
        min_dely = "1s"
        min_delay = "1 parsec"
        jitter = 1.5
        max_in_flight = "two"
        per_address_exempt = ["10.0.0.0/8", "10.0.0.1/8"]
        [fetch]
        workers = -1
        max_body = "1 mib"
        oversize = "trunkate"
        [frontier]
        shards = 5000
        bands = [8, 4, 0, 1]
        [scope]
        include = ["domain:example.org", "name:example.org"]
        follow_links = ["a", "ifram"]
        [admin]
        listen = "localhost:8070"
        [[output]]
        purpose = "ai-training"
        [recrawl]
        enabled = "yes"
        min_interval = "60d"
    "#;
    expect_file!["data/config/all-at-once.txt"].assert_eq(&faults(text));
}

#[test]
fn keys_that_do_not_go_together_are_named() {
    let text = r#"
        [admin]
        listen = "0.0.0.0:8070"
        [dns]
        min_ttl = "2d"
        [fetch]
        connect_timeout = "2m"
        total_timeout = "10m"
        [recrawl]
        class = [{ name = "slow", match = "domain:example.org", min_interval = "90d" }]
        [cluster]
        coordinator = "etcd"
        node = "one"
        [[politeness.allowance]]
        min_delay = "1s"
        [[politeness.allowance]]
        host = "example.org"
        [[politeness.allowance]]
        domain = "www.example.org"
        min_delay = "1s"
        [[politeness.allowance]]
        host = "example.com"
        min_delay = "1s"
        [[politeness.allowance]]
        host = "EXAMPLE.com"
        min_delay = "2s"
        [[extract]]
        match = "domain:example.org"
    "#;
    expect_file!["data/config/not-together.txt"].assert_eq(&faults(text));
}

#[test]
fn what_is_not_toml_is_named_with_line_and_column() {
    expect![[r#"
        mehman.toml:3:1: not TOML: duplicate key
        mehman.toml:4:7: not TOML: unclosed table, expected `]`
    "#]]
    .assert_eq(&faults("[fetch]\nworkers = 10\nworkers = 20\n[scope\nmode = \"any\"\n"));
    let missing = Config::load(Some(Path::new("no/such.toml")), std::iter::empty(), &[]);
    let missing = missing.unwrap_err().to_string();
    assert!(missing.contains("no/such.toml: failed to read"), "{missing}");
}

/// What may stand in a configuration by mistake.
const LINE: &str = "\\[?\\[?(fetch|output|scope|é)?\\]?(\\.|=| )?[ -~]{0,12}\r?";

proptest! {
    #[test]
    fn no_text_brings_the_reader_down(
        lines in proptest::collection::vec(LINE, 0..8),
        word in ".{0,20}",
    ) {
        let read = Config::from_toml(&lines.join("\n"), "test");
        prop_assert!(read.is_ok() || !read.unwrap_err().to_string().is_empty());
        let keys = keys();
        let variables = keys.iter().map(|key| (key.environment(), word.clone()));
        prop_assert!(Config::load(None, variables, &[]).is_err());
    }
}

#[test]
fn options_win_over_the_environment_and_that_over_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mehman.toml");
    let text = "[scope]\nmode = \"any\"\nmax_depth = 1\nmax_url_length = 100\nmax_pages = 7\n";
    std::fs::write(&path, text).unwrap();
    let environment = [
        ("MEHMAN__SCOPE__MODE", "seeds"),
        ("MEHMAN__SCOPE__MAX_DEPTH", "2"),
        ("MEHMAN__SCOPE__MAX_PAGES", "none"),
        ("MEHMAN__DNS__NAMESERVERS", "127.0.0.1:53, [::1]:53"),
        ("MEHMAN__SCOPE__INCLUDE", "[\"regex:a{1,2}\"]"),
        ("MEHMAN__OUTPUT", "[{ kind = \"parquet\" }]"),
        ("MEHMAN__RECRAWL__ENABLED", "false"),
        ("MEHMAN__POLITENESS__MIN_DELAY", "5s"),
        ("MEHMAN__POLITENESS__JITTER", "0.5"),
        ("MEHMAN__FETCH__MAX_BODY", "1000"),
        ("MEHMAN_LOG", "not ours"),
        ("PATH", "not ours"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = [("scope.mode".to_owned(), "domain".to_owned())];
    let config = Config::load(Some(&path), environment.into_iter(), &options).unwrap();
    assert_eq!(config.scope.mode, ScopeMode::Domain);
    assert_eq!(config.scope.max_depth, 2);
    assert_eq!(config.scope.max_url_length, 100);
    assert_eq!(config.scope.max_pages, None);
    assert_eq!(config.scope.include, ["regex:a{1,2}"]);
    assert_eq!(config.dns.nameservers.len(), 2);
    assert_eq!(config.output.len(), 1);
    assert_eq!(config.output[0].kind, OutputKind::Parquet);
    assert!(!config.recrawl.enabled);
    assert_eq!(config.politeness.min_delay, Duration::from_secs(5));
    assert_eq!(config.politeness.jitter.to_string(), "0.5");
    assert_eq!(config.fetch.max_body.bytes(), 1000);
}

#[test]
fn faults_name_the_variable_or_the_option_they_come_from() {
    let environment = [
        ("MEHMAN__FETCH__WORKRES", "10"),
        ("MEHMAN__FETCH__WORKERS", "many"),
        ("MEHMAN__ADMIN", "on"),
        ("MEHMAN__OUTPUT", "jsonl"),
        ("MEHMAN__DNS__NAMESERVERS", "127.0.0.1:53,localhost"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = [("scope.mode".to_owned(), "everything".to_owned())];
    let faults = Config::load(None, environment.into_iter(), &options).unwrap_err();
    expect_file!["data/config/origins.txt"].assert_eq(&faults.to_string());
}

#[test]
fn crawling_without_a_contact_is_refused_kindly() {
    let faults = Config::default().crawlable().unwrap_err();
    expect_file!["data/config/no-contact.txt"].assert_eq(&faults.to_string());
    let config = Config::from_toml("identity.contact_email = \"a@example.org\"", "test").unwrap();
    assert_eq!(config.crawlable(), Ok(()));
    let agent = config.identity.user_agent();
    assert_eq!(agent, format!("mehman/{} (+mailto:a@example.org)", env!("CARGO_PKG_VERSION")));
    assert_eq!(Identity::contact_key("https://example.org/bot"), "identity.contact_url");
    assert_eq!(Identity::contact_key("a@example.org"), "identity.contact_email");
}

#[test]
fn the_most_specific_allowance_wins_key_by_key() {
    let text = r#"
        [politeness]
        min_delay = "3s"
        [[politeness.allowance]]
        host = "https://www.example.org"
        min_delay = "30s"
        [[politeness.allowance]]
        domain = "example.org"
        min_delay = "10s"
        max_in_flight = 4
        host_daily_pages = 50
        [[politeness.allowance]]
        host = "www.example.org"
        min_delay = "20s"
        max_in_flight = 2
    "#;
    let politeness = Config::from_toml(text, "test").unwrap().politeness;
    let of = |host: &str| {
        let it = politeness.for_host(&HostKey::parse(host).unwrap());
        (it.min_delay.as_secs(), it.max_in_flight, it.host_daily_pages)
    };
    assert_eq!(of("https://www.example.org"), (30, 2, 50));
    assert_eq!(of("http://www.example.org"), (20, 2, 50));
    assert_eq!(of("https://www.example.org:8443"), (20, 2, 50));
    assert_eq!(of("https://other.example.org"), (10, 4, 50));
    assert_eq!(of("https://example.com"), (3, 1, 100_000));
}

#[test]
fn changes_are_live_or_ask_for_a_restart_as_the_interface_says() {
    let text = r#"
        identity.contact_url = "https://example.org/bot"
        data.flush_interval = "2s"
        admin.listen = "127.0.0.1:0"
        dns.min_ttl = "1s"
        fetch = { workers = 7, total_timeout = "90s", allow_networks = ["127.0.0.0/8"] }
        politeness.allowance = [{ domain = "example.org", min_delay = "10s" }]
        limits.daily_fetches = 5
        retry.max_attempts = 6
        robots.cache = "1h"
        scope.mode = "any"
        traps.max_path_segments = 5
        archive.format = "warc-zst"
        output = []
        parse.max_time = "1s"
        recrawl.enabled = false
        frontier.window = 65
        cluster.region = "home"
        extract = [{ match = "domain:example.org", fields = { title = "h1" } }]
    "#;
    let old = Config::default();
    let new = Config::from_toml(text, "test").unwrap();
    let line = |change: &ConfigChange| format!("{:?} {}\n", change.effect, change.key);
    let lines: String = old.changes(&new).iter().map(line).collect();
    expect![[r#"
        Live identity.contact_url
        Restart data.flush_interval
        Restart admin.listen
        Restart dns.min_ttl
        Restart fetch.workers
        Live fetch.total_timeout
        Restart fetch.allow_networks
        Live politeness.allowance
        Live limits.daily_fetches
        Live retry.max_attempts
        Live robots.cache
        Live scope.mode
        Live traps.max_path_segments
        Restart archive.format
        Restart parse.max_time
        Live recrawl.enabled
        Restart frontier.window
        Restart cluster.region
        Restart output
        Restart extract
    "#]]
    .assert_eq(&lines);
    let reloaded = old.reloaded(&new);
    assert!(old.changes(&reloaded).iter().all(|change| change.effect == Effect::Live));
    assert!(reloaded.changes(&new).iter().all(|change| change.effect == Effect::Restart));
    assert_eq!(new.changes(&new), []);
}

#[test]
fn every_key_has_a_variable_and_says_what_it_takes() {
    let keys = keys();
    let named = |path: &str| keys.iter().find(|key| key.path == path).unwrap();
    assert_eq!(named("politeness.min_delay").environment(), "MEHMAN__POLITENESS__MIN_DELAY");
    assert_eq!(named("fetch.workers").wanted, "a whole number, from 1 to 100000");
    assert_eq!(
        named("limits.daily_fetches").wanted,
        "a whole number, from 1 to 1000000000000, or \"none\""
    );
    assert!(named("politeness.allowance.host").listed);
    assert!(named("fetch.max_body").live);
    assert!(!named("fetch.workers").live);
}
