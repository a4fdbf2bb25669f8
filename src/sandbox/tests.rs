//! The sandbox as a visitor meets it: names, pages, validators, and the whole of it by its links.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;
use std::net::Ipv4Addr;

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ProtocolConfig, ResolverConfig,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Resolver, TokioResolver};
use scraper::{Html, Selector};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use url::Url;

use super::page::page;
use super::site::{HostPlan, Link, Target, calendar_day, host_name, host_number};
use super::*;
use crate::types::Timestamp;
use crate::world::TokioClock;

mod crawl;
mod tls;

fn small() -> SandboxOptions {
    SandboxOptions {
        hosts: 12,
        pages_per_host: 14,
        sizes: PageSizes::Small,
        slow: std::time::Duration::from_millis(20),
        drip: std::time::Duration::from_millis(2),
        big_bytes: 64 * 1024,
        ..SandboxOptions::default()
    }
}

fn shape(options: SandboxOptions) -> Shape {
    Shape { options, http_port: 8080, closed_port: 8081 }
}

async fn started(options: SandboxOptions) -> Sandbox {
    let clock = TokioClock::starting_at(Timestamp::from_secs(1_800_000_000));
    Sandbox::start(options, Arc::new(clock)).await.unwrap()
}

/// An answer as read from the socket.
struct Got {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// One request over a connection of its own, to the address that carries the host.
async fn get(sandbox: &Sandbox, url: &str, headers: &str) -> Got {
    let url = Url::parse(url).unwrap();
    let name = url.host_str().unwrap();
    let host = host_number(name, sandbox.web.shape.options.hosts).unwrap();
    let address = sandbox.zone.address(host).unwrap();
    let mut stream = TcpStream::connect((address, url.port().unwrap())).await.unwrap();
    let path = &url[url::Position::BeforePath..];
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {name}:{}\r\nUser-Agent: guest/1\r\nConnection: close\r\n\
         {headers}\r\n",
        sandbox.http_port()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw).await.unwrap();
    let end = raw.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let (head, body) = raw.split_at(end + 4);
    let head = std::str::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Got { status, headers, body: body.to_vec() }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let (one, two) = (shape(small()), shape(small()));
    let other = shape(SandboxOptions { seed: 2, ..small() });
    let mut different = 0;
    for host in 0..12 {
        let (here, there) = (HostPlan::new(&one, host), HostPlan::new(&two, host));
        assert_eq!(here, there);
        let elsewhere = HostPlan::new(&other, host);
        for nth in 0..here.nodes.len() {
            assert_eq!(page(&one, &here, nth), page(&two, &there, nth));
            different += u32::from(page(&one, &here, nth) != page(&other, &elsewhere, nth));
        }
    }
    assert!(different > 100, "only {different} pages depend on the seed");
}

#[test]
fn every_page_of_a_host_is_reachable_from_its_front_page() {
    let shape = shape(SandboxOptions::default());
    for host in 0..40 {
        let plan = HostPlan::new(&shape, host);
        let mut next = VecDeque::from([0]);
        let mut seen = BTreeSet::new();
        while let Some(nth) = next.pop_front() {
            if !seen.insert(nth) {
                continue;
            }
            let node = plan.node(nth).unwrap();
            let redirect = node.redirect.map(|(_, to)| to);
            for to in node.links.iter().map(|link: &Link| link.to).chain(redirect) {
                if let Target::Here(there) = to {
                    next.push_back(there);
                }
            }
        }
        assert_eq!(seen.len(), plan.nodes.len(), "host {host}");
    }
}

#[test]
fn paths_of_a_host_are_its_pages() {
    let shape = shape(SandboxOptions::default());
    for host in 0..40 {
        let plan = HostPlan::new(&shape, host);
        for (nth, node) in plan.nodes.iter().enumerate() {
            assert_eq!(plan.find(&node.path), Some(nth), "{}", node.path);
            let url = shape.url(host, &node.path);
            assert_eq!(Url::parse(&url).unwrap().as_str(), url, "not in normal form");
        }
    }
}

#[test]
fn the_default_web_has_every_behaviour_and_about_the_pages_asked_for() {
    let shape = shape(SandboxOptions::default());
    let plans: Vec<HostPlan> = (0..40).map(|host| HostPlan::new(&shape, host)).collect();
    let behaviours: BTreeSet<Behaviour> =
        plans.iter().flat_map(|plan| &plan.nodes).map(|node| node.behaviour).collect();
    assert_eq!(behaviours.len(), 22, "{behaviours:?}");
    let pages: usize = plans.iter().map(|plan| plan.nodes.len()).sum();
    assert!((700..=1300).contains(&pages), "{pages} pages");
}

#[test]
fn sizes_are_those_of_the_web() {
    for (sizes, median, mean) in [
        (PageSizes::Demo, 35..50, 50..75),
        (PageSizes::Realistic, 130..180, 210..270),
        (PageSizes::Prose, 130..180, 210..270),
    ] {
        let shape = shape(SandboxOptions { sizes, pages_per_host: 40, ..Default::default() });
        let mut bytes = Vec::new();
        for host in [0, 7, 9, 12, 15, 16, 17, 19] {
            let plan = HostPlan::new(&shape, host);
            let articles = (0..plan.nodes.len())
                .filter(|nth| plan.nodes[*nth].behaviour == Behaviour::Article);
            bytes.extend(articles.map(|nth| page(&shape, &plan, nth).body.len() / 1024));
        }
        bytes.sort_unstable();
        assert!(median.contains(&bytes[bytes.len() / 2]), "median {}", bytes[bytes.len() / 2]);
        let average = bytes.iter().sum::<usize>() / bytes.len();
        assert!(mean.contains(&average), "mean {average} of {}", bytes.len());
    }
}

#[test]
fn host_names_are_read_as_they_are_written() {
    assert_eq!(host_name(7), "site-007.test");
    assert_eq!(host_number("Site-007.TEST.", 40), Some(7));
    assert_eq!(host_number("site-1234.test", 2000), Some(1234));
    for name in ["site-7.test", "site-040.test", "test", "site-007.example"] {
        assert_eq!(host_number(name, 40), None, "{name}");
    }
    assert_eq!(calendar_day("/calendar/12.html"), Some(12));
    assert_eq!(calendar_day("/calendar/012.html"), None);
}

fn resolver(sandbox: &Sandbox, protocol: ProtocolConfig) -> TokioResolver {
    let mut connection = ConnectionConfig::new(protocol);
    connection.port = sandbox.dns_address().port();
    let server = NameServerConfig::new(sandbox.dns_address().ip(), true, vec![connection]);
    let config = ResolverConfig::from_name_servers(vec![server]);
    let mut builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.options_mut().attempts = 0;
    builder.build().unwrap()
}

#[tokio::test]
async fn names_resolve_over_udp_and_tcp() {
    let sandbox = started(small()).await;
    for protocol in [ProtocolConfig::Udp, ProtocolConfig::Tcp] {
        let resolver = resolver(&sandbox, protocol);
        for host in [0, 1, 8, 11] {
            let found = resolver.lookup_ip(format!("{}.", host_name(host))).await.unwrap();
            let found: Vec<_> = found.iter().collect();
            assert_eq!(found, [sandbox.zone.address(host).unwrap()]);
        }
        let missing = resolver.lookup_ip("nowhere.test.").await.unwrap_err();
        assert!(missing.is_nx_domain(), "{missing}");
        let failing = resolver.lookup_ip("servfail.test.").await.unwrap_err();
        assert!(!failing.is_nx_domain() && !failing.is_no_records_found(), "{failing}");
    }
    sandbox.shutdown().await;
}

#[tokio::test]
async fn dns_answers_say_what_is_not_there() {
    let sandbox = started(small()).await;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let cases = [
        ("Site-003.test.", RecordType::A, ResponseCode::NoError, 1, 0),
        ("site-003.test.", RecordType::AAAA, ResponseCode::NoError, 0, 1),
        ("test.", RecordType::A, ResponseCode::NoError, 0, 1),
        ("site-012.test.", RecordType::A, ResponseCode::NXDomain, 0, 1),
        ("example.org.", RecordType::A, ResponseCode::NXDomain, 0, 1),
        ("servfail.test.", RecordType::A, ResponseCode::ServFail, 0, 0),
    ];
    for (name, kind, code, answers, authorities) in cases {
        let mut query = Message::query();
        query.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
        socket.send_to(&query.to_vec().unwrap(), sandbox.dns_address()).await.unwrap();
        let mut buffer = [0; 1232];
        let length = socket.recv(&mut buffer).await.unwrap();
        let answer = Message::from_vec(&buffer[..length]).unwrap();
        assert_eq!(answer.metadata.id, query.metadata.id);
        assert_eq!(answer.metadata.response_code, code, "{name}");
        assert_eq!((answer.answers.len(), answer.authorities.len()), (answers, authorities));
        if let Some(record) = answer.answers.first() {
            assert_eq!(record.ttl, 60);
            let RData::A(address) = &record.data else { panic!("{record}") };
            assert_eq!(address.0, sandbox.zone.address(3).unwrap());
        }
    }
}

#[tokio::test]
async fn a_request_is_answered_and_written_down() {
    let sandbox = started(small()).await;
    let seed = sandbox.seeds()[0].clone();
    let got = get(&sandbox, &seed, "").await;
    assert_eq!((got.status, got.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(got.header("content-length"), got.body.len().to_string());
    let plan = sandbox.web.plan(0).unwrap();
    assert_eq!(got.body, page(&sandbox.web.shape, plan, 0).body);

    assert_eq!(get(&sandbox, &format!("{seed}none?x=1"), "").await.status, 404);
    let visits = sandbox.visits();
    assert_eq!(sandbox.visit_count(), 2);
    assert_eq!(visits[0].host, "site-000.test");
    assert_eq!(visits[0].user_agent.as_deref(), Some("guest/1"));
    assert!(visits[0].at >= Timestamp::from_secs(1_800_000_000));
    assert_eq!((visits[1].path.as_str(), visits[1].status), ("/none?x=1", 404));
}

#[tokio::test]
async fn a_body_is_compressed_when_that_is_accepted() {
    let sandbox = started(small()).await;
    let seed = sandbox.seeds()[0].clone();
    let plain = get(&sandbox, &seed, "").await;
    let packed = get(&sandbox, &seed, "Accept-Encoding: br, gzip;q=0.8\r\n").await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.body.len() < plain.body.len());
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(packed.body.as_slice()).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body);
    let refused = get(&sandbox, &seed, "Accept-Encoding: gzip;q=0\r\n").await;
    assert_eq!(refused.header("content-encoding"), "");
}

#[tokio::test]
async fn validators_are_answered_with_304() {
    let sandbox = started(small()).await;
    let seed = sandbox.seeds()[0].clone();
    let first = get(&sandbox, &seed, "").await;
    let (tag, date) = (first.header("etag"), first.header("last-modified"));
    for (headers, status) in [
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-None-Match: \"other\", {tag}\r\n"), 304),
        (format!("If-Modified-Since: {date}\r\n"), 304),
        ("If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n".to_owned(), 200),
        (format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {date}\r\n"), 200),
    ] {
        let got = get(&sandbox, &seed, &headers).await;
        assert_eq!(got.status, status, "{headers}");
        assert_eq!(got.body.is_empty(), status == 304, "{headers}");
        assert_eq!(got.header("etag"), tag);
    }
}

#[tokio::test]
async fn a_busy_page_answers_from_the_second_time_on() {
    let sandbox = started(small()).await;
    for (behaviour, status) in [(Behaviour::BusyOnce, 503), (Behaviour::LimitedOnce, 429)] {
        let url = sandbox.urls_of(behaviour).remove(0);
        let first = get(&sandbox, &url, "").await;
        assert_eq!((first.status, first.header("retry-after")), (status, "2"));
        assert_eq!(get(&sandbox, &url, "").await.status, 200);
        assert_eq!(get(&sandbox, &url, "").await.status, 200);
    }
}

#[tokio::test]
async fn slow_pages_wait_by_the_clock_and_are_whole() {
    let sandbox = started(small()).await;
    for behaviour in [Behaviour::Slow, Behaviour::Drip, Behaviour::Big] {
        let url = sandbox.urls_of(behaviour).remove(0);
        let before = sandbox.web.clock_now();
        let got = get(&sandbox, &url, "").await;
        let took = sandbox.web.clock_now().since(before);
        assert_eq!(got.header("content-length"), got.body.len().to_string());
        if behaviour == Behaviour::Slow {
            assert!(took >= sandbox.web.shape.options.slow, "{took:?}");
        }
        if behaviour == Behaviour::Big {
            assert!(got.body.len() >= sandbox.web.shape.options.big_bytes);
        }
    }
}

#[tokio::test]
async fn nobody_listens_on_the_closed_port_and_nothing_is_left_after_the_end() {
    let sandbox = started(small()).await;
    let (web, dns) = (sandbox.web_addresses(), sandbox.dns_address());
    let closed = SocketAddr::new(web[0].ip(), sandbox.web.shape.closed_port);
    let refused = TcpStream::connect(closed).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert!(TcpStream::connect(web[0]).await.is_ok());
    sandbox.shutdown().await;
    for address in web.into_iter().chain([dns]) {
        assert!(TcpStream::connect(address).await.is_err(), "{address}");
    }
}

#[tokio::test]
async fn dropping_a_sandbox_ends_its_connections() {
    let sandbox = started(small()).await;
    let mut stream = TcpStream::connect(sandbox.web_addresses()[0]).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: site-000.test\r\n\r\n").await.unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).await.unwrap();
    drop(sandbox);
    let mut rest = Vec::new();
    // Whether it ends with an error or without does not matter, only that it ends.
    let ended = stream.read_to_end(&mut rest);
    tokio::time::timeout(std::time::Duration::from_secs(10), ended).await.unwrap().ok();
}

#[tokio::test]
async fn the_calendar_is_there_when_it_is_asked_for() {
    let without = started(small()).await;
    assert_eq!(without.expected().calendar, None);
    let sandbox = started(SandboxOptions { trap: true, ..small() }).await;
    let first = sandbox.expected().calendar.unwrap();
    let day = get(&sandbox, &first, "").await;
    assert_eq!(day.status, 200);
    let links = links(&day.body, &first);
    assert_eq!(links.len(), 2);
    for link in links {
        assert_eq!(get(&sandbox, &link, "").await.status, 200, "{link}");
        assert!(!sandbox.expected().pages.contains(&link));
    }
}

#[tokio::test]
async fn options_that_make_no_web_are_refused() {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(Timestamp::EPOCH));
    let none = SandboxOptions { hosts: 0, ..small() };
    assert!(Sandbox::start(none, Arc::clone(&clock)).await.is_err());
    let nowhere = SandboxOptions { addresses: 0, ..small() };
    assert!(Sandbox::start(nowhere, clock).await.is_err());
}

/// The links a parser finds that may be followed, without fragments.
fn links(body: &[u8], base: &str) -> BTreeSet<String> {
    let document = Html::parse_document(&String::from_utf8_lossy(body));
    let base = Url::parse(base).unwrap();
    let anchors = Selector::parse("a[href]").unwrap();
    document
        .select(&anchors)
        .filter(|anchor| anchor.attr("rel") != Some("nofollow"))
        .filter_map(|anchor| base.join(anchor.attr("href")?).ok())
        .map(|mut url| {
            url.set_fragment(None);
            url.to_string()
        })
        .collect()
}
