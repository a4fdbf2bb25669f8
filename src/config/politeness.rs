//! How often a site is visited: `[politeness]` and its allowances (F4, F7, F11).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::define::{section, table};
use super::faults::Faults;
use super::keys::{Found, Setting, Shown};
use super::reader::{Check, Checked, Unfit};
use super::units::days;
use super::value::{parsed, shown_text};
use crate::types::{HostKey, IpNetwork};

/// Every key of politeness, once; what holds for all hosts, what an allowance may say otherwise,
/// and what holds for one host follow from it.
macro_rules! politeness {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $type:ty = $default:expr $(, $option:ident($($argument:expr),*))*;
    )*) => {
        section! {
            /// What every host may expect of us.
            pub struct Politeness {
                $(
                    $(#[doc = $doc])*
                    $name: $type = $default $(, $option($($argument),*))*;
                )*
                /// Hosts and domains that agreed to something else: each has `host` or `domain`,
                /// and any of the keys above.
                allowances: Vec<Allowance> = Vec::new(), named("allowance");
            }
        }

        table! {
            /// F11: what a host or a domain agreed to; absent keys are as for everyone.
            pub struct Allowance {
                /// `https://example.org`, or `example.org` for every port and both schemes.
                host: Option<HostPattern> = None;
                /// A registered domain: all its hosts.
                domain: Option<DomainName> = None;
                $(
                    $(#[doc = $doc])*
                    $name: Option<$type> = None $(, $option($($argument),*))*;
                )*
            }
        }

        /// The politeness that holds for one host.
        #[derive(Clone, Debug, PartialEq)]
        pub struct HostPoliteness {
            $( $(#[doc = $doc])* pub $name: $type, )*
        }

        impl Politeness {
            /// What holds for hosts without an allowance.
            pub fn for_everyone(&self) -> HostPoliteness {
                HostPoliteness { $( $name: self.$name.clone(), )* }
            }
        }

        impl Allowance {
            fn apply(&self, to: &mut HostPoliteness) {
                $( if let Some(value) = &self.$name { to.$name.clone_from(value); } )*
            }

            fn says_anything(&self) -> bool {
                $( self.$name.is_some() )||*
            }
        }
    };
}

politeness! {
    /// From the end of an exchange to the next request to the host.
    min_delay: Duration = Duration::from_secs(1), within(Duration::ZERO..=days(30));
    /// Caps `delay_factor` times the duration of the last fetch, never what a site asks for.
    max_delay: Duration = Duration::from_secs(60), within(Duration::ZERO..=days(30));
    /// A host rests so many times as long as its last fetch took.
    delay_factor: f64 = 10.0, within(0.0..=1000.0);
    /// Up to this share is added to every delay, at random; nothing is ever taken off.
    jitter: f64 = 0.1, within(0.0..=1.0);
    /// Requests to one host at once.
    max_in_flight: u16 = 1, within(1..=1000);
    /// Between two requests to one registered domain, whatever their hosts.
    per_domain_min_delay: Duration = Duration::ZERO, within(Duration::ZERO..=days(30));
    /// Between two requests to one address, whatever their hosts.
    per_address_min_delay: Duration = Duration::from_millis(100), within(Duration::ZERO..=days(30));
    /// Requests to one address at once.
    per_address_max_in_flight: u16 = 8, within(1..=10_000);
    /// Networks without a clock of the address: CDNs that serve many sites from one.
    per_address_exempt: Vec<IpNetwork> = Vec::new();
    /// Requests to one host a day, robots.txt and failures included.
    host_daily_pages: u64 = 100_000, within(1..=MANY);
    /// Requests to one registered domain a day.
    domain_daily_pages: u64 = 1_000_000, within(1..=MANY);
    /// Known URLs of one host; links beyond are refused and counted.
    host_max_urls: u64 = 10_000_000, within(1..=MANY);
    /// Known URLs of one registered domain.
    domain_max_urls: u64 = 100_000_000, within(1..=MANY);
}

/// More than any crawl will count.
const MANY: u64 = 1_000_000_000_000_000;

impl Politeness {
    /// F11: what holds for a host. Key by key the most specific allowance that says something
    /// wins: the host with its scheme and port, then its name, then its domain.
    pub fn for_host(&self, key: &HostKey) -> HostPoliteness {
        let mut politeness = self.for_everyone();
        let mut allowances: Vec<_> = self
            .allowances
            .iter()
            .filter_map(|allowance| Some((allowance.fit(key)?, allowance)))
            .collect();
        allowances.sort_by_key(|(fit, _)| *fit);
        for (_, allowance) in allowances {
            allowance.apply(&mut politeness);
        }
        politeness
    }
}

/// How closely an allowance names a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Domain,
    Name,
    Key,
}

impl Allowance {
    fn fit(&self, key: &HostKey) -> Option<Fit> {
        match (&self.host, &self.domain) {
            (Some(HostPattern::Key(host)), _) => (host == key).then_some(Fit::Key),
            (Some(HostPattern::Name(name)), _) => (name == key.host()).then_some(Fit::Name),
            (None, Some(domain)) => (domain.0 == key.domain()).then_some(Fit::Domain),
            (None, None) => None,
        }
    }

    fn named(&self) -> Option<String> {
        let host = self.host.as_ref().map(ToString::to_string);
        host.or_else(|| self.domain.as_ref().map(|domain| format!("domain {domain}")))
    }
}

impl Checked for Politeness {
    fn check(&self, check: &mut Check<'_>) {
        let mut seen = BTreeSet::new();
        for name in self.allowances.iter().filter_map(Allowance::named) {
            let again = !seen.insert(name.clone());
            let fault = Unfit {
                found: None,
                problem: &format!("two of them for {name}"),
                remedy: "wanted one with all its keys",
            };
            check.refuse_unless(!again, &["allowance"], fault);
        }
    }
}

impl Checked for Allowance {
    fn check(&self, check: &mut Check<'_>) {
        let fault = |problem| Unfit {
            found: None,
            problem,
            remedy: "wanted either `host` or `domain`, and the keys that differ",
        };
        let one = self.host.is_some() != self.domain.is_some();
        check.refuse_unless(one, &["host", "domain"], fault("not exactly one host or domain"));
        check.refuse_unless(
            !one || self.says_anything(),
            &["host", "domain"],
            fault("the allowance says nothing"),
        );
    }
}

/// The hosts an allowance names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// One scheme, name and port.
    Key(HostKey),
    /// A name or address, on every port.
    Name(String),
}

impl FromStr for HostPattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains("://") {
            return HostKey::parse(text).map(Self::Key).ok_or("not a host, `https://host[:port]`");
        }
        match HostKey::parse(&format!("https://{text}")) {
            Some(key) if key.authority() == key.host() => Ok(Self::Name(key.host().to_owned())),
            Some(_) => Err("a port needs its scheme, `https://host:port`"),
            None => Err("not the name of a host"),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => key.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Setting for HostPattern {
    fn wanted() -> String {
        "a host such as \"https://example.org\" or \"example.org\"".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        parsed(found, faults)
    }

    fn show(&self) -> Shown {
        shown_text(self)
    }
}

/// A registered domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainName(String);

impl DomainName {
    /// The name, lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DomainName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let key = HostKey::parse(&format!("https://{text}"))
            .filter(|key| key.authority() == key.host())
            .ok_or("not a domain")?;
        if key.domain() == key.host() {
            Ok(Self(key.host().to_owned()))
        } else {
            Err(format!("not a registered domain, that would be {}", key.domain()))
        }
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Setting for DomainName {
    fn wanted() -> String {
        "a registered domain such as \"example.org\"".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        parsed(found, faults)
    }

    fn show(&self) -> Shown {
        shown_text(self)
    }
}
