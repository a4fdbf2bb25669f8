//! `config check` and `config show`.

use std::path::Path;

use serde_json::{Value, json};

use super::arguments::{Common, ConfigCommand};
use super::failure::{Exit, listed};
use super::output::Output;
use super::settings::{self, Overrides};
use crate::config::Secrets;
use crate::node;

/// `config`.
pub(super) fn run(
    command: &ConfigCommand,
    common: &Common,
    output: &Output,
) -> anyhow::Result<Exit> {
    match command {
        ConfigCommand::Check { file } => {
            check(file.as_deref().or(common.config.as_deref()), common, output)
        }
        ConfigCommand::Show => show(common, output),
    }
}

/// Says ok, or every fault at once.
fn check(file: Option<&Path>, common: &Common, output: &Output) -> anyhow::Result<Exit> {
    match settings::load_to_crawl(file, common, &Overrides::default()) {
        Ok(config) => {
            let notes = node::without_effect(&config);
            if output.is_json() {
                output.json(&json!({ "ok": true, "faults": [], "notes": notes }))?;
            } else {
                output.line("ok");
                notes.iter().for_each(|note| output.note(&format!("note: {note}")));
            }
            if config.crawlable().is_err() {
                output.note(
                    "note: it names no contact for site owners, so `crawl` and `serve` will ask \
                     for one",
                );
            }
            Ok(Exit::Done)
        }
        Err(faults) if output.is_json() => {
            output.json(&json!({ "ok": false, "faults": listed(&faults) }))?;
            Ok(Exit::Wrong)
        }
        Err(faults) => Err(faults.into()),
    }
}

/// The effective configuration, and what it was made from; its secrets are never shown. One that
/// `crawl` would refuse is shown too, with a word on that.
fn show(common: &Common, output: &Output) -> anyhow::Result<Exit> {
    let config = settings::load(common, &Overrides::default())?;
    let toml = config.to_toml(Secrets::Masked);
    let sources = settings::sources(common);
    if output.is_json() {
        output.json(&toml::from_str::<Value>(&toml)?)?;
        output.note(&format!("note: made from {sources}"));
    } else {
        output.raw(&format!("# Made from {sources}.\n\n{toml}"));
    }
    let whole = settings::load_to_crawl(common.config.as_deref(), common, &Overrides::default());
    for fault in whole.err().into_iter().flat_map(|faults| faults.faults) {
        output.note(&format!("note: `crawl` and `serve` refuse it: {fault}"));
    }
    Ok(Exit::Done)
}
