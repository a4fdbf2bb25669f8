//! U1, U5: the real binary: exit statuses, and what it says where nothing can be started.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the binary in a directory, with nothing of ours in its environment.
fn mehman(directory: &Path, arguments: &[&str]) -> Output {
    let ours = std::env::vars_os().map(|(name, _)| name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mehman"));
    for name in ours.filter(|name| name.to_string_lossy().starts_with("MEHMAN_")) {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).output().unwrap()
}

fn check(arguments: &[&str], status: i32, said: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad.toml"), BAD).unwrap();
    std::fs::write(directory.path().join("good.toml"), GOOD).unwrap();
    std::fs::write(directory.path().join("seeds.txt"), SEEDS).unwrap();
    let before = entries(directory.path());
    let ended = mehman(directory.path(), arguments);
    let (out, err) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(ended.status.code(), Some(status), "{arguments:?}\n{out}\n{err}");
    for part in said {
        assert!(out.contains(part) || err.contains(part), "{part} not in\n{out}\n{err}");
    }
    if status == 2 {
        assert!(out.is_empty() || arguments.contains(&"--json"), "{out}");
        assert_eq!(entries(directory.path()), before, "{arguments:?} left something behind");
    }
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const BAD: &str = "[politeness]
min_dely = \"1s\"
[fetch]
workers = \"many\"
extra_ca_files = [\"none.pem\"]
[scope]
include = [\"regex:(\", \"file:none.txt\", \"glob:*\", \"example.org\"]
[data]
store = \"s3://bucket/crawl\"
[[output]]
kind = \"parquet\"
[[extract]]
match = \"domain:a.test\"
fields = { price = \"p[\" }
";
const GOOD: &str =
    "[identity]\ncontact_email = \"crawler@example.org\"\n[admin]\ntoken = \"geheim\"\n";
const SEEDS: &str = "https://a.test/\n# a comment\nexample.org\nftp://b.test/\n";

#[test]
fn no_contact_no_crawl() {
    check(&["crawl", "https://a.test/"], 2, &["--contact", "the owners of sites"]);
    check(&["serve"], 2, &["--contact"]);
}

#[test]
fn every_fault_of_a_configuration_is_named_at_once() {
    let said = [
        "bad.toml:2:1: politeness.min_dely",
        "min_delay",
        "bad.toml:4:1: fetch.workers",
        "bad.toml:7:12: scope.include[0] = \"regex:(\": `(` is not a regular expression: unclosed \
         group, at its character 1\n",
        "bad.toml:7:23: scope.include[1]: failed to read none.txt: ",
        "bad.toml:7:40: scope.include[2] = \"glob:*\": not allowed",
        "bad.toml:7:50: scope.include[3] = \"example.org\": not allowed",
        "bad.toml:9:1: data.store = \"s3://bucket/crawl\": ",
        "bad.toml:11:1: output[0].kind = \"parquet\": ",
        "bad.toml:12:1: extract[0]: ",
        "bad.toml:5:19: fetch.extra_ca_files[0] = \"none.pem\": ",
    ];
    check(&["crawl", "https://a.test/", "--config", "bad.toml"], 2, &said);
    check(&["config", "check", "bad.toml"], 2, &said);
    check(&["config", "check", "--config", "bad.toml"], 2, &said);
    check(&["config", "check", "bad.toml", "--json"], 2, &["\"ok\":false", "\"line\":4"]);
    check(&["config", "check", "none.toml"], 2, &["none.toml", "failed to read"]);
}

#[test]
fn bad_seeds_are_refused_before_anything_starts() {
    let contact = ["--contact", "https://example.org/bot"];
    let said = [
        "3 seeds cannot be crawled",
        "argument 2: `nonsense`: not a URL",
        "seeds.txt, line 3: `example.org`",
        "try https://example.org/",
        "seeds.txt, line 4: `ftp://b.test/`: the scheme `ftp` is not http or https",
    ];
    let line = ["crawl", "https://a.test/", "nonsense", "--seeds", "seeds.txt"];
    check(&[&line[..], &contact[..]].concat(), 2, &said);
    check(&[&["crawl"], &contact[..]].concat(), 2, &["there is nothing to crawl"]);
}

#[test]
fn wrong_use_is_told_from_failure() {
    check(&[], 2, &["Usage"]);
    check(&["crawl", "--scope", "world"], 2, &["host, domain, seeds, any"]);
    check(&["crawl", "--max-pages", "x"], 2, &["invalid value"]);
    check(&["recrawl"], 2, &["unrecognized subcommand"]);
    check(&["sandbox", "--data", "x"], 2, &["`sandbox` has no use for --data"]);
    check(&["hosts", "--data", "nowhere"], 2, &["nowhere is not a data directory"]);
    check(&["seed", "--file", "none.txt", "--admin", "127.0.0.1:1"], 2, &["none.txt", "because"]);
    let crawl = ["crawl", "--seeds", "none.txt", "--contact", "a@example.org"];
    check(&crawl, 2, &["failed to open none.txt", "because"]);
    check(&["--config", "x", "completions", "bash"], 2, &["`completions` has no use for --config"]);
    check(&["status", "--admin", "http://127.0.0.1:1"], 1, &["no daemon answers", "mehman serve"]);
}

/// With `--json` a failure is one object on standard error, whatever kind it is of.
#[test]
fn failures_are_objects_for_programs() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad.toml"), BAD).unwrap();
    for (line, status, said) in [
        (&["status", "--admin", "http://127.0.0.1:1", "--json"][..], 1, "no daemon answers at"),
        (&["hosts", "--data", "none", "--json"], 2, "none is not a data directory"),
        (&["crawl", "--scope", "world", "--json"], 2, "invalid value"),
        (&["crawl", "https://a.test/", "--json", "--config", "bad.toml"], 2, "10 faults"),
        (&["--json", "--data", "x", "sandbox"], 2, "no use for --data"),
    ] {
        let ended = mehman(directory.path(), line);
        assert_eq!(ended.status.code(), Some(status), "{line:?}");
        assert!(ended.stdout.is_empty(), "{line:?}");
        let told: serde_json::Value = serde_json::from_slice(&ended.stderr)
            .unwrap_or_else(|why| panic!("{line:?}: {why}: {:?}", ended.stderr));
        assert!(told["error"].as_str().unwrap().contains(said), "{line:?}: {told}");
        assert_eq!(told["exit_status"], status, "{line:?}: {told}");
        let faults = told["faults"].as_array().map(Vec::len);
        assert_eq!(faults, said.starts_with("10").then_some(10), "{line:?}: {told}");
    }
}

/// What a command refuses, its help does not list.
#[test]
fn help_lists_what_a_command_takes() {
    let directory = tempfile::tempdir().unwrap();
    for (command, takes) in [
        ("sandbox", false),
        ("simulate", false),
        ("completions", false),
        ("demo", true),
        ("crawl", true),
        ("hosts", true),
    ] {
        let help = mehman(directory.path(), &[command, "--help"]);
        let text = String::from_utf8(help.stdout).unwrap();
        for option in ["--config", "--data"] {
            assert_eq!(text.contains(option), takes, "{command} {option}: {text}");
        }
        assert!(text.contains("--json"), "{command}: {text}");
    }
}

#[test]
fn a_configuration_that_no_crawl_takes_is_shown_with_a_word_on_that() {
    let directory = tempfile::tempdir().unwrap();
    let file = "[[output]]\nkind = \"parquet\"\n";
    std::fs::write(directory.path().join("odd.toml"), file).unwrap();
    let shown = mehman(directory.path(), &["config", "show", "--config", "odd.toml"]);
    let (text, notes) = (String::from_utf8(shown.stdout), String::from_utf8(shown.stderr));
    assert!(text.unwrap().starts_with("# Made from the defaults, the file odd.toml.\n"));
    let notes = notes.unwrap();
    assert!(
        notes.contains("`crawl` and `serve` refuse it: odd.toml:2:1: output[0].kind"),
        "{notes}"
    );
    assert_eq!(shown.status.code(), Some(0));
    let plain = mehman(directory.path(), &["config", "show"]);
    assert!(plain.stdout.starts_with(b"# Made from the defaults.\n") && plain.stderr.is_empty());
}

#[test]
fn the_effective_configuration_is_shown_without_its_secrets() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("good.toml"), GOOD).unwrap();
    let show = ["config", "show", "--config", "good.toml", "--data", "elsewhere"];
    let shown = mehman(directory.path(), &show);
    let text = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(0));
    assert!(text.contains("contact_email = \"crawler@example.org\""), "{text}");
    assert!(text.contains("dir = \"elsewhere\"") && !text.contains("geheim"), "{text}");
    let json = mehman(directory.path(), &[&show[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["data"]["dir"], "elsewhere");
    check(&["config", "check", "good.toml"], 0, &["ok"]);
}

#[test]
fn help_version_and_completions_go_to_standard_output() {
    for (arguments, said) in [
        (&["--version"][..], "mehman "),
        (&["--help"], "A polite web crawler"),
        (&["crawl", "--help"], "--patience <DUR>"),
        (&["completions", "bash"], "_mehman()"),
        (&["completions", "zsh"], "#compdef mehman"),
        (&["completions", "fish"], "complete -c mehman"),
    ] {
        let ended = mehman(Path::new("."), arguments);
        let text = String::from_utf8(ended.stdout).unwrap();
        assert!(text.contains(said), "{arguments:?}: {text}");
        assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn the_sandbox_ends_when_it_is_told_to() {
    use std::io::{BufRead as _, BufReader};

    let mut command = Command::new(env!("CARGO_BIN_EXE_mehman"));
    command.args(["sandbox", "--hosts", "3", "--json"]).stdout(Stdio::piped());
    for (signal, status) in [("-INT", 130), ("-TERM", 0)] {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(told["command"].as_str().unwrap().contains("MEHMAN__DNS__NAMESERVERS="));
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal}");
    }
}
