//! `sandbox`: the small web of the demo alone, to point a crawl or another crawler at.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;

use super::arguments::{SandboxArgs, SandboxShape};
use super::failure::Exit;
use super::output::Output;
use super::signals::{Signal, Signals};
use super::text::{Table, shell_word};
use crate::sandbox::{Sandbox, SandboxOptions, Security};
use crate::world::TokioClock;

/// The contact that crawls of the sandbox give: a page of the sandbox itself.
pub(super) fn contact(sandbox: &Sandbox) -> String {
    sandbox.seeds().into_iter().next().unwrap_or_else(|| "http://localhost/".to_owned())
}

/// What the options ask for.
pub(super) fn options(shape: &SandboxShape) -> SandboxOptions {
    SandboxOptions {
        seed: shape.seed,
        hosts: shape.hosts,
        pages_per_host: shape.pages,
        ..SandboxOptions::default()
    }
}

/// `sandbox`: serves until a signal.
pub(super) async fn run(args: &SandboxArgs, output: &Output) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let security = if args.tls { Security::Tls { resumption: true } } else { Security::Plain };
    let options = SandboxOptions {
        port: args.port,
        keep_alive: !args.close,
        security,
        ..options(&args.shape)
    };
    let sandbox = Sandbox::start(options, Arc::new(TokioClock::system())).await?;
    let authority = write_authority(&sandbox, &args.ca_file)?;
    if output.is_json() {
        output.json(&json!({
            "web": sandbox.web_addresses(),
            "dns": sandbox.dns_address(),
            "seeds": sandbox.seeds(),
            "ca_file": authority,
            "command": command(&sandbox, authority.as_deref()),
        }))?;
    } else {
        output.line(&told(&sandbox, authority.as_deref()));
    }
    let signal = signals.next().await;
    sandbox.shutdown().await;
    Ok(match signal {
        Signal::Interrupt => Exit::Interrupted,
        Signal::Terminate | Signal::HangUp => Exit::Done,
    })
}

/// Writes down whom to trust, where that is needed; answers with the whole path of the file, so
/// that the command holds wherever it is typed.
fn write_authority(sandbox: &Sandbox, file: &Path) -> anyhow::Result<Option<PathBuf>> {
    let Some(authority) = sandbox.authority() else { return Ok(None) };
    std::fs::write(file, authority).with_context(|| format!("failed to write {file:?}"))?;
    let whole = file.canonicalize().with_context(|| format!("failed to find {file:?}"))?;
    Ok(Some(whole))
}

fn told(sandbox: &Sandbox, authority: Option<&Path>) -> String {
    let mut table = Table::of_pairs();
    let addresses = sandbox.web_addresses();
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    table.pair("web", addresses.join(" "));
    table.pair("dns", sandbox.dns_address().to_string());
    for (at, seed) in sandbox.seeds().into_iter().enumerate() {
        table.pair(if at == 0 { "seeds" } else { "" }, seed);
    }
    if let Some(file) = authority {
        table.pair("ca file", file.display().to_string());
    }
    format!(
        "{}\n\nIts names end in .test and only its own name server knows them. To crawl it:\n\n\
         {}\n\nCtrl-C ends it.",
        table.render(),
        command(sandbox, authority),
    )
}

/// A command that crawls it.
fn command(sandbox: &Sandbox, authority: Option<&Path>) -> String {
    let seeds: Vec<String> = sandbox.seeds().iter().map(|seed| shell_word(seed)).collect();
    let trusted = authority.map_or_else(String::new, |file| {
        format!("MEHMAN__FETCH__EXTRA_CA_FILES={} ", shell_word(&file.display().to_string()))
    });
    format!(
        "MEHMAN__DNS__NAMESERVERS={} MEHMAN__FETCH__ALLOW_NETWORKS=127.0.0.0/8 {trusted}\
         mehman crawl {} --scope any --contact {} --data sandbox-data",
        sandbox.dns_address(),
        seeds.join(" "),
        shell_word(&contact(sandbox)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn the_command_it_prints_is_one_we_understand() {
        let shape = SandboxShape { hosts: 3, pages: 4, seed: 5 };
        for security in [Security::Plain, Security::Tls { resumption: true }] {
            let options = SandboxOptions { security, ..options(&shape) };
            let clock = Arc::new(TokioClock::system());
            let sandbox = Sandbox::start(options, clock).await.unwrap();
            let folder = tempfile::tempdir().unwrap();
            let file = write_authority(&sandbox, &folder.path().join("ca.pem")).unwrap();
            assert_eq!(file.is_some(), security != Security::Plain);
            let line = command(&sandbox, file.as_deref());
            let words: Vec<&str> = line.split_whitespace().collect();
            let variables = words.iter().filter_map(|word| word.split_once('='));
            let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let config = Config::load(None, variables, &[]).unwrap();
            assert_eq!(config.dns.nameservers, [sandbox.dns_address()]);
            assert_eq!(config.fetch.allow_networks.len(), 1);
            assert_eq!(config.fetch.extra_ca_files, Vec::from_iter(file));
            let rest = words.iter().skip_while(|word| word.contains('='));
            let parsed = <super::super::arguments::Arguments as clap::Parser>::try_parse_from(rest);
            assert!(parsed.is_ok(), "{line}");
            sandbox.shutdown().await;
        }
    }
}
