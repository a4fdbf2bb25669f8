//! `/.well-known/tdmrep.json`: what a host keeps back, by path (TDMRep).
//!
//! A list of rules; the first whose location matches counts. A file that is no such list says
//! nothing: many hosts answer every path with a page.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::evidence::{keep, keep_note};
use crate::policy::robots::{Path, Pattern};
use crate::types::{Timestamp, UsageWish};

/// The source of what was said there.
pub(super) const WELL_KNOWN: &str = "tdmrep.json";

/// The rules of one file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    rules: Vec<Rule>,
    /// A list that was longer than is read: it is taken to keep back everything (W-3).
    is_cut: bool,
}

#[derive(Clone, Debug)]
struct Rule {
    location: Pattern,
    text: String,
}

/// A rule as written. `tdm-policy`, where leave may be bought, is kept with its text.
#[derive(Deserialize)]
struct Written {
    location: String,
    #[serde(rename = "tdm-reservation")]
    reservation: Value,
}

impl Written {
    fn read(text: &str) -> Option<Self> {
        let written: Self = serde_json::from_str(text).ok()?;
        written.may().map(|_| written)
    }

    /// `1` keeps back, `0` does not; some write them as text.
    fn may(&self) -> Option<bool> {
        let number = match &self.reservation {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        match number? {
            0 => Some(true),
            1 => Some(false),
            _ => None,
        }
    }
}

/// Whether a rule's text lets its pages be mined; `None` where it is none.
pub(super) fn may_be_mined(text: &str) -> Option<bool> {
    Written::read(text)?.may()
}

impl Reservations {
    /// Reads a file, which may have been cut. Rules without location or value are passed over.
    pub fn read(text: &Bytes, is_cut: bool) -> Self {
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text).trim_ascii_start();
        let Ok(rules) = serde_json::from_slice::<Vec<&RawValue>>(text) else {
            // A page that is served at every path may be long as well.
            return Self { rules: Vec::new(), is_cut: is_cut && text.starts_with(b"[") };
        };
        let rules = rules.into_iter().filter_map(|rule| {
            let location = Written::read(rule.get())?.location;
            let location = Pattern::read(location.as_bytes());
            Some(Rule { location, text: rule.get().to_owned() })
        });
        Self { rules: rules.collect(), is_cut }
    }

    /// What it says of `/path?query`, said at `at`.
    pub fn of(&self, path_and_query: &str, at: Option<Timestamp>) -> Vec<UsageWish> {
        let mut kept = Vec::new();
        if self.is_cut {
            keep_note(&mut kept, at);
        }
        if !self.rules.is_empty() {
            let path = Path::new(path_and_query);
            if let Some(rule) = self.rules.iter().find(|rule| path.matches(&rule.location)) {
                keep(&mut kept, WELL_KNOWN, &rule.text, at);
            }
        }
        kept
    }
}
