//! `/.well-known/tdmrep.json`: what a host keeps back, by path (TDMRep).
//!
//! A list of rules; the first whose location matches counts. A file that is no such list says
//! nothing: many hosts answer every path with a page.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::evidence::keep;
use crate::policy::robots::{Path, Pattern};
use crate::types::{Timestamp, UsageWish};

/// The source of what was said there.
pub(super) const WELL_KNOWN: &str = "tdmrep.json";

/// The rules of one file, in its order.
#[derive(Clone, Debug, Default)]
pub struct Reservations(Vec<Rule>);

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
    /// Reads a file. Rules without location or value are passed over.
    pub fn read(text: &Bytes) -> Self {
        let Ok(rules) = serde_json::from_slice::<Vec<&RawValue>>(text) else {
            return Self::default();
        };
        let rules = rules.into_iter().filter_map(|rule| {
            let location = Written::read(rule.get())?.location;
            let location = Pattern::read(location.as_bytes());
            Some(Rule { location, text: rule.get().to_owned() })
        });
        Self(rules.collect())
    }

    /// What it says of `/path?query`, said at `at`.
    pub fn of(&self, path_and_query: &str, at: Option<Timestamp>) -> Vec<UsageWish> {
        let mut kept = Vec::new();
        if !self.0.is_empty() {
            let path = Path::new(path_and_query);
            if let Some(rule) = self.0.iter().find(|rule| path.matches(&rule.location)) {
                keep(&mut kept, WELL_KNOWN, &rule.text, at);
            }
        }
        kept
    }
}
