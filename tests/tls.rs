//! A web over HTTPS with gzip, served by one process of the real binary and crawled by another, as
//! `examples/throughput.rs` does it at full size (H6, O1, U1).

mod support;

use std::sync::Arc;

use mehman::sandbox::{Handshakes, PageSizes, Sandbox, SandboxOptions, Security};
use mehman::world::TokioClock;
use serde_json::Value;
use support::node::{Home, LOCAL, Running};
use support::{data, until};

/// What a command of the sandbox says once it serves.
async fn announced(web: &Running) -> Value {
    until("the sandbox serves", 30, async || {
        let said = web.said();
        serde_json::from_str(said.trim()).ok()
    })
    .await
}

fn configured(dns: &str, ca_file: &str) -> String {
    let own = LOCAL.replace("[fetch]", &format!("[fetch]\nextra_ca_files = [\"{ca_file}\"]"));
    format!("{own}[dns]\nnameservers = [\"{dns}\"]\n[scope]\nmode = \"any\"\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_over_https_is_crawled_by_whoever_trusts_its_authority() {
    let home = Home::local();
    let line = ["sandbox", "--tls", "--hosts", "6", "--pages", "5", "--json"];
    let web = home.start_plain(&line);
    let told = announced(&web).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", web.pid())).unwrap_or_default();
    assert!(!status.contains("THP_enabled:\t1"), "huge pages cost five times the memory");
    let (dns, ca_file) = (told["dns"].as_str().unwrap(), told["ca_file"].as_str().unwrap());
    let command = told["command"].as_str().unwrap();
    assert!(command.contains(&format!("MEHMAN__FETCH__EXTRA_CA_FILES={ca_file}")), "{command}");
    let seed = told["seeds"][0].as_str().unwrap();
    assert!(seed.starts_with("https://"), "{told}");

    let crawl = ["crawl", seed, "--json", "--max-pages", "12", "--patience", "5s"];
    home.configure(&configured(dns, ca_file));
    let told = home.run(&crawl, 120).await.expect(0).json();
    assert_eq!((&told["ended"], &told["pages"]), (&"max_pages".into(), &12.into()), "{told}");
    assert_eq!(told["outcomes"]["tls"], Value::Null, "{told}");
    let pages = data::pages(&home.data());
    assert!(pages.iter().all(|page| page["url"].as_str().unwrap().starts_with("https://")));
    assert!(pages.iter().any(|page| page["text"].as_str().unwrap().len() > 1000));

    // Whoever does not trust it gets nothing from it.
    let stranger = Home::new(&configured(dns, ca_file).replace("extra_ca_files", "#"));
    let told = stranger.run(&crawl, 120).await.expect(0).json();
    assert_eq!(told["pages"], 0, "{told}");
    assert_ne!(told["outcomes"]["tls"], Value::Null, "{told}");

    web.signal("-TERM");
    web.ended(30).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_keeps_its_connection_sees_one_handshake_and_one_that_closes_sees_resumptions()
{
    for keep_alive in [true, false] {
        let options = SandboxOptions {
            hosts: 1,
            pages_per_host: 12,
            sizes: PageSizes::Small,
            security: Security::Tls { resumption: true },
            keep_alive,
            prepared: true,
            ..SandboxOptions::default()
        };
        let web = Sandbox::start(options, Arc::new(TokioClock::system())).await.unwrap();
        let home = Home::local();
        let file = home.path("ca.pem");
        std::fs::write(&file, web.authority().unwrap()).unwrap();
        let dns = web.dns_address().to_string();
        home.configure(&configured(&dns, file.to_str().unwrap()));
        let seed = web.seeds().remove(0);
        let line = ["crawl", &seed, "--json", "--max-pages", "8", "--patience", "5s"];
        let told = home.run(&line, 120).await.expect(0).json();
        assert_eq!(told["pages"], 8, "{told}");
        assert_eq!(web.visit_count(), 9);
        let expected = match keep_alive {
            true => Handshakes { full: 1, resumed: 0, failed: 0 },
            false => Handshakes { full: 1, resumed: 8, failed: 0 },
        };
        assert_eq!(web.handshakes(), expected);
        web.shutdown().await;
    }
}
