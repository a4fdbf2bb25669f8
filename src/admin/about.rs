//! `GET /about`: the page for those whose site was visited (open to all).

use axum::response::{Html, IntoResponse as _};

use super::router::{Call, Handled};
use super::state::AdminSettings;

/// The page, with places for what is escaped.
const PAGE: &str = include_str!("about.html");

/// `GET /about`.
pub(super) async fn show(call: Call) -> Handled {
    Ok(Html(page(&call.state.settings)).into_response())
}

fn page(settings: &AdminSettings) -> String {
    PAGE.replace("{contacts}", &contacts(settings))
        .replace("{user_agent}", &escaped(&settings.user_agent))
        .replace("{product}", &escaped(&settings.product))
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
            node: "local".into(),
        };
        let page = page(&settings);
        assert!(page.contains("&lt;b&gt;&#123;contacts}"), "{page}");
        assert!(page.contains("x/1 &amp; y"), "{page}");
        assert!(page.contains("mailto:a&quot;@b.test"), "{page}");
        assert!(!page.contains("href=\"javascript:"), "{page}");
    }
}
