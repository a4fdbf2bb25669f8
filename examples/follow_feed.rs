//! Follows the feed of events from a cursor on, until there is nothing new for some seconds.
//!
//! `cargo run --example follow_feed -- http://127.0.0.1:8070 [CURSOR]`
//!
//! Events come at least once. A reader keeps the cursor of the last line it has dealt with, and
//! tells repeats by (`type`, `url_id`, `version`, `parser_version`).
#![expect(clippy::print_stdout, reason = "an example speaks to its reader")]

use anyhow::Context as _;
use serde_json::Value;

/// How long an answer waits for the first line, in seconds.
const WAIT: u64 = 5;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The HTTP library wants to know who encrypts, also where nothing is encrypted.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let mut arguments = std::env::args().skip(1);
    let daemon = arguments.next().context("give the daemon's address")?;
    let mut cursor = arguments.next();
    let client = reqwest::Client::new();
    loop {
        let mut url = format!("{daemon}/v1/events?limit=500&wait={WAIT}");
        if let Some(cursor) = &cursor {
            url.push_str("&after=");
            url.push_str(cursor);
        }
        let response = client.get(url).send().await?;
        let status = response.status();
        let lines = String::from_utf8(response.bytes().await?.to_vec())?;
        // 410: the cursor has aged out, and the feed is to be read from its beginning.
        anyhow::ensure!(status.is_success(), "{status}: {lines}");
        if lines.is_empty() {
            break;
        }
        for line in lines.lines() {
            let event: Value = serde_json::from_str(line)?;
            let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
            println!("{}\t{}\t{}", text("at"), text("type"), text("url"));
            cursor = Some(text("cursor"));
        }
    }
    println!("nothing new; go on from {}", cursor.unwrap_or_default());
    Ok(())
}
