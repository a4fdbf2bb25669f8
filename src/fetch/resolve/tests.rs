//! The resolver against a small name server on loopback.

use std::sync::atomic::{AtomicI64, Ordering};

use hickory_resolver::proto::op::{Message, OpCode};
use hickory_resolver::proto::rr::{RData, Record, rdata};
use tokio::net::UdpSocket;

use super::*;
use crate::types::Timestamp;

/// A clock that stands until it is set.
#[derive(Debug, Default)]
struct HandClock(AtomicI64);

impl HandClock {
    fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1_000_000 + self.0.load(Ordering::SeqCst))
    }

    async fn sleep_until(&self, _at: Timestamp) {
        std::future::pending().await
    }
}

type Asked = Arc<Mutex<Vec<String>>>;

/// Answers by the first label: its TTL comes from the second one where that is a number.
fn answer(query: &Message) -> Message {
    let mut answer = Message::response(query.metadata.id, OpCode::Query);
    answer.queries.clone_from(&query.queries);
    let question = &query.queries[0];
    let name = question.name().to_ascii();
    let mut labels = name.split('.');
    let (kind, ttl) = (labels.next().unwrap(), labels.next().unwrap().parse().unwrap_or(300));
    let is_four = question.query_type() == RecordType::A;
    let four = |last| RData::A(rdata::A(Ipv4Addr::new(192, 0, 2, last)));
    let six = RData::AAAA(rdata::AAAA(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)));
    let data = match (kind, is_four) {
        ("both" | "four", true) => vec![four(1), four(2)],
        ("both" | "six", false) => vec![six],
        ("half", true) => vec![four(3)],
        ("absent", _) => {
            answer.metadata.response_code = ResponseCode::NXDomain;
            Vec::new()
        }
        ("broken", _) | ("half", false) => {
            answer.metadata.response_code = ResponseCode::ServFail;
            Vec::new()
        }
        _ => Vec::new(),
    };
    for data in data {
        answer.answers.push(Record::from_rdata(question.name().clone(), ttl, data));
    }
    answer
}

async fn name_server() -> (SocketAddr, Asked) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (address, asked) = (socket.local_addr().unwrap(), Asked::default());
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let query = Message::from_vec(&buffer[..length]).unwrap();
            let question = &query.queries[0];
            let line = format!("{} {}", question.query_type(), question.name());
            seen.lock().unwrap().push(line);
            socket.send_to(&answer(&query).to_vec().unwrap(), from).await.unwrap();
        }
    });
    (address, asked)
}

fn resolver(nameservers: Vec<SocketAddr>) -> (HickoryResolver, Arc<HandClock>) {
    let clock = Arc::new(HandClock::default());
    let seconds = Duration::from_secs;
    let settings = DnsSettings {
        nameservers,
        min_ttl: seconds(30),
        max_ttl: seconds(1000),
        negative_ttl: seconds(60),
    };
    let resolver = HickoryResolver::new(settings, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    (resolver, clock)
}

fn count(asked: &Asked) -> usize {
    asked.lock().unwrap().len()
}

async fn words_of(resolver: &HickoryResolver, host: &str) -> String {
    match resolver.resolve(host).await {
        Err(Reason::Dns { why }) => why,
        other => panic!("{host}: {other:?}"),
    }
}

#[tokio::test]
async fn a_name_has_the_addresses_of_both_families() {
    let (server, asked) = name_server().await;
    let (resolver, clock) = resolver(vec![server]);
    let both = resolver.resolve("both.example").await.unwrap();
    let texts: Vec<_> = both.addresses.iter().map(IpAddr::to_string).collect();
    assert_eq!(texts, ["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
    assert_eq!(both.until, clock.now() + Duration::from_secs(300));
    assert_eq!(resolver.resolve("four.example").await.unwrap().addresses.len(), 2);
    assert_eq!(resolver.resolve("six.example").await.unwrap().addresses.len(), 1);
    let mut first: Vec<_> = asked.lock().unwrap().iter().take(2).cloned().collect();
    first.sort();
    assert_eq!(first, ["A both.example.", "AAAA both.example."]);
}

#[tokio::test]
async fn answers_are_used_for_their_ttl_within_bounds() {
    let (server, asked) = name_server().await;
    let (resolver, clock) = resolver(vec![server]);
    for (host, seconds) in
        [("both.1.example", 30), ("both.100.example", 100), ("both.9999.x", 1000)]
    {
        let before = count(&asked);
        resolver.resolve(host).await.unwrap();
        clock.pass(seconds - 1);
        let again = resolver.resolve(&host.to_ascii_uppercase()).await.unwrap();
        assert_eq!(again.until.since(clock.now()), Duration::from_secs(1), "{host}");
        assert_eq!(count(&asked), before + 2, "{host} is still known");
        clock.pass(1);
        resolver.resolve(host).await.unwrap();
        assert_eq!(count(&asked), before + 4, "{host} has run out");
    }
    assert_eq!(resolver.cached(), 3);
}

#[tokio::test]
async fn failures_are_told_apart_and_only_answers_are_kept_long() {
    let (server, asked) = name_server().await;
    let (resolver, clock) = resolver(vec![server]);
    assert_eq!(words_of(&resolver, "absent.example").await, "there is no such name (NXDOMAIN)");
    assert_eq!(words_of(&resolver, "empty.example").await, "the name has no addresses");
    assert_eq!(count(&asked), 4);
    assert_eq!(words_of(&resolver, "broken.example").await, "the name server failed (SERVFAIL)");
    let after = count(&asked);
    clock.pass(6);
    words_of(&resolver, "absent.example").await;
    assert_eq!(count(&asked), after, "negative answers are cached");
    words_of(&resolver, "broken.example").await;
    assert!(count(&asked) > after, "a failure of the server is asked again soon");
    clock.pass(60);
    let after = count(&asked);
    words_of(&resolver, "absent.example").await;
    assert_eq!(count(&asked), after + 2);
    assert_eq!(words(&NetError::Timeout).0, "no name server answered in time");
}

#[tokio::test]
async fn one_family_is_enough_when_the_other_fails() {
    let (server, _) = name_server().await;
    let (resolver, _) = resolver(vec![server]);
    let half = resolver.resolve("half.example").await.unwrap();
    assert_eq!(half.addresses, [IpAddr::from([192, 0, 2, 3])]);
}

#[tokio::test]
async fn look_ups_of_one_name_are_shared() {
    let (server, asked) = name_server().await;
    let (resolver, _) = resolver(vec![server]);
    let all = futures::future::join_all((0..50).map(|_| resolver.resolve("both.example"))).await;
    assert!(all.iter().all(|answer| *answer == all[0] && answer.is_ok()));
    assert_eq!(count(&asked), 2);
}

#[tokio::test]
async fn a_look_up_that_its_first_asker_gave_up_is_finished_by_the_next() {
    let (server, asked) = name_server().await;
    let (resolver, _) = resolver(vec![server]);
    assert!(resolver.resolve("both.example").now_or_never().is_none());
    assert!(resolver.resolve("both.example").await.is_ok());
    assert_eq!(count(&asked), 2);
}

#[tokio::test]
async fn upstreams_are_asked_in_rotation() {
    let ((one, asked_one), (two, asked_two)) = (name_server().await, name_server().await);
    let (resolver, _) = resolver(vec![one, two]);
    for number in 0..10 {
        resolver.resolve(&format!("both.n{number}.example")).await.unwrap();
    }
    assert_eq!(count(&asked_one) + count(&asked_two), 20);
    assert!(count(&asked_one).min(count(&asked_two)) >= 5);
}

#[tokio::test]
async fn literals_and_impossible_names_are_never_asked_for() {
    let (server, asked) = name_server().await;
    let (resolver, _) = resolver(vec![server]);
    for literal in ["127.0.0.1", "[::1]", "::1", "[2001:db8::7]"] {
        let bare = literal.trim_matches(['[', ']']).parse::<IpAddr>().unwrap();
        assert_eq!(resolver.resolve(literal).await.unwrap().addresses, [bare]);
    }
    for local in ["localhost", "LocalHost.", "app.localhost"] {
        let loopback = resolver.resolve(local).await.unwrap().addresses;
        assert!(loopback.iter().all(IpAddr::is_loopback), "{local}");
    }
    let long_label = format!("{}.example", "a".repeat(64));
    let long_name = format!("{}example", "abc.".repeat(64));
    for bad in ["", ".", "a..b", ".a", long_label.as_str(), long_name.as_str()] {
        assert!(words_of(&resolver, bad).await.starts_with("not a name"), "{bad}");
    }
    assert_eq!(count(&asked), 0);
}
