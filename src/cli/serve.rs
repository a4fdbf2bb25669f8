//! `serve`: the daemon, for months (U1).
//!
//! SIGTERM and Ctrl-C stop it cleanly, a second signal at once; SIGHUP reads the configuration
//! again. A drain asked for over HTTP ends it too.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tracing::{error, info};

use super::address::{Announced, bind};
use super::arguments::Common;
use super::crawl::STOP_LIMIT;
use super::failure::{Exit, Interrupted};
use super::output::Output;
use super::settings::{self, Overrides};
use super::signals::{Signal, Signals};
use crate::admin::RunState;
use crate::config::{Config, ConfigFaults};
use crate::node::{Node, NodeOptions, Purpose};
use crate::world::{Clock as _, TokioClock};

/// How often it is looked whether a drain has come to its end.
const POLL: Duration = Duration::from_secs(2);

/// `serve`.
pub(super) async fn run(common: &Common, output: &Output) -> anyhow::Result<Exit> {
    let config = configure(common)?;
    let mut signals = Signals::listen().context("failed to listen for signals")?;
    let listener = bind(config.admin.listen).await?;
    let again = common.clone();
    let options = NodeOptions {
        config: Arc::new(config.clone()),
        purpose: Purpose::Serve,
        reloader: Some(Arc::new(move || configure(&again))),
    };
    let mut node = tokio::select! {
        biased;
        signal = signals.next() => return Ok(exit_of(signal)),
        node = Node::start(options) => node.context("the daemon did not start")?,
    };
    let announced = Announced::announce(&listener, &config.data.dir, output)?;
    let address = listener.local_addr()?;
    node.serve_admin(listener);
    let epochs = brief(&node.epochs().await);
    info!(%address, shards = config.frontier.shards, epochs, "started");
    let exit = watch(&node, &mut signals, common).await;
    tokio::select! {
        biased;
        _ = signals.next() => return Err(Interrupted.into()),
        stopped = node.stop(STOP_LIMIT) => {
            stopped.map(drop).context("the daemon did not stop in order")?;
        }
    }
    announced.withdraw()?;
    info!("stopped");
    Ok(exit)
}

/// R5: a daemon crawls, so it needs a contact too.
fn configure(common: &Common) -> Result<Config, ConfigFaults> {
    let config = settings::load_to_crawl(common.config.as_deref(), common, &Overrides::default())?;
    config.crawlable()?;
    Ok(config)
}

/// The terms of the shards; one number where all are the same, as after any start of one node.
fn brief(epochs: &[u32]) -> String {
    match epochs.split_first() {
        Some((first, rest)) if rest.iter().all(|epoch| epoch == first) => first.to_string(),
        _ => format!("{epochs:?}"),
    }
}

/// Obeys signals until one of them, or a drain, ends the daemon.
async fn watch(node: &Node, signals: &mut Signals, common: &Common) -> Exit {
    let clock = TokioClock::system();
    loop {
        let signal = tokio::select! {
            biased;
            signal = signals.next() => Some(signal),
            () = clock.sleep(POLL) => None,
        };
        match signal {
            Some(Signal::HangUp) => reload(node, common),
            Some(signal @ (Signal::Interrupt | Signal::Terminate)) => {
                info!("stopping");
                return exit_of(signal);
            }
            None => {
                let status = node.status().await;
                if status.state == RunState::Draining && status.urls.in_flight == 0 {
                    info!("drained");
                    return Exit::Done;
                }
            }
        }
    }
}

/// Reads the configuration again; with a fault the old one stays.
fn reload(node: &Node, common: &Common) {
    let config = match configure(common) {
        Ok(config) => config,
        Err(faults) => {
            error!(%faults, "the configuration was not reloaded");
            return;
        }
    };
    if let Err(error) = node.reload(&config) {
        error!(%error, "the configuration was not reloaded");
    }
}

fn exit_of(signal: Signal) -> Exit {
    match signal {
        Signal::Interrupt => Exit::Interrupted,
        Signal::Terminate | Signal::HangUp => Exit::Done,
    }
}
