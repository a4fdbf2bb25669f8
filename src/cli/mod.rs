//! The command line (U1, U5).
//!
//! In: arguments, environment, signals. Out: results on standard output, everything said about the
//! work on standard error, and an exit status: 0 done, 1 failed, 2 wrong use or bad configuration,
//! 130 interrupted. No decision of the crawler is made here.

mod arguments;
mod failure;
mod output;
mod text;
mod settings;
mod signals;
mod seeds;
mod address;
mod progress;
mod report;
mod crawl;
mod serve;
mod demo;
mod sandbox;
mod simulate;
mod client;
mod shapes;
mod sheets;
mod offline;
mod seed;
mod export;
mod inspect;
mod exclude;
mod why;
mod configuration;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{IsTerminal as _, stderr, stdout};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};

use crate::telemetry::{self, TelemetryError};
use arguments::{Arguments, Command, Common};
use failure::{Exit, WrongUse, exit_of, told, told_in_json};
use output::Output;

/// The variable that sets the log filter, in the form of tracing's directives.
const LOG_VARIABLE: &str = "MEHMAN_LOG";

/// What still blocks when a command is over, such as a read of standard input, is left behind.
const LEFTOVERS: Duration = Duration::from_secs(1);

/// Runs the command that the arguments name, the program's own name first.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    let arguments = match Arguments::try_parse_from(&args) {
        Ok(arguments) => arguments,
        Err(answer) => {
            let json = args.iter().any(|argument| argument == "--json");
            return explain(&answer, json).into();
        }
    };
    let output = Output::of_process(&arguments.common);
    let exit = match start(&arguments, &output) {
        Ok(exit) => exit,
        Err(failure) => {
            match output.is_json() {
                true => output.raw_alert(&format!("{}\n", told_in_json(&failure))),
                false => output.alert(&told(&failure)),
            }
            exit_of(&failure)
        }
    };
    exit.into()
}

/// Help, the version, or what is wrong with the arguments.
fn explain(answer: &clap::Error, json: bool) -> Exit {
    let output = Output::of_process(&Common::default());
    let text = answer.render();
    if answer.use_stderr() && json {
        let told = WrongUse(text.to_string().trim().trim_start_matches("error: ").to_owned());
        output.raw_alert(&format!("{}\n", told_in_json(&told.into())));
        Exit::Wrong
    } else if answer.use_stderr() {
        let text = if stderr().is_terminal() { text.ansi().to_string() } else { text.to_string() };
        output.raw_alert(&text);
        Exit::Wrong
    } else {
        let text = if stdout().is_terminal() { text.ansi().to_string() } else { text.to_string() };
        output.raw(&text);
        Exit::Done
    }
}

fn start(arguments: &Arguments, output: &Output) -> anyhow::Result<Exit> {
    let Arguments { common, command } = arguments;
    refuse_useless(command)?;
    start_log(common, command)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    let exit = runtime.block_on(Box::pin(dispatch(command, common, output)));
    runtime.shutdown_timeout(LEFTOVERS);
    exit
}

async fn dispatch(command: &Command, common: &Common, output: &Output) -> anyhow::Result<Exit> {
    match command {
        Command::Crawl(args) => crawl::run(args, common, output).await,
        Command::Serve => serve::run(common, output).await,
        Command::Demo(args) => demo::run(args, common, output).await,
        Command::Sandbox(args) => sandbox::run(args, output).await,
        Command::Simulate(args) => simulate::run(args, output).await,
        Command::Seed(args) => seed::run(args, common, output).await,
        Command::Status(remote) => inspect::status(remote, common, output).await,
        Command::Hosts(args) => inspect::hosts(args, common, output).await,
        Command::Host(args) => inspect::host(args, common, output).await,
        Command::Urls(args) => inspect::urls(args, common, output).await,
        Command::Why(args) => why::run(args, common, output).await,
        Command::Pause(args) => inspect::switch("pause", args, common, output).await,
        Command::Resume(args) => inspect::switch("resume", args, common, output).await,
        Command::Exclude(args) => exclude::run(args, common, output).await,
        Command::Dead(command) => inspect::dead(command, common, output).await,
        Command::Export(args) => export::run(args, common, output).await,
        Command::Config(command) => configuration::run(command, common, output),
        Command::Completions { shell, .. } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "mehman", &mut script);
            output.raw(&String::from_utf8_lossy(&script));
            Ok(Exit::Done)
        }
    }
}

/// An option that a command has no use for would be obeyed by nobody, so it is refused.
fn refuse_useless(command: &Command) -> Result<(), WrongUse> {
    let (name, useless) = match command {
        Command::Sandbox(args) => ("sandbox", &args.useless),
        Command::Simulate(args) => ("simulate", &args.useless),
        Command::Completions { useless, .. } => ("completions", useless),
        Command::Crawl(_)
        | Command::Serve
        | Command::Demo(_)
        | Command::Seed(_)
        | Command::Status(_)
        | Command::Hosts(_)
        | Command::Host(_)
        | Command::Urls(_)
        | Command::Why(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Exclude(_)
        | Command::Dead(_)
        | Command::Export(_)
        | Command::Config(_) => return Ok(()),
    };
    let options = [("--data", useless.data.is_some()), ("--config", useless.config.is_some())];
    match options.into_iter().find(|(_, given)| *given) {
        Some((option, ..)) => Err(WrongUse(format!("`{name}` has no use for {option}"))),
        None => Ok(()),
    }
}

/// Starts the log: `-v` and `-q` win over the variable, which wins over what the command is for.
fn start_log(common: &Common, command: &Command) -> anyhow::Result<()> {
    let serves = matches!(command, Command::Serve);
    let wanted = std::env::var(LOG_VARIABLE).ok().filter(|filter| !filter.is_empty());
    let filter = match (common.quiet, common.verbose, wanted) {
        (false, 0, Some(filter)) => filter,
        // A simulation lets things go wrong on purpose; what counts is what its checkers say.
        (_, 0, _) if matches!(command, Command::Simulate(_)) => "off".to_owned(),
        (quiet, verbose, _) => log_filter(serves, quiet, verbose).to_owned(),
    };
    match telemetry::init(&filter, serves && common.json) {
        // Whoever runs commands inside a program of their own has a log already.
        Ok(()) | Err(TelemetryError::Started) => Ok(()),
        Err(error @ TelemetryError::Filter { .. }) => {
            Err(anyhow::Error::new(error).context(WrongUse(format!("{LOG_VARIABLE} is no filter"))))
        }
    }
}

/// The libraries below say one step less than we do.
fn log_filter(serves: bool, quiet: bool, verbose: u8) -> &'static str {
    match (quiet, verbose.saturating_add(u8::from(serves))) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "warn,mehman=info",
        (false, 2) => "warn,mehman=debug",
        (false, _) => "info,mehman=trace",
    }
}
