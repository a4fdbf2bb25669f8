//! `GET /metrics`: what the actors say at the moment of the scrape, and what nobody's state holds
//! (U4).

use axum::http::{HeaderValue, header};
use axum::response::IntoResponse as _;

use super::router::{Call, Handled};
use super::state::AdminState;
use super::status::{RunState, Survey, sum_up, survey, total};
use crate::protocol::shard::ShardView;
use crate::telemetry::{Family, as_float, render};
use crate::types::Outcome;

/// The media type of the text exposition format.
pub(super) const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`.
pub(super) async fn scrape(call: Call) -> Handled {
    let survey = survey(&call.state).await;
    let mut families = node(&call.state, &survey);
    let total = total(&survey);
    families.extend(fetch(&total));
    families.extend(frontier(&total));
    families.extend(stages(&survey));
    families.extend(call.state.metrics.families());
    let kind = HeaderValue::from_static(PROMETHEUS);
    Ok(([(header::CONTENT_TYPE, kind)], render(&families)).into_response())
}

fn node(state: &AdminState, survey: &Survey) -> Vec<Family> {
    let status = sum_up(state, survey);
    let states = [
        ("running", RunState::Running),
        ("paused", RunState::Paused),
        ("draining", RunState::Draining),
        ("degraded", RunState::Degraded),
    ];
    let mut run = Family::gauge("mehman_node_state", "1 at the state the node is in.");
    for (name, one) in states {
        run = run.with(&[("state", name)], if status.state == one { 1.0 } else { 0.0 });
    }
    let up = survey.shards.iter().filter(|(_, view)| view.is_ok()).count();
    let uptime = state.clock.now().since(state.started_at).as_secs_f64();
    vec![
        Family::gauge("mehman_build_info", "1, with the version of the program.")
            .with(&[("version", &state.settings.version)], 1.0),
        run,
        Family::gauge("mehman_node_uptime_seconds", "Time since the node started.")
            .with(&[], uptime),
        Family::gauge("mehman_shards", "Shards of the frontier.")
            .with(&[("state", "up")], count(up))
            .with(&[("state", "down")], count(survey.shards.len().saturating_sub(up))),
    ]
}

fn fetch(total: &ShardView) -> Vec<Family> {
    let mut outcomes = Family::counter(
        "mehman_fetch_exchanges_total",
        "Exchanges ended, robots.txt included, by outcome.",
    );
    for outcome in Outcome::ALL {
        let ended = total.outcomes.get(&outcome).copied().unwrap_or_default();
        outcomes = outcomes.with(&[("outcome", outcome.as_str())], as_float(ended));
    }
    vec![
        counter("mehman_fetch_pages_total", "Exchanges ended, robots.txt left out.", total.pages),
        counter("mehman_fetch_bytes_total", "Bytes of bodies as received.", total.bytes),
        outcomes,
        counter(
            "mehman_policy_violations_total",
            "Requests sent outside their lease, or answered from another address; must be 0.",
            total.violations,
        ),
        counter(
            "mehman_lease_repeats_total",
            "Completions that came for a lease that had ended already.",
            total.repeated,
        ),
        counter("mehman_host_restarts_total", "HostActors started again.", total.restarts),
    ]
}

fn frontier(total: &ShardView) -> Vec<Family> {
    let urls = Family::gauge("mehman_frontier_urls", "URLs by state.")
        .with(&[("state", "known")], as_float(total.urls.known))
        .with(&[("state", "queued")], as_float(total.queued()))
        .with(&[("state", "in_flight")], f64::from(total.in_flight))
        .with(&[("state", "deferred")], as_float(total.urls.deferred))
        .with(&[("state", "sleeping")], as_float(total.urls.sleeping))
        .with(&[("state", "dead")], as_float(total.urls.dead));
    let hosts = Family::gauge("mehman_frontier_hosts", "Hosts by state.")
        .with(&[("state", "known")], as_float(total.hosts_known))
        .with(&[("state", "resident")], f64::from(total.hosts_resident))
        .with(&[("state", "ready")], f64::from(total.hosts_ready))
        .with(&[("state", "waiting")], f64::from(total.hosts_waiting))
        .with(&[("state", "parked")], f64::from(total.hosts_parked))
        .with(&[("state", "in_flight")], f64::from(total.hosts_in_flight));
    let lag = "How late the most overdue host is.";
    vec![
        urls,
        hosts,
        Family::gauge("mehman_frontier_lag_seconds", lag).with(&[], total.lag_seconds),
        gauge("mehman_frontier_admissions", "Batches of candidates under way.", total.admitting),
        gauge("mehman_parse_backlog_pages", "Pages fetched and not yet parsed.", total.parsing),
        gauge("mehman_store_unwritten_batches", "Writes not yet durable.", total.unwritten),
    ]
}

fn stages(survey: &Survey) -> Vec<Family> {
    let mut workers = Family::gauge("mehman_pool_workers", "Workers by pool and state.");
    let mut waiting = Family::gauge("mehman_pool_jobs", "Jobs that wait in a pool's channel.");
    for (name, view) in &survey.pools {
        let Ok(view) = view else { continue };
        let idle = view.workers.saturating_sub(view.busy);
        workers = workers
            .with(&[("pool", name), ("state", "busy")], view.busy.into())
            .with(&[("pool", name), ("state", "idle")], idle.into());
        waiting = waiting.with(&[("pool", name)], view.waiting.into());
    }
    let (mut records, mut bytes, mut unsynced) = (0, 0, 0);
    for view in survey.archives.iter().flatten() {
        records += view.records;
        bytes += view.bytes;
        unsynced += view.waiting;
    }
    let (mut judged, mut offered, mut refused) = (0, 0, 0);
    for view in survey.discovery.iter().flatten() {
        judged += view.judged;
        offered += view.offered;
        refused += view.refused;
    }
    vec![
        workers,
        waiting,
        counter("mehman_archive_records_total", "Records written.", records),
        counter("mehman_archive_bytes_total", "Bytes written to archive files.", bytes),
        gauge("mehman_archive_waiting_responses", "Responses that wait for a sync.", unsynced),
        counter("mehman_discovery_judged_urls_total", "Links and seeds judged.", judged),
        counter("mehman_discovery_offered_urls_total", "Links handed to shards.", offered),
        counter("mehman_discovery_refused_urls_total", "Links and seeds refused.", refused),
    ]
}

fn counter(name: &'static str, help: &'static str, value: u64) -> Family {
    Family::counter(name, help).with(&[], as_float(value))
}

fn gauge(name: &'static str, help: &'static str, value: u32) -> Family {
    Family::gauge(name, help).with(&[], f64::from(value))
}

fn count(number: usize) -> f64 {
    as_float(u64::try_from(number).unwrap_or(u64::MAX))
}
