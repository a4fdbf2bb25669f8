//! From the configuration to what each stage follows: plain translation, no decision.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::memory::MemoryPlan;
use super::rules::scope_rules;
use crate::admin::{AdminSettings, Token};
use crate::archive::{ArchiveFormat, ArchiveSettings, CrawlerInfo};
use crate::cluster::SingleNode;
use crate::config::{self, Config, ConfigFaults, Fault};
use crate::discovery::DiscoverySettings;
use crate::fetch::{ConnectSettings, DnsSettings, FetchSettings, roots_of};
use crate::frontier::FrontierSettings;
use crate::output::{OutputSettings, output_name};
use crate::parse::decode::DecodeLimits;
use crate::parse::memory::Memory;
use crate::parse::select::Extractor;
use crate::parse::{Limits, ParseSettings, is_wanted};
use crate::policy::address::may_connect;
use crate::policy::address_clock::AddressRules;
use crate::policy::domain_clock::DomainRules;
use crate::policy::host::HostSettings;
use crate::policy::politeness::Politeness;
use crate::policy::quota::QuotaRules;
use crate::policy::retry::Retries;
use crate::policy::robots::{LongUnreachable, RobotsSettings};
use crate::policy::scope::{ScopeMode, ScopeSettings};
use crate::policy::traps::TrapSettings;
use crate::types::{HostKey, IpNetwork, LinkKind, in_full};
use crate::world::{Coordinator, ExchangeLimits, Objects, Oversize, Wanted};

/// Fingerprints take 16 bytes, and the cache around them a little more.
const FINGERPRINT_BYTES: u64 = 20;
/// Leases granted ahead of the fetchers, in multiples of their number.
const AHEAD: usize = 2;
/// The least credit of a shard, so that few workers and many shards still move.
const CREDIT_MIN: usize = 8;
/// Where a page has moved to, and what sites list for crawlers (P3, R3).
const FOLLOWED_ALWAYS: [LinkKind; 3] = [LinkKind::Redirect, LinkKind::Sitemap, LinkKind::Feed];
/// An output's file is followed by the next at this size.
const OUTPUT_FILE_BYTES: u64 = 256 << 20;
/// How long a connection may be idle: longer than the delay of most hosts.
const IDLE: Duration = Duration::from_secs(30);
/// Bodies above this are parsed off the runtime's threads.
const INLINE_BYTES_MAX: usize = 512 << 10;

/// H4: which addresses may be connected to.
pub(super) fn egress(
    config: &Config,
) -> Arc<dyn Fn(IpAddr) -> Result<(), crate::types::Reason> + Send + Sync> {
    let allowed: Vec<IpNetwork> = config.fetch.allow_networks.clone();
    Arc::new(move |address| {
        may_connect(address, |address| allowed.iter().any(|network| network.contains(address)))
    })
}

/// The settings of every shard.
pub(super) fn frontier(config: &Config, memory: &MemoryPlan) -> FrontierSettings {
    let shards = usize::from(config.frontier.shards);
    let exempt = config.politeness.for_everyone().per_address_exempt.clone();
    let everyone = config.politeness.for_everyone();
    let workers = usize::try_from(config.fetch.workers).unwrap_or(usize::MAX);
    let resident = usize::try_from(config.frontier.resident_hosts).unwrap_or(usize::MAX);
    let fingerprints = memory.fingerprints / FINGERPRINT_BYTES / u64::from(config.frontier.shards);
    FrontierSettings {
        host: host_policy(config),
        domain: DomainRules {
            min_delay: everyone.per_domain_min_delay,
            daily_pages: everyone.domain_daily_pages,
        },
        host_max_urls: everyone.host_max_urls,
        domain_max_urls: everyone.domain_max_urls,
        may_connect: egress(config),
        address_exempt: Arc::new(move |address| {
            exempt.iter().any(|network| network.contains(address))
        }),
        flush_interval: config.data.flush_interval,
        resident_hosts: (resident / shards).max(1),
        credit: (workers * AHEAD / shards).max(CREDIT_MIN),
        fingerprints: usize::try_from(fingerprints).unwrap_or(usize::MAX),
    }
}

pub(super) fn host_policy(config: &Config) -> crate::frontier::HostPolicy {
    let robots = Arc::new(robots(config));
    let config = config.clone();
    Arc::new(move |host: &HostKey| {
        let own = config.politeness.for_host(host);
        Arc::new(HostSettings {
            politeness: Politeness {
                min_delay: own.min_delay,
                max_delay: own.max_delay,
                delay_factor: own.delay_factor,
                jitter: own.jitter,
                max_in_flight: own.max_in_flight,
                daily_pages: own.host_daily_pages,
            },
            retries: Retries {
                base: config.retry.base,
                factor: config.retry.factor,
                max_attempts: config.retry.max_attempts,
            },
            lease: config.retry.lease,
            robots: Arc::clone(&robots),
            window: u16::try_from(config.frontier.window).unwrap_or(u16::MAX),
            bands: config.frontier.bands,
            ahead: config.data.flush_interval,
            revisit_after: config.recrawl.enabled.then_some(config.recrawl.max_interval),
        })
    })
}

fn robots(config: &Config) -> RobotsSettings {
    RobotsSettings {
        product: config.identity.product.clone(),
        cache: config.robots.cache,
        max_size: config.robots.max_size.as_usize(),
        long_unreachable: match config.robots.long_unreachable {
            config::LongUnreachable::Refuse => LongUnreachable::Refuse,
            config::LongUnreachable::AllowAfter(after) => LongUnreachable::AllowAfter(after),
        },
        reservations: config.robots.tdmrep.unwrap_or_else(|| is_for_models(config)),
        ..RobotsSettings::default()
    }
}

/// R6: whether some output is for what reservations of text and data mining keep back.
fn is_for_models(config: &Config) -> bool {
    config.output.iter().any(|output| match output.purpose {
        config::Purpose::AiTrain | config::Purpose::AiInput => true,
        config::Purpose::Search | config::Purpose::Archive => false,
    })
}

/// `politeness.per_address_*`.
pub(super) fn addresses(config: &Config) -> AddressRules {
    let everyone = config.politeness.for_everyone();
    AddressRules {
        min_delay: everyone.per_address_min_delay,
        max_in_flight: everyone.per_address_max_in_flight,
    }
}

/// The caps on the whole crawl.
pub(super) fn quota(config: &Config) -> QuotaRules {
    QuotaRules { max_pages: config.scope.max_pages, daily_fetches: config.limits.daily_fetches }
}

/// The settings of discovery.
pub(super) fn discovery(config: &Config) -> Result<DiscoverySettings, ConfigFaults> {
    let scope = &config.scope;
    let [include, exclude] =
        scope_rules(config).map_err(|faults| ConfigFaults { faults })?.map(Arc::new);
    let follow = scope.follow_links.iter().copied();
    Ok(DiscoverySettings {
        scope: ScopeSettings {
            mode: match scope.mode {
                config::ScopeMode::Host => ScopeMode::Host,
                config::ScopeMode::Domain => ScopeMode::Domain,
                config::ScopeMode::Seeds => ScopeMode::Seeds,
                config::ScopeMode::Any => ScopeMode::Any,
            },
            include,
            exclude,
            max_depth: scope.max_depth,
            max_url_length: scope.max_url_length,
        },
        traps: TrapSettings {
            max_path_segments: usize::from(config.traps.max_path_segments),
            max_repeated_segment: usize::from(config.traps.max_repeated_segments),
            max_query_parameters: usize::from(config.traps.max_query_parameters),
        },
        follow: follow.chain(FOLLOWED_ALWAYS).collect::<BTreeSet<_>>(),
        max_redirects: config.fetch.max_redirects,
    })
}

/// The settings of fetchers.
pub(super) fn fetch(config: &Config) -> FetchSettings {
    let fetch = &config.fetch;
    FetchSettings {
        user_agent: config.identity.user_agent(),
        accept: "text/html,application/xhtml+xml,text/plain;q=0.8,*/*;q=0.5".to_owned(),
        accept_language: None,
        limits: ExchangeLimits {
            connect: fetch.connect_timeout,
            first_byte: fetch.first_byte_timeout,
            total: fetch.total_timeout,
            body_bytes_max: fetch.max_body.bytes(),
            oversize: match fetch.oversize {
                config::Oversize::Truncate => Oversize::Truncate,
                config::Oversize::Skip => Oversize::Skip,
            },
        },
        robots_bytes_max: config.robots.max_size.bytes(),
        wanted: match fetch.unread_types {
            config::UnreadTypes::Store => Wanted::everything(),
            config::UnreadTypes::Stop => Wanted::new(is_wanted),
        },
    }
}

/// What connections are made of.
pub(super) fn connect(config: &Config, memory: &MemoryPlan) -> ConnectSettings {
    let sockets = usize::try_from(config.limits.sockets).unwrap_or(usize::MAX);
    ConnectSettings {
        extra_ca_files: config.fetch.extra_ca_files.clone(),
        origins_max: sockets,
        idle: IDLE,
        tls_sessions_max: sockets,
        bodies_bytes: memory.arriving,
    }
}

/// `[dns]`.
pub(super) fn dns(config: &Config) -> DnsSettings {
    DnsSettings {
        nameservers: config.dns.nameservers.clone(),
        min_ttl: config.dns.min_ttl,
        max_ttl: config.dns.max_ttl,
        negative_ttl: config.dns.negative_ttl,
    }
}

/// The settings of parsers.
pub(super) fn parse(config: &Config) -> Result<ParseSettings, ConfigFaults> {
    let extractors = extractors(config).collect::<Result<_, _>>()?;
    Ok(ParseSettings {
        limits: Limits {
            memory: Memory::new(config.parse.max_memory.as_usize()),
            decode: DecodeLimits {
                decoded_bytes_max: config.fetch.max_decoded.as_usize(),
                ratio_max: usize::try_from(config.fetch.max_ratio).unwrap_or(usize::MAX),
            },
            links_max: usize::try_from(config.parse.max_links).unwrap_or(usize::MAX),
            ..Limits::default()
        },
        time_max: config.parse.max_time,
        product: config.identity.product.clone(),
        extractors,
        inline_bytes_max: INLINE_BYTES_MAX,
    })
}

/// What `[[extract]]` says, each right or wrong by itself.
pub(super) fn extractors(config: &Config) -> impl Iterator<Item = Result<Extractor, ConfigFaults>> {
    config.extract.iter().enumerate().map(|(at, section)| {
        let extractor = Extractor::new(&section.r#match, &section.fields);
        extractor.map_err(|why| Fault::of(format!("extract[{at}]"), why.to_string()).into())
    })
}

/// A store of a kind that this build does not open.
pub(super) fn store(config: &Config) -> Option<Fault> {
    let url = config.data.store.as_deref()?;
    let why = Objects::check(url).err()?;
    Some(Fault::of("data.store", in_full(&why)).found(url))
}

/// Every file of roots that cannot be used.
pub(super) fn root_faults(config: &Config) -> impl Iterator<Item = Fault> {
    config.fetch.extra_ca_files.iter().enumerate().filter_map(|(at, file)| {
        let why = roots_of(file).err()?;
        Some(Fault::of(format!("fetch.extra_ca_files[{at}]"), in_full(&why)).found(file))
    })
}

/// The settings of the archive.
pub(super) fn archive(config: &Config) -> Result<ArchiveSettings, ConfigFaults> {
    if let Some(url) = &config.archive.url {
        let problem = "this build keeps the archive under `data.dir` only";
        return Err(Fault::of("archive.url", problem).found(url).into());
    }
    let identity = &config.identity;
    let operator = identity.contact_url.as_ref().or(identity.contact_email.as_ref());
    Ok(ArchiveSettings {
        format: match config.archive.format {
            config::ArchiveFormat::WarcGz => ArchiveFormat::WarcGz,
            config::ArchiveFormat::WarcZst => ArchiveFormat::WarcZst,
        },
        file_bytes_max: config.archive.max_file_size.bytes(),
        file_age_max: config.archive.max_file_age,
        index: 0,
        count: 1,
        crawler: CrawlerInfo {
            software: format!("mehman/{}", env!("CARGO_PKG_VERSION")),
            user_agent: identity.user_agent(),
            operator: operator.cloned().unwrap_or_default(),
        },
    })
}

/// The outputs; those that this build does not write are refused, not left out in silence.
pub(super) fn outputs(config: &Config) -> Result<Vec<OutputSettings>, ConfigFaults> {
    ConfigFaults::refuse(output_faults(config))?;
    let outputs = config.output.iter().enumerate().map(|(at, output)| {
        let name = output_name(at);
        OutputSettings {
            prefix: format!("pages/{name}"),
            name,
            purpose: output.purpose.into(),
            file_bytes_max: OUTPUT_FILE_BYTES,
        }
    });
    Ok(outputs.collect())
}

/// Every output that this build cannot write.
pub(super) fn output_faults(config: &Config) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut refuse = |at: usize, key: &str, found: &str, problem: &str| {
        faults.push(Fault::of(format!("output[{at}].{key}"), problem).found(found));
    };
    for (at, output) in config.output.iter().enumerate() {
        let kind = match output.kind {
            config::OutputKind::Jsonl => None,
            config::OutputKind::Parquet => Some("parquet"),
            config::OutputKind::Links => Some("links"),
            config::OutputKind::Wet => Some("wet"),
        };
        if let Some(kind) = kind {
            refuse(at, "kind", kind, "this build writes \"jsonl\" only");
        }
        if let Some(url) = &output.url {
            refuse(at, "url", url, "this build writes under `data.dir` only");
        }
    }
    faults
}

/// Who hands out the shards; a coordinator that this build lacks is refused.
pub(super) fn coordinator(config: &Config) -> Result<Arc<dyn Coordinator>, ConfigFaults> {
    match config.cluster.coordinator {
        config::CoordinatorKind::None => Ok(Arc::new(SingleNode)),
        config::CoordinatorKind::Etcd => {
            let fault = Fault::of("cluster.coordinator", "this build has no coordinator");
            Err(fault
                .found("etcd")
                .remedy("wanted \"none\", one node that owns every shard")
                .into())
        }
    }
}

/// What the admin interface shows and obeys.
pub(super) fn admin(config: &Config) -> AdminSettings {
    AdminSettings {
        listen: config.admin.listen,
        token: config.admin.token.as_ref().map(|token| Token::new(token.reveal())),
        product: config.identity.product.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        contact_url: config.identity.contact_url.clone(),
        contact_email: config.identity.contact_email.clone(),
        user_agent: config.identity.user_agent(),
        addresses: config.identity.addresses.clone(),
        node: config.cluster.node.clone().unwrap_or_else(|| "local".to_owned()),
    }
}
