//! The steps of a trace, each with what it looked at and how it came out.

use super::{
    Facts, Judged, Step, StepResult, before, budget, clock, fetched, hindrance, is_cap, retried,
    said, stopped, used_today,
};
use crate::policy::address::literal;
use crate::policy::robots::Decision;
use crate::types::{CrawlUrl, Reason, Timestamp, UrlStatus, span};

/// The steps that every URL passes on its way, in their order.
pub(super) fn of_way(url: &CrawlUrl, form: String, judged: &Judged, facts: &Facts) -> Vec<Step> {
    let known = facts.view.is_some();
    vec![
        passes("normalise", None, Some(form), None),
        Step {
            value: judged.scope_by.clone(),
            ..judged_step("scope", judged.scope.as_ref(), known)
        },
        exclusion_step(facts),
        robots_step(url, facts),
        judged_step("template", judged.trap.as_ref(), known),
        pause_step(facts),
        budget_step(facts),
        retry_step(facts),
        queue_step(facts),
        clock_step(facts),
        address_step(url, facts),
    ]
}

pub(super) fn passes(
    step: &str,
    rule: Option<String>,
    value: Option<String>,
    reason: Option<String>,
) -> Step {
    Step { step: step.to_owned(), rule, value, result: StepResult::Pass, reason }
}

pub(super) fn refuses(step: &str, rule: Option<String>, reason: String) -> Step {
    let (step, result) = (step.to_owned(), StepResult::Refuse);
    Step { step, rule, value: None, result, reason: Some(reason) }
}

/// Scope and traps bind what is not known yet; what was admitted once stays.
fn judged_step(step: &str, refused: Option<&Reason>, known: bool) -> Step {
    let Some(reason) = refused else { return passes(step, None, None, None) };
    let rule = rule_of(reason);
    match known {
        false => refuses(step, rule, reason.to_string()),
        true => {
            let told = format!("{reason}; it was admitted before, so this does not hold it");
            passes(step, rule, None, Some(told))
        }
    }
}

/// The rule that a reason carries.
fn rule_of(reason: &Reason) -> Option<String> {
    if let Reason::OutOfScope { rule } | Reason::ExcludedByScope { rule } | Reason::Trap { rule } =
        reason
    {
        return Some(rule.clone());
    }
    None
}

fn exclusion_step(facts: &Facts) -> Step {
    let Some(record) = &facts.exclusion else { return passes("exclusion", None, None, None) };
    let why = record.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let until = record.until.map(|until| format!(" until {until}")).unwrap_or_default();
    let told = format!("excluded{until}{why}");
    Step { value: Some(record.id.clone()), ..refuses("exclusion", Some(record.rule.clone()), told) }
}

fn robots_step(url: &CrawlUrl, facts: &Facts) -> Step {
    let value = Some(url.path_and_query().to_owned());
    let text = |line: u32, rule: &str| format!("line {line}: {rule}");
    match &facts.robots {
        Decision::Allow { line } => {
            let rule = line.map(|line| text(line, facts.allowed_by.as_deref().unwrap_or_default()));
            let none = rule.is_none().then(|| "no rule of robots.txt refuses it".to_owned());
            passes("robots", rule, value, none)
        }
        Decision::Refuse(reason) => {
            let rule = if let Reason::RobotsDisallow { line, rule } = reason {
                Some(text(*line, rule))
            } else {
                None
            };
            Step { value, ..refuses("robots", rule, reason.to_string()) }
        }
        Decision::NeedsFetch => {
            let told = match &facts.unreachable {
                Some(reason) => format!("{reason}; asked for again {}", again(facts, None)),
                None => Reason::RobotsNeeded.to_string(),
            };
            Step { result: StepResult::Wait, ..passes("robots", None, value, Some(told)) }
        }
        Decision::Wait { reason, until } => {
            let told = format!("{reason}; asked for again {}", again(facts, Some(*until)));
            Step { result: StepResult::Wait, ..passes("robots", None, value, Some(told)) }
        }
    }
}

/// When robots.txt is asked for again, its host's other waits looked at.
fn again(facts: &Facts, until: Option<Timestamp>) -> String {
    let host = facts.host.as_ref();
    let rests = host.map(|host| host.record.rests_until());
    let used_up = host.and_then(|host| host.record.used_up_until(host.budget));
    match until.max(rests).max(used_up).filter(|at| *at > facts.now) {
        Some(at) => format!("at {at}"),
        None => "next".to_owned(),
    }
}

fn pause_step(facts: &Facts) -> Step {
    match stopped(facts) {
        Some((whom, reason)) => {
            let (whom, told) = (Some(whom.to_owned()), Some(reason.to_string()));
            Step { result: StepResult::Wait, ..passes("pause", None, whom, told) }
        }
        None => passes("pause", None, None, None),
    }
}

fn budget_step(facts: &Facts) -> Step {
    let Some(host) = &facts.host else { return no_host("budget") };
    let used = used_today(host, facts.now);
    let value = Some(format!("{used} of {} requests today", host.budget));
    let held = budget(facts).or_else(|| facts.crawl.clone().filter(is_cap));
    let result = if held.is_some() { StepResult::Wait } else { StepResult::Pass };
    Step { result, ..passes("budget", None, value, held.map(|reason| reason.to_string())) }
}

fn retry_step(facts: &Facts) -> Step {
    let Some(view) = &facts.view else {
        return passes("retry", None, None, Some("it is not known".to_owned()));
    };
    let Some(visit) = &view.visit else {
        return passes("retry", None, Some("never tried".to_owned()), None);
    };
    let value = Some(match visit.attempts {
        1 => "1 try".to_owned(),
        tries => format!("{tries} tries"),
    });
    let later = visit.next_fetch_at.is_some_and(|at| at > facts.now);
    let (result, told) = match visit.status {
        UrlStatus::Dead => (StepResult::Refuse, said(visit, "given up")),
        UrlStatus::Retrying if later => (StepResult::Wait, retried(visit)),
        UrlStatus::Retrying => (StepResult::Pass, "its next try is due".to_owned()),
        UrlStatus::Fetched | UrlStatus::Gone if later => (StepResult::Wait, fetched(visit)),
        UrlStatus::Fetched | UrlStatus::Gone => (StepResult::Pass, fetched(visit)),
        UrlStatus::Sleeping => (StepResult::Refuse, said(visit, "sleeping")),
        UrlStatus::Queued => (StepResult::Pass, "never tried".to_owned()),
    };
    Step { result, ..passes("retry", None, value, Some(told)) }
}

fn queue_step(facts: &Facts) -> Step {
    let leased = facts.view.as_ref().is_some_and(|view| view.lease.is_some());
    let (value, told, waits) = match facts.place {
        _ if leased => (None, "granted".to_owned(), false),
        Some(place) => {
            let least = if place.found { "" } else { "at least " };
            (Some(format!("{least}{} before it", place.before)), before(place), place.before > 0)
        }
        None => (None, "it is not in the queue".to_owned(), false),
    };
    let result = if waits { StepResult::Wait } else { StepResult::Pass };
    Step { result, ..passes("queue_position", None, value, Some(told)) }
}

fn clock_step(facts: &Facts) -> Step {
    let Some(host) = &facts.host else { return no_host("host_clock") };
    let record = &host.record;
    let asked = record.site_wait_until.filter(|until| *until > facts.now);
    let asked = asked.map(|until| Reason::SiteAskedToWait { until });
    let held = asked.or_else(|| clock(facts));
    let result = if held.is_some() { StepResult::Wait } else { StepResult::Pass };
    let delay = record.delay.max(host.min_delay);
    let rule = Some(format!("{} between requests, set by {}", span(delay), record.set_by));
    let asked_before = record.next_allowed_at > Timestamp::EPOCH;
    let value = asked_before.then(|| record.next_allowed_at.to_string());
    let value = value.or_else(|| Some("never asked".to_owned()));
    Step { result, ..passes("host_clock", rule, value, held.map(|reason| reason.to_string())) }
}

/// H4: the address in the URL, or the one that its name was last found to have.
fn address_step(url: &CrawlUrl, facts: &Facts) -> Step {
    let value = literal(url).map(|address| address.to_string());
    if let Some(reason) = &facts.egress {
        return Step { value, ..refuses("address", None, reason.to_string()) };
    }
    let refused = |reason: &Reason| matches!(reason, Reason::EgressRefused { .. });
    match hindrance(facts).filter(refused) {
        Some(reason) => {
            let told = Some(reason.to_string());
            Step { result: StepResult::Wait, ..passes("address", None, value, told) }
        }
        None => passes("address", None, value, None),
    }
}

fn no_host(step: &str) -> Step {
    passes(step, None, None, Some("its host is not known".to_owned()))
}
