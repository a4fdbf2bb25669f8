//! Lines that are taken, and lines that are not.

use clap::CommandFactory as _;

use super::*;

fn parsed(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once("mehman").chain(line.split_whitespace()))
}

#[test]
fn the_definition_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn command_lines_that_are_right_are_taken() {
    for line in [
        "crawl",
        "crawl https://a.test/ https://b.test/ --contact me@a.test --scope domain",
        "crawl --seeds - --max-pages 5 --max-depth 0 --patience 2m --admin-listen 127.0.0.1:0",
        "--config x.toml --data d --json -q crawl https://a.test/",
        "crawl https://a.test/ -vv --data d",
        "serve --config x.toml",
        "demo --hosts 3 --pages 4 --seed 5",
        "sandbox --port 8080 --close",
        "sandbox --tls --ca-file ca.pem",
        "simulate --seed 7 --hours 3 --hosts 40 --faults crash,lost,panic --json",
        "simulate --seeds 10..20",
        "seed https://a.test/",
        "seed --file -",
        "status --admin 127.0.0.1:9000 --json",
        "hosts --state parked --domain a.test --limit 5",
        "hosts --all",
        "host https://a.test --data d",
        "urls https://a.test/x?y=z",
        "why https://a.test/x?y=z --json",
        "pause",
        "resume a.test",
        "exclude host:a.test --reason they-asked --until 2030-01-01T00:00:00Z --json",
        "exclude --list",
        "exclude --lift 0123456789abcdef --admin 127.0.0.1:9000",
        "dead list --limit 3",
        "dead retry --all",
        "dead retry https://a.test/1 https://a.test/2",
        "config check some.toml",
        "config show --json",
        "completions zsh",
    ] {
        parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn command_lines_that_are_wrong_are_refused() {
    for (line, said) in [
        ("", "Usage"),
        ("crawls", "crawl"),
        ("crawl --scope world", "possible values: host, domain, seeds, any"),
        ("crawl --max-pages 0", "1.."),
        ("crawl --patience 60", "needs a unit"),
        ("sandbox --ca-file ca.pem", "--tls"),
        ("crawl --admin-listen here", "invalid socket address"),
        ("crawl -q -v", "cannot be used with"),
        ("simulate --faults flood", "possible values: lost, "),
        ("simulate --seeds 9..9", "B is not above A"),
        ("seed", "<URL>"),
        ("hosts --state asleep", "possible values"),
        ("hosts --all --limit 3", "cannot be used with"),
        ("host", "<KEY>"),
        ("dead retry", "required"),
        ("dead retry --all https://a.test/", "cannot be used with"),
        ("status --admin ftp://a.test", "`ftp` is not http or https"),
        ("exclude", "required"),
        ("exclude host:a.test --list", "cannot be used with"),
        ("exclude --list --reason x", "cannot be used with"),
    ] {
        let error = parsed(line).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(said), "{line}: {text}");
        assert!(error.use_stderr() && error.exit_code() == 2, "{line}");
    }
}

#[test]
fn values_arrive_as_they_were_meant() {
    let Command::Crawl(crawl) = parsed("crawl --patience 1m30s").unwrap().command else {
        panic!("another command");
    };
    assert_eq!(crawl.patience, Some(Duration::from_secs(90)));
    assert_eq!(admin_url("127.0.0.1:9000").unwrap().as_str(), "http://127.0.0.1:9000/");
}
