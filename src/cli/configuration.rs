//! `config check` and `config show`.

use std::path::Path;

use serde_json::{Value, json};

use super::arguments::{Common, ConfigCommand};
use super::failure::Exit;
use super::output::Output;
use super::settings::{self, Overrides};
use crate::config::{ConfigFaults, Secrets};
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

fn listed(faults: &ConfigFaults) -> Vec<Value> {
    let fault = |fault: &crate::config::Fault| {
        json!({
            "key": fault.key,
            "origin": fault.origin.to_string(),
            "line": fault.origin.line(),
            "found": fault.found,
            "problem": fault.problem,
            "remedy": fault.remedy,
        })
    };
    faults.faults.iter().map(fault).collect()
}

/// The effective configuration; its secrets are never shown.
fn show(common: &Common, output: &Output) -> anyhow::Result<Exit> {
    let toml = settings::load(common, &Overrides::default())?.to_toml(Secrets::Masked);
    if output.is_json() {
        output.json(&toml::from_str::<Value>(&toml)?)?;
    } else {
        output.raw(&toml);
    }
    Ok(Exit::Done)
}
