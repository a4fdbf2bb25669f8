//! Reads the keys of a table, and holds them against each other.

use std::collections::BTreeMap;

use super::faults::{Fault, Faults, Origin};
use super::keys::{Broken, EACH, Entry, Field, Found, Rule, Setting, join, plain};
use super::nearest::nearest_key;
use super::raw::{Content, Node};

/// Reads the keys of one table.
pub(super) struct Reader<'n, 'f> {
    path: String,
    node: &'n Node,
    table: &'n BTreeMap<String, Node>,
    faults: &'f mut Faults,
}

impl<'n, 'f> Reader<'n, 'f> {
    /// `None`, and a fault, when it is not a table.
    pub(super) fn open(found: &Found<'n>, faults: &'f mut Faults) -> Option<Self> {
        match &found.node.content {
            Content::Table(table) => {
                Some(Self { path: found.path.clone(), node: found.node, table, faults })
            }
            Content::Word(_) | Content::Text(_) | Content::Integer(_) | Content::Float(_) => {
                found.refuse_because("not a table", faults)
            }
            Content::Bool(_) | Content::Other(_) | Content::List(_) => {
                found.refuse_because("not a table", faults)
            }
        }
    }

    /// Reads one key. A faulty one is named and stands as its default, so that reading goes on;
    /// `None` when it has none.
    pub(super) fn field<T: Setting>(&mut self, field: Field<T>) -> Option<T> {
        let path = join(&self.path, field.name);
        let wanted = field.wanted();
        let Some(node) = self.table.get(field.name) else {
            if field.default.is_none() {
                self.faults.push(Fault {
                    key: path,
                    origin: self.node.origin.clone(),
                    found: None,
                    problem: "missing".to_owned(),
                    remedy: format!("wanted {wanted}"),
                });
            }
            return field.default;
        };
        let found = Found { path, node, wanted, absent: field.absent, secret: field.secret };
        let Some(value) = T::read(&found, self.faults) else { return field.default };
        let broken = |rule: &Rule<T>| rule.broken(&value);
        match field.rules.iter().find_map(broken) {
            None => Some(value),
            Some(Broken::Whole) => {
                found.refuse_because::<T>("not allowed", self.faults);
                field.default
            }
            // The others stay, to be judged by those who use them.
            Some(Broken::Elements(broken)) => {
                for at in broken {
                    let element = node.element(at).unwrap_or(node);
                    let wanted = found.wanted.trim_start_matches(EACH).to_owned();
                    let found = found.inside(Some(at), element, wanted);
                    found.refuse_because::<T>("not allowed", self.faults);
                }
                Some(value)
            }
        }
    }

    /// Names the keys that are none of these, each with the nearest known one.
    pub(super) fn refuse_unknown(&mut self, known: &[Entry]) {
        for (name, node) in self.table {
            if known.iter().any(|entry| entry.name == name) {
                continue;
            }
            let path = join(&self.path, name);
            let keys = super::checked::keys();
            let bare = without_indices(&path);
            let nearest = nearest_key(&bare, keys.iter().map(|key| key.path.as_str()));
            self.faults.push(Fault {
                // Nobody knows what it is: it may be the slip of a key that holds a secret.
                found: None,
                origin: node.origin.clone(),
                problem: "unknown key".to_owned(),
                remedy: nearest.map_or_else(
                    || format!("wanted one of {}", listed(known)),
                    |key| format!("the nearest is `{key}`"),
                ),
                key: path,
            });
        }
    }

    /// The checks that follow the reading.
    pub(super) fn check(&mut self) -> Check<'_> {
        Check { path: self.path.clone(), node: self.node, faults: self.faults }
    }
}

/// Checks keys of one table against each other.
pub(super) struct Check<'f> {
    path: String,
    node: &'f Node,
    faults: &'f mut Faults,
}

impl Check<'_> {
    /// Names a fault of `key`, unless it or one of the keys it was held against is faulty already.
    /// Keys may lead into a table below: `retry.lease`.
    pub(super) fn refuse_unless(&mut self, holds: bool, keys: &[&str], fault: Unfit<'_>) {
        let sound = |key: &&str| self.faults.sound(&join(&self.path, key));
        let Some(key) = keys.first() else { return };
        if holds || !keys.iter().all(sound) {
            return;
        }
        self.faults.push(Fault {
            key: join(&self.path, key),
            origin: self.origin(keys),
            found: fault.found,
            problem: fault.problem.to_owned(),
            remedy: fault.remedy.to_owned(),
        });
    }

    /// Refuses `high` when it is below `low`.
    pub(super) fn ordered<T>(&mut self, low: (&str, &T), high: (&str, &T))
    where
        T: Setting + PartialOrd,
    {
        let fault = Unfit {
            found: Some(plain(high.1)),
            problem: &format!("below `{}`, which is {}", join(&self.path, low.0), plain(low.1)),
            remedy: &format!("wanted {} and more", plain(low.1)),
        };
        self.refuse_unless(low.1 <= high.1, &[high.0, low.0], fault);
    }

    /// Where the first of the keys that anybody set was set.
    fn origin(&self, keys: &[&str]) -> Origin {
        let set = |key: &&str| key.split('.').try_fold(self.node, |node, name| node.key(name));
        keys.iter().find_map(set).unwrap_or(self.node).origin.clone()
    }
}

/// What does not go together with another key.
pub(super) struct Unfit<'t> {
    pub(super) found: Option<String>,
    pub(super) problem: &'t str,
    pub(super) remedy: &'t str,
}

/// Checks of the keys of one table against each other.
pub(super) trait Checked {
    /// Names what does not go together.
    fn check(&self, _check: &mut Check<'_>) {}
}

fn listed(known: &[Entry]) -> String {
    known.iter().map(|entry| format!("`{}`", entry.name)).collect::<Vec<_>>().join(", ")
}

/// `politeness.allowance[3].host` → `politeness.allowance.host`.
fn without_indices(path: &str) -> String {
    let parts = path.split('[').enumerate().map(|(at, part)| match part.split_once(']') {
        Some((_, behind)) if at > 0 => behind,
        _ => part,
    });
    parts.collect()
}
