//! R1, R2: what comes for robots.txt over the wire, and what it leads to: the real binary against
//! sites on loopback, one answer each. `docs/robots.md` names these tests.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod support;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use serde_json::Value;
use support::data;
use support::node::{Home, LOCAL};
use support::site::{Reply, Site};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;

/// What every robots.txt of these tests says: `/closed` is not to be asked for.
const RULES: &str = "User-agent: *\nDisallow: /closed\n";

/// A site whose robots.txt is answered so; everything else is a page without links.
async fn site(robots: Reply) -> Site {
    serves(move |path| (path == "/robots.txt").then(|| robots.clone())).await
}

/// A site with these answers before its pages.
async fn serves(special: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static) -> Site {
    Site::start(move |request| {
        let page = || Reply::html(format!("<title>{}</title>a page", request.path));
        special(&request.path).unwrap_or_else(page)
    })
    .await
}

fn rules() -> Reply {
    Reply::text(RULES)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A configuration in which a site that says nothing is given up soon, and is not asked again soon.
fn config() -> String {
    let impatient = LOCAL.replace("workers = 50", "workers = 50\nfirst_byte_timeout = \"1s\"");
    impatient.replace("500ms", "30s")
}

fn home() -> Home {
    Home::new(&config())
}

/// Crawls `/` and `/closed` of each site; what is told at the end.
async fn crawl(home: &Home, keys: &[String]) -> Value {
    let seeds: Vec<String> =
        keys.iter().flat_map(|key| [format!("{key}/"), format!("{key}/closed")]).collect();
    let mut line = vec!["crawl", "--json", "--patience", "3s"];
    line.extend(seeds.iter().map(String::as_str));
    home.run(&line, 60).await.expect(0).json()
}

fn keys(sites: &[(&str, Site)]) -> Vec<String> {
    sites.iter().map(|(_, site)| site.key()).collect()
}

/// Pages that were asked for.
fn pages(site: &Site) -> BTreeSet<String> {
    site.paths().into_iter().filter(|path| !path.contains("robots")).collect()
}

fn set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// The status with which each robots.txt of a site lies in the index of the archive.
fn archived(home: &Home, site: &Site) -> Vec<(String, String)> {
    let lines = data::index(&home.data()).into_iter();
    let mut found: Vec<(String, String)> = lines
        .filter_map(|line| {
            let path = line.fields["url"].as_str()?.strip_prefix(&site.key())?.to_owned();
            let status = line.fields["status"].as_str()?.to_owned();
            path.contains("robots").then_some((path, status))
        })
        .collect();
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_leave_everything_open() {
    let mut sites = Vec::new();
    for code in [400, 401, 402, 403, 404, 410, 418, 451] {
        // The body of an error is no robots.txt, whatever it says.
        sites.push(("error", site(Reply::status(code).body(RULES)).await));
    }
    let html = "<!doctype html><title>Not here</title><p>Disallow nothing, find nothing.";
    sites.push(("a page of HTML in its place", site(Reply::html(html)).await));
    sites.push(("empty", site(Reply::text("")).await));
    sites.push(("204", site(Reply::status(204)).await));
    sites.push(("a redirect without Location", site(Reply::status(302).body(RULES)).await));
    sites.push(("a redirect to nowhere", site(Reply::redirect(301, "mailto:a@b.test")).await));
    sites.push(("a redirect to itself", site(Reply::redirect(301, "/robots.txt")).await));
    let home = home();
    let told = crawl(&home, &keys(&sites)).await;
    assert_eq!(told["ended"], "done", "{told}");
    for (name, site) in &sites {
        assert_eq!(pages(site), set(&["/", "/closed"]), "{name} {:?}", site.requests()[0].status);
        let asked: Vec<u16> = site.requests().iter().map(|request| request.status).collect();
        let kept = archived(&home, site);
        let robots: Vec<String> = asked[..asked.len() - 2].iter().map(u16::to_string).collect();
        let statuses: Vec<String> = kept.into_iter().map(|(_, status)| status).collect();
        assert_eq!(statuses, robots, "{name}: every answer is archived");
    }
    let (_, circle) = sites.last().unwrap();
    assert_eq!(circle.counts()["/robots.txt"], 6, "five redirects are followed");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_whose_rules_are_obeyed() {
    let coded = |coding: &str, body: Vec<u8>| rules().header("Content-Encoding", coding).body(body);
    let typed = |media: &str| Reply::status(200).header("Content-Type", media).body(RULES);
    let late = format!("User-agent: *\n{}Disallow: /closed\n", "# nothing\n".repeat(52_000));
    assert!(late.len() > 500 * 1024);
    let endless = format!("{RULES}{}", "# nothing\n".repeat(300_000));
    let one_line = format!("{RULES}#{}", "x".repeat(3_000_000));
    let utf16: Vec<u8> =
        format!("\u{FEFF}{RULES}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let unlimited = format!("HTTP/1.0 200 OK\r\n\r\n{RULES}");
    let sites = [
        ("text/plain", site(rules()).await),
        ("a picture by its type", site(typed("image/png")).await),
        ("HTML by its type", site(typed("text/html")).await),
        ("no type", site(Reply::status(200).body(RULES)).await),
        ("203", site(Reply::status(203).body(RULES)).await),
        ("a mark", site(Reply::text(format!("\u{FEFF}{RULES}"))).await),
        ("UTF-16", site(Reply::text("").body(utf16)).await),
        ("CR", site(Reply::text(RULES.replace('\n', "\r"))).await),
        ("CRLF", site(Reply::text(RULES.replace('\n', "\r\n"))).await),
        ("junk", site(Reply::text(format!("\0\u{1}<b>:::\nDisallow /x y z\n{RULES}"))).await),
        ("gzip", site(coded("gzip", gzip(RULES.as_bytes()))).await),
        ("deflate", site(coded("deflate", deflate(RULES.as_bytes()))).await),
        ("behind 500 KiB", site(Reply::text(late)).await),
        ("three megabytes", site(Reply::text(endless)).await),
        ("a line of three megabytes", site(Reply::text(one_line)).await),
        ("until the connection ends", site(Reply::raw(unlimited)).await),
    ];
    let home = home();
    let told = crawl(&home, &keys(&sites)).await;
    assert_eq!(told["ended"], "done", "{told}");
    for (name, site) in &sites {
        assert_eq!(pages(site), set(&["/"]), "{name}");
        assert_eq!(site.counts()["/robots.txt"], 1, "{name}: any port is a host of its own");
        assert_eq!(archived(&home, site).len(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_lead_to_the_rules_of_the_host_that_was_asked() {
    let hops = |last: usize| {
        move |path: &str| {
            let hop = path.strip_prefix("/robots")?.strip_suffix(".txt")?;
            let hop: usize = hop.trim_start_matches('-').parse().unwrap_or(0);
            let codes = [301, 302, 303, 307, 308];
            Some(match hop {
                hop if hop < last => {
                    Reply::redirect(codes[hop % 5], format!("robots-{}.txt", hop + 1))
                }
                _ => rules(),
            })
        }
    };
    let other = site(rules()).await;
    let elsewhere = format!("{}/robots.txt", other.key());
    let away = site(Reply::redirect(301, elsewhere)).await;
    let back = site(Reply::redirect(302, format!("{}/robots.txt", away.key()))).await;
    let sites = [
        ("five hops", serves(hops(5)).await),
        ("six hops", serves(hops(6)).await),
        ("another host", away),
        ("two other hosts", back),
    ];
    let home = home();
    let told = crawl(&home, &keys(&sites)).await;
    assert_eq!(told["ended"], "done", "{told}");
    let [five, six, away, back] = sites.map(|(_, site)| site);
    assert_eq!(pages(&five), set(&["/"]));
    assert_eq!(pages(&six), set(&["/", "/closed"]), "the sixth hop is not followed");
    assert_eq!(archived(&home, &six).len(), 6, "every hop is archived");
    assert_eq!((pages(&away), pages(&back)), (set(&["/"]), set(&["/"])));
    assert!(pages(&other).is_empty(), "it was asked for rules of others and nothing else");
    let kept: BTreeSet<_> = archived(&home, &five).into_iter().map(|(_, status)| status).collect();
    assert_eq!(kept, set(&["200", "301", "302", "303", "307", "308"]));
    assert_eq!(archived(&home, &away)[0].1, "301");
    assert!(archived(&home, &other).iter().all(|(_, status)| status == "200"));
    assert!(!archived(&home, &other).is_empty(), "a hop lies where it was asked for");
}

/// A name server on loopback for which no name is there.
async fn no_names() -> (String, JoinHandle<()>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let answers = tokio::spawn(async move {
        let mut packet = [0; 1_500];
        while let Ok((length, asker)) = socket.recv_from(&mut packet).await {
            // The question as it came, as an answer that says NXDOMAIN.
            packet[2] |= 0x80;
            packet[3] = (packet[3] & 0xF0) | 3;
            socket.send_to(&packet[..length], asker).await.unwrap();
        }
    });
    (address, answers)
}

/// The reason with which a host waits at the end of a crawl.
fn reason(told: &Value, key: &str) -> String {
    let waiting = told["waiting"].as_array().unwrap();
    let host = waiting.iter().find(|host| host["host_key"] == key);
    let host = host.unwrap_or_else(|| panic!("{key} does not wait: {told}"));
    host["reason"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_let_nothing_out() {
    let half = format!("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{RULES}");
    let broken = rules().header("Content-Encoding", "gzip").body(RULES);
    let mut cut = gzip(RULES.repeat(50).as_bytes());
    cut.truncate(40);
    let cut = rules().header("Content-Encoding", "gzip").body(cut);
    let strange = rules().header("Content-Encoding", "br");
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let nobody = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let to_nobody = Reply::redirect(301, format!("{nobody}/robots.txt"));
    let mut sites = vec![
        ("no answer in time", site(rules().after(Duration::from_secs(4))).await),
        ("hung up", site(Reply::hang_up()).await),
        ("no HTTP", site(Reply::raw("220 mail.test ESMTP\r\n")).await),
        ("half a body", site(Reply::raw(half)).await),
        ("no gzip where it is promised", site(broken).await),
        ("half of a gzip body", site(cut).await),
        ("a coding nobody asked for", site(strange).await),
        ("a redirect to a closed port", site(to_nobody).await),
    ];
    for code in [429, 500, 502, 503, 504, 599] {
        sites.push(("error", site(Reply::status(code).body(RULES)).await));
    }
    let (names, answers) = no_names().await;
    let home = Home::new(&format!("{}[dns]\nnameservers = [\"{names}\"]\n", config()));
    let mut all = keys(&sites);
    all.extend([nobody.clone(), "http://nowhere.test".to_owned()]);
    let told = crawl(&home, &all).await;
    assert_eq!(told["ended"], "waiting", "{told}");
    for (name, site) in &sites {
        assert_eq!(pages(site), BTreeSet::new(), "{name} {:?}", site.requests()[0].status);
        assert_eq!(site.counts()["/robots.txt"], 1, "{name}: the next try is half a minute away");
        let status = site.requests()[0].status;
        if (400..600).contains(&status) {
            let kept = archived(&home, site);
            assert_eq!(kept, [("/robots.txt".to_owned(), status.to_string())], "archived");
        }
    }
    for key in all {
        let reason = reason(&told, &key);
        // Where the refusal asks for more than the file does, that is said.
        let said = reason.starts_with("robots.txt unreachable") || reason.contains("refusal");
        assert!(said, "R2: {key} says why its pages wait: {reason}");
    }
    answers.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_we_refuse_is_told_as_that() {
    let site = Site::start(|_| rules()).await;
    let home = Home::new(&LOCAL.replace("127.0.0.0/8", "127.9.9.9/32"));
    let told = crawl(&home, &[site.key()]).await;
    assert!(site.requests().is_empty());
    let reason = reason(&told, &site.key());
    assert!(reason.contains("127.0.0.1") && !reason.contains("robots.txt"), "{reason}");
    let host = home.run(&["host", &site.key(), "--json"], 20).await.expect(0).json();
    assert_eq!(host["robots"]["state"], "unfetched", "it says nothing of the site: {host}");
}
