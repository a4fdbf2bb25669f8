//! What changes between two configurations, and whether it may change while the crawler runs.

use super::checked::Config;
use super::keys::{Entry, Setting, Shown};
use super::show::{Secrets, value_text};

/// When a change takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At the reload.
    Live,
    /// At the next start.
    Restart,
}

/// A key whose value changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// `politeness.min_delay`; a list of tables changes as one.
    pub key: String,
    /// When it takes effect.
    pub effect: Effect,
    /// The value before, as TOML, secrets masked.
    pub before: String,
    /// The value after.
    pub after: String,
}

impl Config {
    /// The keys that change from this configuration to another, in the order of the sections.
    pub fn changes(&self, new: &Self) -> Vec<ConfigChange> {
        let mut changes = Vec::new();
        if let (Shown::Table(old), Shown::Table(new)) = (self.show(), new.show()) {
            compare(("", Effect::Restart), &old, &new, &mut changes);
        }
        changes
    }
}

fn compare(
    (path, effect): (&str, Effect),
    old: &[Entry],
    new: &[Entry],
    changes: &mut Vec<ConfigChange>,
) {
    for (old, new) in old.iter().zip(new) {
        let key =
            if path.is_empty() { old.name.to_owned() } else { format!("{path}.{}", old.name) };
        let effect = match old.live {
            Some(true) => Effect::Live,
            Some(false) => Effect::Restart,
            None => effect,
        };
        if let (Some(Shown::Table(old)), Some(Shown::Table(new))) = (&old.shown, &new.shown) {
            compare((&key, effect), old, new, changes);
        } else if old.shown != new.shown {
            let text = |entry| value_text(entry, Secrets::Masked);
            changes.push(ConfigChange { key, effect, before: text(old), after: text(new) });
        }
    }
}
