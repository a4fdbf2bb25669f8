//! `GET /about`: the page for those whose site was visited (open to all).

use std::time::Duration;

use axum::Json;
use axum::response::{Html, IntoResponse as _};
use serde_json::{Value, json};

use super::host_state::HostState;
use super::hosts::find;
use super::router::{Call, Handled};
use super::state::AdminSettings;
use crate::types::span;

/// The page, with places for what is escaped.
const PAGE: &str = include_str!("about.html");

/// `GET /about`.
pub(super) async fn show(call: Call) -> Handled {
    let host = match call.query.text("host") {
        None => String::new(),
        Some(text) => {
            let found = find(&call.state, text).await.ok();
            visits(text, found.as_ref())
        }
    };
    Ok(Html(page(&call.state.settings, &host)).into_response())
}

/// `GET /about/addresses.json`: in the form that large crawlers publish theirs.
pub(super) async fn addresses(call: Call) -> Handled {
    let prefixes = call.state.settings.addresses.iter().map(|network| {
        let text = network.to_string();
        let name = if text.contains(':') { "ipv6Prefix" } else { "ipv4Prefix" };
        json!({ name: text })
    });
    let prefixes: Vec<Value> = prefixes.collect();
    Ok(Json(json!({ "prefixes": prefixes })).into_response())
}

fn page(settings: &AdminSettings, host: &str) -> String {
    PAGE.replace("{contacts}", &contacts(settings))
        .replace("{addresses}", &networks(settings))
        .replace("{user_agent}", &escaped(&settings.user_agent))
        .replace("{product}", &escaped(&settings.product))
        .replace("{host}", host)
}

fn networks(settings: &AdminSettings) -> String {
    if settings.addresses.is_empty() {
        return "<p>The operator has not said from which addresses requests come.</p>".to_owned();
    }
    let listed = settings.addresses.iter();
    let listed: String = listed.map(|network| format!("<li><code>{network}</code></li>")).collect();
    format!(
        "<p>Requests come from these networks, also <a href=\"/about/addresses.json\">in a form \
         for programs</a>:</p><ul>{listed}</ul>"
    )
}

/// The delay as people read it.
fn delay(host: &HostState) -> String {
    let seconds = host.delay_seconds;
    Duration::try_from_secs_f64(seconds).map_or_else(|_| format!("{seconds} s"), span)
}

/// What was asked of one host lately, for those it belongs to.
fn visits(asked: &str, found: Option<&HostState>) -> String {
    let Some(host) = found else {
        let asked = escaped(asked);
        return format!("<h2>Your site</h2><p>No page of <code>{asked}</code> is known here.</p>");
    };
    let mut facts = vec![
        format!("{} requests today, of at most {}", host.pages_today, host.budget),
        format!("{} between two requests, set by {}", delay(host), host.delay_set_by),
    ];
    facts.extend(host.next_allowed_at.map(|at| format!("no request before {at}")));
    let robots = host.robots.fetched_at.map(|at| {
        let (state, rules) = (host.robots.state, host.robots.rules);
        format!("robots.txt was last asked for at {at}: {state}, {rules} rules for us")
    });
    facts.extend(robots);
    facts.push(format!("{} URLs known, {} of them queued", host.urls.known, host.queued));
    facts.extend(host.reason.clone());
    let listed: String = facts.iter().map(|fact| format!("<li>{}</li>", escaped(fact))).collect();
    let key = escaped(host.host_key.as_str());
    format!("<h2>Your site</h2><p><code>{key}</code></p><ul>{listed}</ul>")
}

fn contacts(settings: &AdminSettings) -> String {
    let mail = settings.contact_email.as_deref().map(|mail| {
        let mail = escaped(mail);
        format!("<li>by mail: <a href=\"mailto:{mail}\">{mail}</a></li>")
    });
    let page = settings.contact_url.as_deref().map(|url| {
        let shown = escaped(url);
        // Only a web address becomes a link: a script would run in the visitor's browser.
        let web = url.starts_with("https://") || url.starts_with("http://");
        let shown =
            if web { format!("<a href=\"{shown}\" rel=\"noreferrer\">{shown}</a>") } else { shown };
        format!("<li>on the web: {shown}</li>")
    });
    let listed: String = mail.into_iter().chain(page).collect();
    if listed.is_empty() {
        "<p>The operator of this crawl has not named a contact.</p>".to_owned()
    } else {
        format!("<ul>{listed}</ul>")
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '{' => safe.push_str("&#123;"),
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_cannot_break_out() {
        let settings = AdminSettings {
            listen: "127.0.0.1:1".parse().unwrap(),
            token: None,
            product: "<b>{contacts}".into(),
            version: "0".into(),
            contact_url: Some("javascript:alert(1)".into()),
            contact_email: Some("a\"@b.test".into()),
            user_agent: "x/1 & y".into(),
            addresses: Vec::new(),
            node: "local".into(),
        };
        let host = visits("<i>", None);
        let page = page(&settings, &host);
        assert!(page.contains("&lt;i&gt;</code> is known here"), "{page}");
        assert!(page.contains("has not said from which addresses"), "{page}");
        assert!(page.contains("&lt;b&gt;&#123;contacts}"), "{page}");
        assert!(page.contains("x/1 &amp; y"), "{page}");
        assert!(page.contains("mailto:a&quot;@b.test"), "{page}");
        assert!(!page.contains("href=\"javascript:"), "{page}");
    }
}
