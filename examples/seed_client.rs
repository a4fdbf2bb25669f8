//! Gives seeds to a running daemon over HTTP.
//!
//! `cargo run --example seed_client -- http://127.0.0.1:8070 https://example.org/`
//!
//! A daemon away from loopback asks for its token: `MEHMAN_ADMIN_TOKEN`.
#![expect(clippy::print_stdout, reason = "an example speaks to its reader")]

use anyhow::Context as _;
use mehman::protocol::discovery::SeedAnswer;
use serde::Deserialize;
use serde_json::json;

/// The daemon's answer; it comes when the accepted seeds are durable.
#[derive(Deserialize)]
struct Answer {
    accepted: u64,
    known: u64,
    refused: u64,
    results: Vec<SeedAnswer>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The HTTP library wants to know who encrypts, also where nothing is encrypted.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let mut arguments = std::env::args().skip(1);
    let daemon = arguments.next().context("give the daemon's address")?;
    let seeds: Vec<_> = arguments.map(|url| json!({ "url": url, "priority": 0.9 })).collect();
    anyhow::ensure!(!seeds.is_empty(), "give URLs to begin with");

    let mut request = reqwest::Client::new()
        .post(format!("{daemon}/v1/seeds"))
        .header("content-type", "application/json")
        .body(json!({ "urls": seeds }).to_string());
    if let Ok(token) = std::env::var("MEHMAN_ADMIN_TOKEN") {
        request = request.bearer_auth(token);
    }
    let response = request.send().await?;
    let status = response.status();
    let body = response.bytes().await?;
    anyhow::ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));

    let answer: Answer = serde_json::from_slice(&body)?;
    println!("{} accepted, {} known, {} refused", answer.accepted, answer.known, answer.refused);
    for seed in answer.results {
        println!("{:?}\t{}\t{}", seed.result, seed.url, seed.reason.unwrap_or_default());
    }
    Ok(())
}
