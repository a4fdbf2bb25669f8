//! From arguments to a configuration: file, environment, then options, each stronger.

use std::path::Path;

use super::arguments::Common;
use crate::config::{Config, ConfigFaults, PREFIX};
use crate::node;

/// Keys of the configuration that options set, with their values as text.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides(Vec<(String, String)>);

impl Overrides {
    /// Sets a key.
    pub(super) fn set(&mut self, key: &str, value: impl ToString) {
        self.0.push((key.to_owned(), value.to_string()));
    }

    /// Sets a key where the option was given.
    pub(super) fn set_some(&mut self, key: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }
}

/// The configuration of a command.
///
/// # Errors
/// Every fault found.
pub(super) fn load(common: &Common, overrides: &Overrides) -> Result<Config, ConfigFaults> {
    Config::load(common.config.as_deref(), environment(), &options(common, overrides))
}

/// The configuration of a command that crawls, or that says whether one could: what this build
/// cannot do, and what files it names get wrong, is a fault as well.
///
/// # Errors
/// Every fault found.
pub(super) fn load_to_crawl(
    file: Option<&Path>,
    common: &Common,
    overrides: &Overrides,
) -> Result<Config, ConfigFaults> {
    Config::load_for(file, environment(), &options(common, overrides), &node::check)
}

/// What the configuration of a command is made from, weakest first.
pub(super) fn sources(common: &Common) -> String {
    let mut sources = vec!["the defaults".to_owned()];
    sources.extend(common.config.as_ref().map(|file| format!("the file {}", file.display())));
    let mut variables: Vec<String> =
        environment().filter_map(|(name, _)| name.starts_with(PREFIX).then_some(name)).collect();
    variables.sort();
    sources.extend(variables);
    sources.extend(common.data.is_some().then(|| "--data".to_owned()));
    sources.join(", ")
}

fn options(common: &Common, overrides: &Overrides) -> Vec<(String, String)> {
    let mut options = overrides.clone();
    options.set_some("data.dir", common.data.as_ref());
    options.0
}

/// The environment, without what is not text: no key of ours is.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
