//! What a crawl leaves behind, said at its end.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::failure::Exit;
use super::output::Output;
use super::sheets;
use super::text::{Table, count, counted, size, without_times};
use crate::admin::Status;
use crate::config::{Config, Output as Configured, OutputKind};
use crate::protocol::shard::ParkedHost;
use crate::types::{Timestamp, span, tally};

/// Hosts that still wait, shown one by one.
const WAITING_MAX: usize = 20;

/// Why a crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing is left.
    Done,
    /// What is left waits longer than the patience.
    Waiting,
    /// `scope.max_pages` is reached.
    PageCap,
    /// Somebody stopped it.
    Interrupted,
}

impl Ending {
    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Waiting => "waiting",
            Self::PageCap => "max_pages",
            Self::Interrupted => "interrupted",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Waiting => "the rest waits",
            Self::PageCap => "stopped at the most pages",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A crawl that ended.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// Why.
    pub(super) ended: Ending,
    /// Figures: pages, bytes and outcomes of this run, URLs and hosts of the whole crawl.
    pub(super) status: Status,
    /// Hosts that still wait.
    pub(super) waiting: Vec<ParkedHost>,
    /// How long hosts were waited for.
    pub(super) patience: Duration,
    /// Whether the same command goes on where this one ended.
    pub(super) goes_on: bool,
    /// From the start to the end.
    pub(super) took: Duration,
    /// When it was looked at what waits.
    pub(super) at: Timestamp,
    /// Where what lies.
    pub(super) places: Vec<(&'static str, String)>,
}

impl Report {
    /// The exit status that fits.
    pub(super) fn exit(&self) -> Exit {
        match self.ended {
            Ending::Done | Ending::Waiting | Ending::PageCap => Exit::Done,
            Ending::Interrupted => Exit::Interrupted,
        }
    }

    /// Prints it.
    pub(super) fn print(&self, output: &Output) -> anyhow::Result<()> {
        if output.is_json() {
            output.json(&self.to_json())
        } else {
            output.line(&self.to_text());
            Ok(())
        }
    }

    /// Pages a second over the whole run.
    fn rate(&self) -> f64 {
        let pages = u32::try_from(self.status.pages).unwrap_or(u32::MAX);
        let seconds = self.took.as_secs_f64();
        if seconds > 0.0 { f64::from(pages) / seconds } else { 0.0 }
    }

    fn to_json(&self) -> Value {
        let places: serde_json::Map<String, Value> =
            self.places.iter().map(|(name, place)| ((*name).to_owned(), json!(place))).collect();
        json!({
            "ended": self.ended.as_str(),
            "pages": self.status.pages,
            "outcomes": self.status.outcomes,
            "hosts": self.status.hosts,
            "urls": self.status.urls,
            "bytes": self.status.bytes,
            "outputs": self.status.outputs,
            "patience_seconds": self.patience.as_secs_f64(),
            "duration_seconds": self.took.as_secs_f64(),
            "pages_per_second": self.rate(),
            "waiting": self.waiting,
            "places": places,
        })
    }

    /// The first thing to know where no page came and a host is why.
    fn nothing_came(&self) -> Option<String> {
        let first = self.waiting.first().filter(|_| self.status.pages == 0)?;
        let others = match self.waiting.len() {
            1 => String::new(),
            number => format!(" (and {} more)", counted(u64::from(tally(number - 1)), "host")),
        };
        let reason = without_times(&first.reason);
        Some(format!("no page came: {} waits{others}: {reason}\n", first.host_key))
    }

    /// What is left, and how to go on with it.
    fn left(&self) -> Option<String> {
        let left = match self.ended {
            Ending::Done => return None,
            Ending::Waiting => self.waits(),
            Ending::PageCap => {
                let left = self.urls_left();
                format!("{left}; a larger --max-pages (or `scope.max_pages`) goes on")
            }
            Ending::Interrupted => self.urls_left(),
        };
        let again = self.goes_on && self.ended != Ending::PageCap && !self.needs_operator();
        Some(if again { format!("{left}; run the same command again to go on") } else { left })
    }

    /// URLs that are not done and that nothing refuses.
    fn urls_left(&self) -> String {
        let urls = &self.status.urls;
        let parts =
            [(urls.queued, "queued"), (urls.pages_in_flight, "cut"), (urls.deferred, "due later")];
        let left = counted(parts.iter().map(|(number, _)| number).sum(), "URL");
        let parts: Vec<String> = parts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{} {what}", count(*number)))
            .collect();
        match parts.len() {
            0 | 1 => format!("{left} left"),
            _ => format!("{left} left ({})", parts.join(", ")),
        }
    }

    /// All that waits, waits for somebody: to run again would find the same.
    fn needs_operator(&self) -> bool {
        let waits = self.ended == Ending::Waiting && !self.waiting.is_empty();
        waits && self.waiting.iter().all(|host| host.needs_operator)
    }

    /// Whom the crawl does not wait for.
    fn waits(&self) -> String {
        let hosts = self.status.hosts.waiting + self.status.hosts.parked;
        let hosts = hosts.max(u64::from(tally(self.waiting.len())));
        let patience = span(self.patience);
        match (hosts, self.status.urls.deferred) {
            (0, urls) => {
                let verb = if urls == 1 { "falls" } else { "fall" };
                format!("{} {verb} due later than in {patience}", counted(urls, "URL"))
            }
            (hosts, _) => {
                let verb = if hosts == 1 { "waits" } else { "wait" };
                let hosts = counted(hosts, "host");
                if self.needs_operator() {
                    return format!("{hosts} {verb} until somebody acts on the reason, below");
                }
                format!("{hosts} {verb} longer than {patience}, listed below")
            }
        }
    }

    fn to_text(&self) -> String {
        let status = &self.status;
        let pages = counted(status.pages, "page");
        let (took, rate, bytes) = (span(self.took), self.rate(), size(status.bytes));
        let ended = self.ended.words();
        let mut text = self.nothing_came().unwrap_or_default();
        writeln!(text, "{pages} in {took}, {rate:.1} a second, {bytes} ({ended})\n")
            .expect("writing to a String cannot fail");
        if let Some(left) = self.left() {
            writeln!(text, "{left}\n").expect("writing to a String cannot fail");
        }
        let mut table = Table::of_pairs();
        table.pair("this run", sheets::outcomes(&status.outcomes));
        table.pair("hosts", sheets::hosts_line(status));
        table.pair("urls", sheets::urls_line(status));
        for line in sheets::left_out(status) {
            table.pair("outputs", line);
        }
        for (name, place) in &self.places {
            table.pair(name, place.as_str());
        }
        text.push_str(&table.render());
        if !self.waiting.is_empty() {
            let shown = self.waiting.get(..WAITING_MAX).unwrap_or(&self.waiting);
            write!(text, "\n\n{}", sheets::waiting(shown, self.at))
                .expect("writing to a String cannot fail");
            let hidden = self.waiting.len() - shown.len();
            if hidden > 0 {
                write!(text, "\nand {hidden} more; `mehman hosts --state parked --data DIR`")
                    .expect("writing to a String cannot fail");
            }
        }
        text
    }
}

/// Where the results of a configuration lie.
pub(super) fn places(config: &Config) -> Vec<(&'static str, String)> {
    let inside = |part: &str| config.data.dir.join(part).display().to_string();
    let archive = config.archive.url.clone().unwrap_or_else(|| inside("archive"));
    let mut places = vec![("data", config.data.dir.display().to_string()), ("archive", archive)];
    places.push(("index", inside("index")));
    for output in &config.output {
        let Configured { kind, url, .. } = output;
        let (name, part) = match kind {
            OutputKind::Jsonl | OutputKind::Parquet => ("pages", "pages"),
            OutputKind::Links => ("links", "links"),
            OutputKind::Wet => ("text", "archive"),
        };
        let place = (name, url.clone().unwrap_or_else(|| inside(part)));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::admin::{HostFigures, RunState, UrlFigures};
    use crate::cli::output::{Form, capture};
    use crate::telemetry::OutputFigures;
    use crate::types::{HostKey, Outcome};

    fn report() -> Report {
        let status = Status {
            state: RunState::Running,
            reasons: Vec::new(),
            started_at: Timestamp::from_secs(0),
            version: "0.1.0".into(),
            pages: 120,
            pages_per_second: 0.0,
            bytes: 2_621_440,
            urls: UrlFigures { known: 130, sleeping: 4, dead: 1, ..UrlFigures::default() },
            hosts: HostFigures { known: 3, parked: 1, ..HostFigures::default() },
            outcomes: BTreeMap::from([(Outcome::Ok, 110), (Outcome::ClientError, 10)]),
            lag_seconds: 0.0,
            outputs: vec![OutputFigures {
                name: "pages".into(),
                purpose: "ai-train".into(),
                documents: 90,
                left_out: BTreeMap::from([("noai".into(), 12), ("content-usage".into(), 8)]),
            }],
            queues: BTreeMap::new(),
            next_wake: None,
            parked: Vec::new(),
        };
        let parked = ParkedHost {
            host_key: HostKey::parse("http://a.test").unwrap(),
            reason: "robots.txt unreachable".into(),
            until: Some(Timestamp::from_secs(100)),
            queued: 2,
            needs_operator: false,
        };
        Report {
            ended: Ending::Waiting,
            status,
            waiting: vec![parked],
            patience: Duration::from_secs(60),
            goes_on: true,
            took: Duration::from_secs(40),
            at: Timestamp::from_secs(40),
            places: places(&Config::default()),
        }
    }

    #[test]
    fn the_summary_says_what_was_done_and_where_it_lies() {
        let (output, results, _) = capture::output(Form::Text);
        report().print(&output).unwrap();
        expect_test::expect![[r#"
            120 pages in 40 s, 3.0 a second, 2.5 MiB (the rest waits)

            1 host waits longer than 1 min, listed below; run the same command again to go on

            this run  120 requests, robots.txt included: ok 110 · client_error 10
            hosts     3 known: 1 parked, 2 with nothing to do
            urls      130 known: 4 refused by robots.txt or an exclusion, 1 dead, 125 done
            outputs   20 pages left out of pages for ai-train: content-usage 8 · noai 12
            data      data
            archive   data/archive
            index     data/index
            pages     data/pages

            WAITING HOST   QUEUED  UNTIL     REASON
            http://a.test       2  in 1 min  robots.txt unreachable
        "#]]
        .assert_eq(&results.text());
    }

    #[test]
    fn the_summary_for_programs_is_one_object() {
        let (output, results, _) = capture::output(Form::Json);
        report().print(&output).unwrap();
        let told: Value = serde_json::from_str(&results.text()).unwrap();
        assert_eq!((&told["ended"], &told["pages"]), (&json!("waiting"), &json!(120)));
        assert_eq!(told["outcomes"], json!({ "ok": 110, "client_error": 10 }));
        assert_eq!(told["urls"]["known"], 130);
        assert_eq!(told["outputs"][0]["left_out"], json!({ "content-usage": 8, "noai": 12 }));
        assert_eq!(told["waiting"][0]["until"], "1970-01-01T00:01:40.000Z");
        assert_eq!(told["places"]["archive"], "data/archive");
        assert_eq!(report().exit(), Exit::Done);
        let done = Report { ended: Ending::Done, waiting: Vec::new(), ..report() };
        assert_eq!((done.exit(), &done.to_json()["ended"]), (Exit::Done, &json!("done")));
        assert!(done.to_text().starts_with("120 pages in 40 s, 3.0 a second, 2.5 MiB (done)"));
        let stopped = Report { ended: Ending::Interrupted, ..report() };
        assert_eq!(stopped.exit(), Exit::Interrupted);
    }

    #[test]
    fn how_to_go_on_is_said_where_one_can() {
        let mut queued = report();
        queued.status.urls.queued = 7;
        for (ended, goes_on, said) in [
            (Ending::Done, true, None),
            (Ending::Interrupted, true, Some("7 URLs left; run the same command again to go on")),
            (Ending::Interrupted, false, Some("7 URLs left")),
            (
                Ending::PageCap,
                true,
                Some("7 URLs left; a larger --max-pages (or `scope.max_pages`) goes on"),
            ),
            (Ending::Waiting, false, Some("1 host waits longer than 1 min, listed below")),
        ] {
            let report = Report { ended, goes_on, ..queued.clone() };
            assert_eq!(report.left().as_deref(), said, "{ended:?} {goes_on}");
        }
        queued.status.urls = UrlFigures { queued: 7, deferred: 2, ..queued.status.urls };
        let cut = Report { ended: Ending::Interrupted, goes_on: false, ..queued.clone() };
        assert_eq!(cut.left().as_deref(), Some("9 URLs left (7 queued, 2 due later)"));
    }

    #[test]
    fn to_run_again_is_said_where_it_can_help() {
        let told = "1 host waits until somebody acts on the reason, below";
        let mut report = report();
        report.waiting[0].needs_operator = true;
        assert_eq!(report.left().as_deref(), Some(told));
        let other = ParkedHost { needs_operator: false, ..report.waiting[0].clone() };
        report.waiting.push(other);
        let again = "2 hosts wait longer than 1 min, listed below; run the same command again to \
                     go on";
        assert_eq!(report.left().as_deref(), Some(again));
    }

    #[test]
    fn where_no_page_came_the_reason_comes_first() {
        let mut nothing = report();
        nothing.status.pages = 0;
        let text = nothing.to_text();
        let first = "no page came: http://a.test waits: robots.txt unreachable\n0 pages in 40 s";
        assert!(text.starts_with(first), "{text}");
    }
}
