//! How far long work is: a line that is drawn again and again on a terminal, else a line now and
//! then, nothing with `-q`.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::output::Output;
use super::text::{count, counted, size};
use crate::admin::Status;
use crate::types::{Outcome, Timestamp};

/// How often a line is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(500);

/// How often a line is written where nothing can be drawn.
const WRITTEN_EVERY: Duration = Duration::from_secs(10);

/// How often the spinner moves.
const SPIN: Duration = Duration::from_millis(120);

/// Progress through a file.
pub(super) struct Bar(Option<ProgressBar>);

impl Bar {
    /// Of so many bytes; of unknown length for a stream.
    pub(super) fn of_bytes(length: Option<u64>, output: &Output) -> Self {
        if !(output.shows_progress() && output.is_terminal()) {
            return Self(None);
        }
        Self(Some(match length {
            Some(length) => {
                ProgressBar::new(length).with_style(style("{bar:30} {percent}% {msg}, {eta} left"))
            }
            None => ProgressBar::new_spinner().with_style(style("{spinner} {msg}")),
        }))
    }

    /// Draws how far it is.
    pub(super) fn show(&self, bytes: u64, told: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(told.to_owned());
            bar.set_position(bytes);
        }
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Progress of a crawl.
pub(super) struct CrawlProgress<'a> {
    output: &'a Output,
    way: Way,
    due: Timestamp,
}

enum Way {
    Drawn(ProgressBar),
    Written,
    Silent,
}

impl<'a> CrawlProgress<'a> {
    /// Shown from `now` on.
    pub(super) fn new(output: &'a Output, now: Timestamp) -> Self {
        let way = if !output.shows_progress() {
            Way::Silent
        } else if output.is_terminal() {
            let bar = ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg}"));
            bar.enable_steady_tick(SPIN);
            Way::Drawn(bar)
        } else {
            Way::Written
        };
        // Work that is done before the first line is due needs none where lines stay.
        let due = if matches!(way, Way::Written) { now + WRITTEN_EVERY } else { now };
        Self { output, way, due }
    }

    /// Whether it is time to ask for figures.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        !matches!(self.way, Way::Silent) && now >= self.due
    }

    /// Shows them.
    pub(super) fn show(&mut self, status: &Status, now: Timestamp) {
        let told = told(status);
        match &self.way {
            Way::Drawn(bar) => {
                bar.set_message(told);
                self.due = now + DRAWN_EVERY;
            }
            Way::Written => {
                self.output.note(&told);
                self.due = now + WRITTEN_EVERY;
            }
            Way::Silent => {}
        }
    }

    /// Says something above the line.
    pub(super) fn note(&self, text: &str) {
        match &self.way {
            Way::Drawn(bar) => bar.suspend(|| self.output.note(text)),
            Way::Written | Way::Silent => self.output.note(text),
        }
    }
}

impl Drop for CrawlProgress<'_> {
    fn drop(&mut self) {
        if let Way::Drawn(bar) = &self.way {
            bar.finish_and_clear();
        }
    }
}

/// One line of figures.
pub(super) fn told(status: &Status) -> String {
    let mut parts: Vec<Cow<'_, str>> = vec![
        counted(status.pages, "page").into(),
        format!("{:.1}/s", status.pages_per_second).into(),
        counted(status.hosts.known, "host").into(),
        format!("{} queued", count(status.urls.queued)).into(),
        size(status.bytes).into(),
    ];
    let failures = status.outcomes.iter().filter(|(outcome, _)| is_failure(**outcome));
    let failures: Vec<String> = failures
        .filter(|(_, number)| **number > 0)
        .map(|(outcome, number)| format!("{outcome} {}", count(*number)))
        .collect();
    if !failures.is_empty() {
        parts.push(failures.join(", ").into());
    }
    parts.join(" · ")
}

/// Whether an outcome is shown among the errors.
fn is_failure(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Ok | Outcome::NotModified | Outcome::Redirect | Outcome::Truncated => false,
        Outcome::ClientError
        | Outcome::ServerError
        | Outcome::RobotsRefused
        | Outcome::RateLimited
        | Outcome::Timeout
        | Outcome::Dns
        | Outcome::Connect
        | Outcome::Tls
        | Outcome::Protocol
        | Outcome::TooLarge
        | Outcome::UnwantedType
        | Outcome::Decode
        | Outcome::EgressRefused
        | Outcome::Cancelled => true,
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates of this file are templates")
}
