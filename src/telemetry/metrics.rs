//! Every metric that lives outside an actor's state, and the text Prometheus reads.
//!
//! Most figures are the sum of what the actors say when asked; here are only those that nobody's
//! state holds. A metric is declared once, with name, unit and help.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::outputs::{OutputFigures, OutputTally};
use crate::policy::wishes::{Purpose, Scheme};

/// What a metric is called and what it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// `mehman_<noun>_<unit>_total`, or without `_total` where it is no counter.
    pub name: &'static str,
    /// What one unit is.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
}

macro_rules! declared {
    ($(#[$doc:meta])* $kind:ident {
        $($variant:ident: $name:literal, $unit:literal, $help:literal;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kind {
            $(#[doc = $help] $variant,)+
        }

        impl $kind {
            /// All of them, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Name, unit and help.
            pub fn declared(self) -> Declared {
                match self {
                    $(Self::$variant => Declared { name: $name, unit: $unit, help: $help },)+
                }
            }
        }
    };
}

declared! {
    /// What only goes up.
    Counter {
        HostsParked: "mehman_host_parkings_total", "parkings",
            "Hosts parked because their actor failed too often in a row.";
        ShardsReopened: "mehman_shard_reopenings_total", "reopenings",
            "Shards opened again after a failure.";
        WorkersRestarted: "mehman_worker_restarts_total", "restarts",
            "Workers of a pool that were started again.";
        ArchiveFilesClosed: "mehman_archive_closed_files_total", "files",
            "Archive files published with their index.";
        ArchiveBytesCut: "mehman_archive_torn_bytes_total", "bytes",
            "Bytes cut off the torn tails of archive files at a start.";
        StoreFailures: "mehman_store_failures_total", "failures",
            "Writes or flushes of a shard's store that failed.";
        DiskFailures: "mehman_disk_failures_total", "failures",
            "Writes of archive or output to a local disk that failed.";
        PurgesDone: "mehman_purges_total", "purges",
            "Exclusions of which all that was stored has been removed.";
        PurgedRecords: "mehman_purged_records_total", "records",
            "Records and page records that were removed with exclusions.";
        ConfigReloads: "mehman_config_reloads_total", "reloads",
            "Configurations read again while running.";
        AdminRefusals: "mehman_admin_refusals_total", "requests",
            "Admin requests refused for lack of a right.";
    }
}

declared! {
    /// How long things take.
    Histogram {
        AdminRequest: "mehman_admin_request_seconds", "seconds",
            "Time from an admin request's head to the head of its answer.";
    }
}

/// Upper bounds of the buckets of every histogram, in milliseconds.
const BUCKETS_MS: [u64; 10] = [1, 5, 20, 100, 500, 1_000, 2_500, 10_000, 30_000, 60_000];

#[derive(Debug, Default)]
struct Buckets {
    /// One more than there are bounds: the last has none.
    counts: [AtomicU64; BUCKETS_MS.len() + 1],
    sum_micros: AtomicU64,
}

/// The metrics of one node. Moved from everywhere, read at a scrape.
#[derive(Debug)]
pub struct Metrics {
    counters: Vec<AtomicU64>,
    histograms: Vec<Buckets>,
    outputs: OutputTally,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            counters: Counter::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            histograms: Histogram::ALL.iter().map(|_| Buckets::default()).collect(),
            outputs: OutputTally::default(),
        }
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves a counter.
    pub fn add(&self, counter: Counter, units: u64) {
        if let Some(count) = self.counters.get(counter as usize) {
            count.fetch_add(units, Ordering::Relaxed);
        }
    }

    /// Where a counter stands.
    pub fn count(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Notes a duration.
    pub fn observe(&self, histogram: Histogram, took: Duration) {
        let Some(buckets) = self.histograms.get(histogram as usize) else { return };
        let millis = took.as_secs_f64() * 1_000.0;
        let place = BUCKETS_MS.iter().take_while(|bound| seconds(**bound) * 1_000.0 < millis);
        if let Some(count) = buckets.counts.get(place.count()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        buckets.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// An output is there; from now on it has figures.
    pub fn output_opened(&self, name: &str, purpose: Purpose) {
        self.outputs.open(name, purpose);
    }

    /// An output got a page, or left it out and why (R6).
    pub fn output_counted(&self, name: &str, left_out: Option<Scheme>) {
        self.outputs.count(name, left_out);
    }

    /// What every output has got since the start, over all shards.
    pub fn outputs(&self) -> Vec<OutputFigures> {
        self.outputs.figures()
    }

    /// Everything held here, ready to be rendered.
    pub fn families(&self) -> Vec<Family> {
        let counters = Counter::ALL.iter().map(|counter| {
            let declared = counter.declared();
            Family::counter(declared.name, declared.help).with(&[], as_float(self.count(*counter)))
        });
        let histograms = Histogram::ALL.iter().zip(&self.histograms);
        counters
            .chain(histograms.map(|(histogram, held)| held.family(histogram.declared())))
            .chain(self.outputs.families())
            .collect()
    }
}

impl Buckets {
    fn family(&self, declared: Declared) -> Family {
        let mut family = Family::new(FamilyKind::Histogram, declared.name, declared.help);
        let mut sum = 0;
        for (place, count) in self.counts.iter().enumerate() {
            sum += count.load(Ordering::Relaxed);
            let bound = BUCKETS_MS
                .get(place)
                .map_or_else(|| "+Inf".to_owned(), |bound| seconds(*bound).to_string());
            family.push("_bucket", &[("le", &bound)], as_float(sum));
        }
        let micros = as_float(self.sum_micros.load(Ordering::Relaxed));
        family.push("_sum", &[], micros / 1_000_000.0);
        family.push("_count", &[], as_float(sum));
        family
    }
}

/// What Prometheus knows of a metric's behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// Only goes up.
    Counter,
    /// Goes both ways.
    Gauge,
    /// Buckets, sum and count.
    Histogram,
}

/// One metric with all its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// How it behaves.
    pub kind: FamilyKind,
    /// Its name.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Its values.
    pub samples: Vec<Sample>,
}

/// One value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Appended to the family's name: empty but in histograms.
    pub suffix: &'static str,
    /// Names and values; a small closed set, never a URL or a host.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

impl Family {
    fn new(kind: FamilyKind, name: &'static str, help: &'static str) -> Self {
        Self { kind, name, help, samples: Vec::new() }
    }

    /// A counter without samples.
    pub fn counter(name: &'static str, help: &'static str) -> Self {
        Self::new(FamilyKind::Counter, name, help)
    }

    /// A gauge without samples.
    pub fn gauge(name: &'static str, help: &'static str) -> Self {
        Self::new(FamilyKind::Gauge, name, help)
    }

    /// With one more value.
    #[must_use]
    pub fn with(mut self, labels: &[(&'static str, &str)], value: f64) -> Self {
        self.push("", labels, value);
        self
    }

    fn push(&mut self, suffix: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.samples.push(Sample { suffix, labels, value });
    }
}

/// The text exposition format, version 0.0.4.
pub fn render(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families {
        render_family(&mut text, family).unwrap_or_default();
    }
    text
}

fn render_family(text: &mut String, family: &Family) -> std::fmt::Result {
    let kind = match family.kind {
        FamilyKind::Counter => "counter",
        FamilyKind::Gauge => "gauge",
        FamilyKind::Histogram => "histogram",
    };
    writeln!(text, "# HELP {} {}", family.name, family.help)?;
    writeln!(text, "# TYPE {} {kind}", family.name)?;
    for sample in &family.samples {
        write!(text, "{}{}", family.name, sample.suffix)?;
        for (place, (name, value)) in sample.labels.iter().enumerate() {
            let open = if place == 0 { '{' } else { ',' };
            write!(text, "{open}{name}=\"{}\"", escaped(value))?;
        }
        let close = if sample.labels.is_empty() { "" } else { "}" };
        writeln!(text, "{close} {}", sample.value)?;
    }
    Ok(())
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(millis: u64) -> f64 {
    Duration::from_millis(millis).as_secs_f64()
}

/// Prometheus knows only floats: exact up to 2^53, which no counter of ours passes in a lifetime.
pub(crate) fn as_float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_keeps_the_form_and_comes_once() {
        let counters = Counter::ALL.iter().map(|counter| counter.declared());
        let all: Vec<Declared> =
            counters.clone().chain(Histogram::ALL.iter().map(|h| h.declared())).collect();
        let mut names: Vec<&str> = all.iter().map(|declared| declared.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        for declared in all {
            assert!(declared.name.starts_with("mehman_"), "{}", declared.name);
            assert!(declared.help.ends_with('.'), "{}", declared.name);
        }
        for declared in counters {
            assert!(declared.name.ends_with("_total"), "{}", declared.name);
        }
    }

    #[test]
    fn counters_count_by_themselves() {
        let metrics = Metrics::new();
        metrics.add(Counter::AdminRefusals, 2);
        metrics.add(Counter::AdminRefusals, 1);
        assert_eq!(metrics.count(Counter::AdminRefusals), 3);
        assert_eq!(metrics.count(Counter::HostsParked), 0);
        let text = render(&metrics.families());
        assert!(text.contains("# TYPE mehman_admin_refusals_total counter\n"), "{text}");
        assert!(text.contains("\nmehman_admin_refusals_total 3\n"), "{text}");
    }

    #[test]
    fn buckets_add_up() {
        let metrics = Metrics::new();
        metrics.observe(Histogram::AdminRequest, Duration::from_millis(5));
        metrics.observe(Histogram::AdminRequest, Duration::from_millis(6));
        metrics.observe(Histogram::AdminRequest, Duration::from_secs(600));
        let text = render(&metrics.families());
        assert!(text.contains("mehman_admin_request_seconds_bucket{le=\"0.005\"} 1\n"), "{text}");
        assert!(text.contains("mehman_admin_request_seconds_bucket{le=\"60\"} 2\n"), "{text}");
        assert!(text.contains("mehman_admin_request_seconds_bucket{le=\"+Inf\"} 3\n"), "{text}");
        assert!(text.contains("mehman_admin_request_seconds_sum 600.011\n"), "{text}");
        assert!(text.contains("mehman_admin_request_seconds_count 3\n"), "{text}");
    }

    #[test]
    fn label_values_cannot_break_out() {
        let family = Family::gauge("mehman_x", "X.").with(&[("pool", "a\"b\\\n")], 0.5);
        assert!(render(&[family]).contains("mehman_x{pool=\"a\\\"b\\\\\\n\"} 0.5\n"));
    }
}
