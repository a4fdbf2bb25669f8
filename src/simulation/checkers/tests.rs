//! The checkers find what they are there to find.

use std::net::IpAddr;

use super::*;
use crate::simulation::settings;

const START: Timestamp = Timestamp::EPOCH;

/// A crawler's side of a history, with a site to ask.
struct Crawler {
    history: History,
    key: HostKey,
    address: SocketAddr,
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

impl Crawler {
    /// Of the first site of a web: it has rules and a Crawl-delay of three seconds.
    fn new() -> Self {
        let web = Arc::new(Web::new(1, 3, START));
        let site = web.named("h0.d0.example").unwrap();
        let address = (site.resolve(START, START)[0], 443).into();
        let key = site.key.clone();
        Self { history: History::new(web, &settings::config().unwrap()), key, address }
    }

    /// A request from one time to another.
    fn ask(&self, path: &str, from: i64, to: i64, told: Told) {
        let number = self.begin(path, from);
        self.history.end(number, at(to), End::Answered { status: 200 }, told);
    }

    fn begin(&self, path: &str, from: i64) -> usize {
        let url = CrawlUrl::parse(&format!("{}{path}", self.key)).unwrap();
        self.history.begin(&url, self.address, at(from))
    }

    fn read_robots(&self) {
        let mut rules = SiteRules::refusing(&["/private"]);
        rules.crawl_delay = Some(3);
        self.ask("/robots.txt", 1_000, 1_100, Told { rules: Some(rules), ..Told::default() });
    }

    #[track_caller]
    fn found(&self, what: &[&str]) {
        let (count, words) = self.history.violations();
        assert_eq!(count, u64::try_from(what.len()).unwrap(), "{words:?}");
        for (words, what) in words.iter().zip(what) {
            assert!(words.contains(what), "{words}");
        }
    }
}

#[test]
fn a_polite_crawler_is_not_found_fault_with() {
    let crawler = Crawler::new();
    crawler.read_robots();
    crawler.ask("/", 4_100, 4_200, Told::default());
    crawler.ask("/p/1", 7_200, 7_300, Told::default());
    crawler.found(&[]);
}

#[test]
fn a_request_before_its_time_is_found() {
    let crawler = Crawler::new();
    crawler.read_robots();
    crawler.ask("/", 4_099, 4_200, Told::default());
    crawler.found(&["sooner than 3s"]);
}

#[test]
fn our_own_part_of_the_delay_counts_as_well() {
    let crawler = Crawler::new();
    crawler.read_robots();
    crawler.ask("/", 4_100, 5_100, Told::default());
    crawler.ask("/p/1", 15_099, 15_100, Told::default());
    crawler.found(&["sooner than 10s"]);
}

#[test]
fn two_at_a_time_are_found() {
    let crawler = Crawler::new();
    crawler.read_robots();
    crawler.begin("/", 4_100);
    crawler.begin("/p/1", 60_000);
    crawler.found(&["another request of this host is in flight"]);
}

#[test]
fn a_page_without_robots_and_one_against_them_are_found() {
    let crawler = Crawler::new();
    crawler.ask("/", 0, 100, Told::default());
    crawler.found(&["robots.txt has not decided"]);
    let crawler = Crawler::new();
    crawler.read_robots();
    crawler.ask("/private/1", 9_000, 9_100, Told::default());
    crawler.ask("/p/1", 2 * 3_600_000, 2 * 3_600_000 + 1, Told::default());
    crawler.found(&["the rules served last refuse it", "the robots decision ended"]);
}

#[test]
fn a_file_that_fails_takes_leave_back_unless_a_copy_serves_on() {
    let failed = |crawler: &Crawler, from| {
        let number = crawler.begin("/robots.txt", from);
        crawler.history.end(number, at(from), End::HungUp, Told::default());
    };
    let crawler = Crawler::new();
    failed(&crawler, 1_000);
    crawler.ask("/", 9_000, 9_100, Told::default());
    crawler.found(&["robots.txt has not decided"]);
    let crawler = Crawler::new();
    crawler.read_robots();
    failed(&crawler, 9_000);
    crawler.ask("/", 20_000, 20_100, Told::default());
    crawler.found(&[]);
}

#[test]
fn a_wait_holds_over_a_crash_unless_it_was_uttered_in_the_last_moments() {
    let told = || Told { wait_until: Some(at(600_000)), ..Told::default() };
    for (crash, what) in [(4_501, &["asked to wait"][..]), (4_499, &[])] {
        let crawler = Crawler::new();
        crawler.read_robots();
        crawler.ask("/", 4_100, 4_200, told());
        crawler.history.crash(at(crash), at(crash));
        crawler.ask("/p/1", 60_000, 60_100, Told::default());
        crawler.found(what);
    }
}

#[test]
fn an_address_of_somebody_else_is_found() {
    let crawler = Crawler::new();
    crawler.read_robots();
    let url = CrawlUrl::parse(&format!("{}/", crawler.key)).unwrap();
    let private: IpAddr = "127.0.0.1".parse().unwrap();
    crawler.history.begin(&url, (private, 443).into(), at(9_000));
    crawler.found(&["I6"]);
}

#[test]
fn an_address_is_not_hurried_by_its_sites_together() {
    let crawler = Crawler::new();
    crawler.read_robots();
    crawler.ask("/", 4_100, 4_200, Told::default());
    let url = CrawlUrl::parse("https://h1.d0.example/robots.txt").unwrap();
    crawler.history.begin(&url, crawler.address, at(4_250));
    let (_, words) = crawler.history.violations();
    assert!(words.iter().any(|words| words.contains("after another at its address")), "{words:?}");
}

#[test]
fn a_clock_that_was_set_moves_what_ends_at_a_point_in_time() {
    let told = || Told { wait_until: Some(at(600_000)), ..Told::default() };
    for (set_to, asked_at, what) in [
        (0, 550_000, &["asked to wait"][..]),
        (60_000, 550_000, &[]),
        (-600_000, 550_000, &["asked to wait"]),
        (-600_000, 2_200_000, &[]),
        (60_000, 2_200_000, &["the robots decision ended"]),
    ] {
        let crawler = Crawler::new();
        crawler.read_robots();
        crawler.ask("/", 4_100, 4_200, told());
        crawler.history.clock_was_set(at(5_000), 0, set_to);
        crawler.ask("/p/1", asked_at, asked_at + 100, Told::default());
        crawler.found(what);
    }
}

#[test]
fn a_shard_that_dies_may_forget_the_last_moment_only() {
    for (died_at, what) in [(4_501, &["asked to wait"][..]), (4_499, &[])] {
        let crawler = Crawler::new();
        crawler.read_robots();
        let told = Told { wait_until: Some(at(600_000)), ..Told::default() };
        crawler.ask("/", 4_100, 4_200, told);
        crawler.history.shard_died(at(died_at), at(died_at));
        crawler.ask("/p/1", 60_000, 60_100, Told::default());
        crawler.found(what);
    }
}

#[test]
fn what_could_not_be_written_may_be_forgotten() {
    for (trouble_since, what) in [(4_100, &[][..]), (59_000, &["asked to wait"])] {
        let crawler = Crawler::new();
        crawler.read_robots();
        let told = Told { wait_until: Some(at(600_000)), ..Told::default() };
        crawler.ask("/", 4_100, 4_200, told);
        crawler.history.crash(at(60_000), at(trouble_since));
        crawler.ask("/p/1", 70_000, 70_100, Told::default());
        crawler.found(what);
    }
}
