//! When pages are visited again: `[recrawl]` and its classes (C1, F9).

use std::collections::BTreeSet;
use std::time::Duration;

use super::define::{section, table};
use super::reader::{Check, Checked, Unfit};
use super::scope::{RULE, is_rule};
use super::units::days;

section! {
    /// When pages are visited again.
    pub struct Recrawl {
        /// Whether they are; `crawl` never does.
        enabled: bool = true;
        /// Never sooner, however often the page changes.
        min_interval: Duration = days(1), within(Duration::from_secs(1)..=days(3650));
        /// Never later, however long the page stays the same.
        max_interval: Duration = days(30), within(Duration::from_secs(1)..=days(3650));
        /// Pages with a value or intervals of their own; the first that matches holds.
        classes: Vec<RecrawlClass> = Vec::new(), named("class");
    }
}

table! {
    /// Pages with a value or intervals of their own.
    pub struct RecrawlClass {
        /// The name of the class, its own among the classes.
        name: String, that(|name| is_name(name), "of letters, digits, `_` and `-`");
        /// Its pages: a rule as in `scope.include`.
        r#match: String, that(|rule| is_rule(rule), RULE);
        /// How much a fresh copy is worth, against 1 for other pages; moves the page up its
        /// host's queue.
        value: f64 = 1.0, within(0.0..=1_000_000.0);
        /// Instead of `recrawl.min_interval`.
        min_interval: Option<Duration> = None, within(Duration::from_secs(1)..=days(3650));
        /// Instead of `recrawl.max_interval`.
        max_interval: Option<Duration> = None, within(Duration::from_secs(1)..=days(3650));
    }
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.bytes().all(fits)
}

impl Checked for Recrawl {
    fn check(&self, check: &mut Check<'_>) {
        let low = ("min_interval", &self.min_interval);
        check.ordered(low, ("max_interval", &self.max_interval));
        let mut seen = BTreeSet::new();
        for class in &self.classes {
            let fault = |problem, remedy| Unfit { found: None, problem, remedy };
            let twice = format!("two of them are named {}", class.name);
            let once = seen.insert(&class.name);
            check.refuse_unless(once, &["class"], fault(&twice, "wanted a name of its own each"));
            // A class that sets only one of its intervals takes the other from above.
            let (low, high) = class.intervals(self);
            let crossed = format!("`{}` would wait longer at least than at most", class.name);
            let remedy = "wanted both intervals, the smaller first";
            check.refuse_unless(
                low <= high,
                &["class", "min_interval", "max_interval"],
                fault(&crossed, remedy),
            );
        }
    }
}

impl RecrawlClass {
    /// The least and the greatest interval of the class.
    pub fn intervals(&self, all: &Recrawl) -> (Duration, Duration) {
        let low = self.min_interval.unwrap_or(all.min_interval);
        (low, self.max_interval.unwrap_or(all.max_interval))
    }
}

impl Checked for RecrawlClass {}
