//! `simulate`: plays seeds and says what the checkers found (B3).

use std::ops::Range;

use anyhow::Context as _;

use super::arguments::{SimulateArgs, WantedFaults};
use super::failure::Exit;
use super::output::Output;
use super::text::counted;
use crate::simulation::{SimulationOptions, SimulationReport, run as play};

/// `simulate`.
pub(super) async fn run(args: &SimulateArgs, output: &Output) -> anyhow::Result<Exit> {
    let seeds: Range<u64> = args.seeds.clone().unwrap_or(args.seed..args.seed.saturating_add(1));
    let mut wrong = 0u64;
    for seed in seeds.clone() {
        let options = SimulationOptions {
            seed,
            hours: args.hours,
            hosts: args.hosts,
            faults: args.faults.iter().flat_map(WantedFaults::classes).collect(),
        };
        let command = options.command();
        // It needs a thread that belongs to no runtime: it has a runtime of its own.
        let played = tokio::task::spawn_blocking(move || play(&options)).await;
        let report = played
            .context("the simulation itself panicked")
            .and_then(|report| Ok(report?))
            .with_context(|| format!("to play it again: {command}"))?;
        wrong += u64::from(report.violations > 0);
        print(&report, &command, output)?;
    }
    if seeds.end - seeds.start > 1 && !output.is_json() {
        let seeds = counted(seeds.end - seeds.start, "seed");
        output.line(&format!("{seeds}, {wrong} with violations"));
    }
    Ok(if wrong > 0 { Exit::Failed } else { Exit::Done })
}

fn print(report: &SimulationReport, command: &str, output: &Output) -> anyhow::Result<()> {
    if output.is_json() {
        output.json(report)?;
    } else {
        output.line(&summary(report));
    }
    if report.violations > 0 {
        output.alert(&violated(report, command));
    }
    Ok(())
}

/// One line for a run.
fn summary(report: &SimulationReport) -> String {
    let faults = report.faults.iter().map(|(fault, times)| format!("{fault} {times}"));
    let faults = faults.collect::<Vec<_>>().join(", ");
    let faults = if faults.is_empty() { "none".to_owned() } else { faults };
    let unfinished = if report.is_done { "" } else { ", not done" };
    format!(
        "seed {}: {:.1} virtual hours{unfinished}, {}, {}, {}, faults: {faults}, {}, trace {}",
        report.seed,
        report.hours,
        counted(report.hosts.into(), "host"),
        counted(report.requests, "request"),
        counted(report.pages, "page"),
        counted(report.violations, "violation"),
        report.trace,
    )
}

/// What went wrong, what came before it, and how to see it again.
fn violated(report: &SimulationReport, command: &str) -> String {
    let mut lines = vec!["violations, the first of them:".to_owned()];
    lines.extend(report.violated.iter().map(|violation| format!("  {violation}")));
    lines.push("the end of the trace:".to_owned());
    lines.extend(report.last_lines.iter().map(|line| format!("  {line}")));
    lines.push(format!("to play it again: {command}"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::Useless;
    use crate::cli::output::Form;
    use crate::cli::output::capture::output;
    use crate::simulation::Fault;

    #[tokio::test]
    async fn a_run_is_one_line() {
        let lost = WantedFaults::One(Fault::Lost);
        let faults = vec![lost];
        let useless = Useless::default();
        let args = SimulateArgs { seed: 4, seeds: None, hours: 1, hosts: 3, faults, useless };
        let (output, results, notes) = output(Form::Text);
        assert_eq!(run(&args, &output).await.unwrap(), Exit::Done);
        let text = results.text();
        assert!(text.starts_with("seed 4: ") && text.contains(" 0 violations, trace "), "{text}");
        assert_eq!((text.lines().count(), notes.text()), (1, String::new()));
    }
}
