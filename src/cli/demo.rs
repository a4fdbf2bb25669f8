//! `demo`: the sandbox web on loopback and a crawl of it, with a few words about what is seen.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::arguments::{Common, DemoArgs};
use super::crawl::{Job, drive};
use super::failure::Exit;
use super::output::Output;
use super::report::{Ending, Report};
use super::sandbox;
use super::settings::{self, Overrides};
use super::text::{count, counted, shell_word};
use crate::config::Config;
use crate::protocol::discovery::Seed;
use crate::sandbox::Sandbox;
use crate::types::{Outcome, span};
use crate::world::{Clock, TokioClock};

/// Longer than any wait a page of the sandbox asks for, shorter than the wait for a robots.txt that
/// cannot be had.
const PATIENCE: Duration = Duration::from_secs(6);

/// Names tried for a new directory.
const DIRECTORIES_MAX: u32 = 100;

/// `demo`.
pub(super) async fn run(args: &DemoArgs, common: &Common, output: &Output) -> anyhow::Result<Exit> {
    let clock = Arc::new(TokioClock::system());
    let clock_of_web: Arc<dyn Clock> = Arc::<TokioClock>::clone(&clock);
    let web = Sandbox::start(sandbox::options(&args.shape), clock_of_web).await?;
    let data = match &common.data {
        Some(data) => data.clone(),
        None => temporary_directory(clock.as_ref())?,
    };
    let config = configure(&web, &Common { data: Some(data.clone()), ..common.clone() })?;
    output.note(&welcome(args, &config));
    let seeds = web.seeds().into_iter().map(|url| Seed { url, ..Seed::default() }).collect();
    let job = Job { config: Arc::new(config), seeds, listener: None, patience: PATIENCE };
    // The next sandbox stands at other ports, so its hosts are others.
    let report = Report { goes_on: false, ..Box::pin(drive(job, output)).await? };
    report.print(output)?;
    if !output.is_json() {
        output.line(&format!("\n{}", seen(&report, &web, args.shape.hosts)));
        if report.ended != Ending::Interrupted {
            output.line(&format!("\n{}", what_next(&data, &program())));
        }
    }
    web.shutdown().await;
    Ok(report.exit())
}

/// The configuration of a crawl of the sandbox: its name server, loopback allowed, and delays for
/// hosts that live on this machine. What a host asks for itself is obeyed all the same.
fn configure(web: &Sandbox, common: &Common) -> anyhow::Result<Config> {
    let mut overrides = Overrides::default();
    overrides.set("dns.nameservers", web.dns_address());
    overrides.set("fetch.allow_networks", "127.0.0.0/8");
    overrides.set("identity.contact_url", sandbox::contact(web));
    // The names of the sandbox are the only ones its name server knows.
    overrides.set("scope.mode", "any");
    overrides.set("politeness.min_delay", "100ms");
    overrides.set("politeness.per_address_min_delay", "10ms");
    // Failures are given up within the patience, so that dead letters can be seen too.
    overrides.set("retry.base", "1s");
    overrides.set("retry.factor", 2);
    overrides.set("retry.max_attempts", 3);
    overrides.set("recrawl.enabled", false);
    let config = settings::load_to_crawl(common.config.as_deref(), common, &overrides)?;
    config.crawlable()?;
    Ok(config)
}

/// A new directory that stays when the demo is over.
fn temporary_directory(clock: &TokioClock) -> anyhow::Result<String> {
    let stamp = clock.now().to_fourteen_digits();
    for number in 1..=DIRECTORIES_MAX {
        let path: PathBuf = std::env::temp_dir().join(format!("mehman-demo-{stamp}-{number}"));
        match fs::create_dir(&path) {
            Ok(()) => {
                let text = path.to_str().context("the temporary directory has no plain name")?;
                return Ok(text.to_owned());
            }
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why).with_context(|| format!("failed to make {path:?}")),
        }
    }
    anyhow::bail!("no free name for a temporary directory; give one with --data")
}

fn welcome(args: &DemoArgs, config: &Config) -> String {
    // From how many hosts on there is one of the kind.
    let kinds = [
        (1, "redirects, missing pages and a large one"),
        (2, "a host that closes a part of itself in robots.txt"),
        (3, "one that asks for two seconds between visits"),
        (4, "one that answers 503 for its robots.txt"),
        (5, "pages that fail"),
    ];
    let there = kinds.iter().filter(|(from, _)| *from <= args.shape.hosts);
    let there: Vec<String> = there.map(|(_, kind)| format!("· {kind}\n")).collect();
    format!(
        "A small web of {} with some {} each, on this machine, with a name server of its own;\n\
         nothing leaves it. It has\n{}{}Results go to {}\n",
        counted(args.shape.hosts.into(), "host"),
        counted(args.shape.pages.into(), "page"),
        there.concat(),
        differs(config),
        config.data.dir.display(),
    )
}

/// In what the demo is unlike a crawl of sites that belong to others.
fn differs(config: &Config) -> String {
    let (politeness, retry) = (config.politeness.for_everyone(), &config.retry);
    format!(
        "It is this machine's own, so a host is asked every {} (politeness.min_delay, else {}) and \
         an\naddress every {}, a failure is tried again after {}, {} times in all, and links are \
         followed\nto any host (scope.mode {}). What a host asks for is obeyed all the same.\n",
        span(politeness.min_delay),
        span(Config::default().politeness.for_everyone().min_delay),
        span(politeness.per_address_min_delay),
        span(retry.base),
        retry.max_attempts,
        config.scope.mode.as_str(),
    )
}

/// What a newcomer has just seen.
fn seen(report: &Report, web: &Sandbox, hosts: u16) -> String {
    let status = &report.status;
    let outcome = |outcome| status.outcomes.get(&outcome).copied().unwrap_or(0);
    let mut lines = vec!["What you have seen".to_owned()];
    let requests = count(web.visit_count());
    lines.push(format!("· The hosts counted {requests} requests, robots.txt first on each."));
    let others = status.hosts.known.saturating_sub(hosts.into());
    if others > 0 {
        let others = counted(others, "more host");
        lines
            .push(format!("· {others} were named by links: names and ports where nobody answers."));
    }
    if status.urls.sleeping > 0 {
        let urls = counted(status.urls.sleeping, "URL");
        lines.push(format!("· {urls} stay unvisited because a robots.txt refuses them."));
    }
    let (gone, redirects) = (outcome(Outcome::ClientError), outcome(Outcome::Redirect));
    if gone + redirects > 0 {
        let redirects = counted(redirects, "redirect");
        lines
            .push(format!("· {redirects} were followed, {} answers were 404 or 410.", count(gone)));
    }
    let busy = outcome(Outcome::RateLimited);
    if busy > 0 {
        let times = counted(busy, "time");
        lines.push(format!(
            "· Hosts said 429 or 503 {times}, and were left alone: as long as they asked, where \
             they did, else for longer each time."
        ));
    }
    if status.urls.dead > 0 {
        let urls = counted(status.urls.dead, "URL");
        lines.push(format!("· {urls} failed three times and became dead letters."));
    }
    lines.join("\n")
}

fn what_next(data: &str, program: &str) -> String {
    let pages = first_pages(&Path::new(data).join("pages"));
    let (data, program) = (shell_word(data), shell_word(program));
    let mut commands = vec![(format!("ls {data}/archive"), "every response as it came, WARC 1.1")];
    commands.extend(pages.map(|file| {
        let file = shell_word(&file);
        (format!("head -n 1 {file} | cut -c 1-300"), "a page: text, title, links")
    }));
    let contact = "--contact you@example.org --max-pages 100";
    commands.extend([
        (format!("{program} hosts --data {data}"), "every host and what it waits for"),
        (format!("{program} dead list --data {data}"), "what was given up, and why"),
        (
            format!("{program} crawl https://example.org/ {contact}"),
            "a real crawl; the contact is for the owners of sites",
        ),
    ]);
    let lines: Vec<String> =
        commands.iter().map(|(command, about)| format!("  {command}\n      {about}")).collect();
    format!("What next\n{}", lines.join("\n"))
}

/// The first file of page records, if there is one.
fn first_pages(directory: &Path) -> Option<String> {
    let entries = fs::read_dir(directory).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let files = entries.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    files.min()?.to_str().map(str::to_owned)
}

/// The program as it was called, so that what is shown can be called too.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "mehman".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::SandboxShape;

    #[tokio::test]
    async fn a_demo_may_crawl_its_sandbox_and_nothing_else_on_loopback() {
        let shape = SandboxShape { hosts: 2, pages: 3, seed: 1 };
        let clock = Arc::new(TokioClock::system());
        let web = Sandbox::start(sandbox::options(&shape), clock).await.unwrap();
        let common = Common { data: Some("demo".into()), ..Common::default() };
        let config = configure(&web, &common).unwrap();
        assert_eq!(config.dns.nameservers, [web.dns_address()]);
        assert_eq!(config.identity.contact_url, Some(sandbox::contact(&web)));
        assert!(config.fetch.allow_networks[0].contains("127.0.10.1".parse().unwrap()));
        assert!(!config.fetch.allow_networks[0].contains("10.0.0.1".parse().unwrap()));
        let told = welcome(&DemoArgs { shape }, &config);
        for setting in ["every 100 ms (politeness.min_delay, else 1 s)", "scope.mode any"] {
            assert!(told.contains(setting), "{told}");
        }
        web.shutdown().await;
    }

    #[test]
    fn what_comes_next_can_be_typed_as_it_stands() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().to_str().unwrap();
        assert!(!what_next(data, "target/debug/mehman").contains("head"));
        fs::create_dir(root.path().join("pages")).unwrap();
        fs::write(root.path().join("pages/0-1.jsonl"), "{}\n").unwrap();
        let next = what_next(data, "target/debug/mehman");
        assert!(next.contains(&format!("head -n 1 {data}/pages/0-1.jsonl | cut -c 1-300")));
        assert!(next.contains("  target/debug/mehman hosts --data "), "{next}");
    }

    #[test]
    fn a_temporary_directory_is_new_each_time() {
        let clock = TokioClock::system();
        let (one, two) =
            (temporary_directory(&clock).unwrap(), temporary_directory(&clock).unwrap());
        assert_ne!(one, two);
        fs::remove_dir(one).unwrap();
        fs::remove_dir(two).unwrap();
    }
}
