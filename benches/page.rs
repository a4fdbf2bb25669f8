//! What a page costs on its way without network and store, stage by stage.
//!
//! `cargo bench --bench page [-- FOLDER [ROUNDS]]`: the HTML files of a folder, or, when none is
//! given, two sets of articles of the sandbox: pages as the web has them, and pages of nearly pure
//! prose. Everything runs on one thread and waits for nothing, and of all rounds the best counts,
//! for each page and stage: that is close to CPU time with warm caches, whatever else the machine
//! does. As a check, the whole way is gone once more by the CPU time that the system counts.
#![expect(clippy::print_stdout, reason = "a benchmark speaks to its reader")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{array, fs};

use anyhow::Context as _;
use bytes::Bytes;
use mehman::archive::{ArchiveActor, ArchiveArgs, ArchiveFormat, ArchiveSettings, CrawlerInfo};
use mehman::parse::charset::to_text;
use mehman::parse::decode::decode;
use mehman::parse::html::{ScanOptions, scan};
use mehman::parse::links::{Base, resolve_links};
use mehman::parse::mime::Mime;
use mehman::parse::simhash::fingerprints;
use mehman::parse::{Input, Limits, Parsed, parse};
use mehman::protocol::archive::StoreJob;
use mehman::protocol::{ArchiveMsg, Permit, Routes, ShardMsg, Unheard};
use mehman::sandbox::{Behaviour, PageSizes, Sandbox, SandboxOptions};
use mehman::types::{
    Completion, CrawlUrl, Epoch, Headers, Lease, LeaseId, LeaseKind, Link, Outcome, QueueEntry,
    Reason, Response, Timestamp, UrlId, UrlVersion,
};
use mehman::world::{Clock, MemorySpool, SeededDice, TokioClock};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use sha1::Digest as _;
use tokio::sync::{mpsc, watch};

/// Pages of the sandbox that are measured.
const SANDBOX_PAGES: usize = 60;
/// Pages that are archived together: few enough to be done before something else interrupts.
const GROUP_PAGES: usize = 10;
/// Rounds unless given.
const ROUNDS: usize = 20;
/// The first mark: what the whole way may cost at a mean of [`MARK_BYTES`], in microseconds.
const MARK_MICROS: f64 = 700.0;
/// The mean size that the mark is for, decoded.
const MARK_BYTES: f64 = 240.0 * 1024.0;
/// What is measured, in the order of a page's way.
const STAGES: [&str; 11] = [
    "SHA-1 of the body as received",
    "content coding undone",
    "encoding found and decoded",
    "scan: links, text, metadata",
    "links resolved, made unique",
    "SimHash and text fingerprint",
    "BLAKE3 of the decoded body",
    "parse as a whole",
    "links as URLs, and for the record",
    "archive as a whole, in memory",
    "the same, body not compressed",
];
/// What the way consists of, by place in [`STAGES`].
const WAY: [usize; 3] = [7, 8, 9];

/// A response to be measured.
struct Page {
    url: CrawlUrl,
    headers: Headers,
    body: Bytes,
}

/// Microseconds of each stage.
type Costs = [f64; STAGES.len()];

/// What the pages of a set hold, added up.
#[derive(Clone, Copy, Default)]
struct Held {
    decoded_bytes: usize,
    text_bytes: usize,
    links: usize,
}

fn main() -> anyhow::Result<()> {
    // `cargo bench` adds an argument of its own.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let folder = arguments.next();
    let rounds = arguments.next().map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    let sets = match folder {
        Some(folder) => vec![("files of the folder", pages_in(Path::new(&folder))?)],
        None => {
            let of = |sizes| runtime(false)?.block_on(pages_of_sandbox(sizes));
            vec![
                ("as on the web, mostly markup", of(PageSizes::Realistic)?),
                ("nearly pure prose", of(PageSizes::Prose)?),
            ]
        }
    };
    for (name, pages) in sets {
        anyhow::ensure!(!pages.is_empty(), "there are no pages");
        println!("{name}");
        measure_set(&pages, rounds)?;
    }
    Ok(())
}

fn measure_set(pages: &[Page], rounds: usize) -> anyhow::Result<()> {
    // Its timers ring as soon as nothing else is to be done, so no wait is measured.
    let runtime = runtime(true)?;
    let plain = pages.iter().map(uncompressed).collect::<Vec<_>>();
    let mut best: Vec<Costs> = vec![[f64::INFINITY; STAGES.len()]; pages.len()];
    let mut archived = [(); 2].map(|()| vec![f64::INFINITY; pages.len().div_ceil(GROUP_PAGES)]);
    let mut held = Held::default();
    for _ in 0..rounds {
        held = Held::default();
        for (page, best) in pages.iter().zip(&mut best) {
            let costs = measure(page, &mut held);
            *best = array::from_fn(|at| best[at].min(costs[at]));
        }
        for (archived, pages) in archived.iter_mut().zip([pages, &plain]) {
            for (best, group) in archived.iter_mut().zip(pages.chunks(GROUP_PAGES)) {
                *best = best.min(runtime.block_on(Box::pin(archive(group)))?);
            }
        }
    }
    let mut sums: Costs = array::from_fn(|at| best.iter().map(|costs| costs[at]).sum());
    [sums[9], sums[10]] = archived.map(|groups| groups.iter().sum());
    report(pages, &held, &sums);
    check(pages, rounds, &runtime)
}

/// The whole way again, by the CPU time of this thread where the system tells it: of the best round
/// and on average, which shows what the rest of the machine costs.
fn check(pages: &[Page], rounds: usize, runtime: &tokio::runtime::Runtime) -> anyhow::Result<()> {
    let (mut best, mut sum) = (u64::MAX, 0);
    for _ in 0..rounds {
        let Some(from) = cpu_nanos() else { return Ok(()) };
        for page in pages {
            black_box(for_frontier_and_record(&parsed(page)));
        }
        runtime.block_on(Box::pin(archive(pages)))?;
        let took = cpu_nanos().unwrap_or(from) - from;
        (best, sum) = (best.min(took), sum + took);
    }
    let micros = |nanos: u64| nanos as f64 / pages.len() as f64 / 1e3;
    println!("{:<34} {:>9.1}", "the way by CPU time, best round", micros(best));
    println!("{:<34} {:>9.1}\n", "the way by CPU time, mean", micros(sum) / rounds as f64);
    Ok(())
}

/// Nanoseconds that this thread has run.
fn cpu_nanos() -> Option<u64> {
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

fn runtime(paused: bool) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(paused).build()
}

fn report(pages: &[Page], held: &Held, costs: &Costs) {
    let count = pages.len();
    let received: usize = pages.iter().map(|page| page.body.len()).sum();
    println!(
        "{count} pages, mean {} bytes received, {} decoded, of these {} text; {} links\n",
        received / count,
        held.decoded_bytes / count,
        held.text_bytes / count,
        held.links / count,
    );
    println!("{:<34} µs a page", "stage");
    let count = count as f64;
    for (stage, cost) in STAGES.iter().zip(costs) {
        println!("{stage:<34} {:>9.1}", cost / count);
    }
    let way = WAY.iter().map(|at| costs[*at]).sum::<f64>() / count;
    let mark = MARK_MICROS * (held.decoded_bytes as f64 / count) / MARK_BYTES;
    println!("{:<34} {way:>9.1}", "the page's way");
    println!("{:<34} {mark:>9.1}", "the mark for pages of this size");
}

/// The stages of parsing, one after the other, then all at once.
fn measure(page: &Page, held: &mut Held) -> Costs {
    let mut costs: Costs = [0.0; STAGES.len()];
    let limits = Limits::default();
    let never = || false;
    timed(&mut costs[0], || sha1::Sha1::digest(&page.body));
    let decoded =
        timed(&mut costs[1], || decode(&page.headers, &page.body, &limits.decode, limits.memory));
    let charset = Mime::of_response(&page.headers).and_then(|mime| mime.charset);
    let read =
        timed(&mut costs[2], || to_text(&decoded.bytes, charset.as_deref(), true, usize::MAX));
    let options = ScanOptions {
        links_max: limits.links_max,
        text_bytes_max: limits.text_bytes_max,
        references_bytes_max: usize::MAX,
        meta_names: &["robots", "mehman"],
        measures_depth: false,
        is_xml: false,
        out_of_time: &never,
    };
    let found = timed(&mut costs[3], || scan(&read.text, &options));
    timed(&mut costs[4], || {
        let base = Base::new(page.url.as_url(), found.base_href.as_deref(), read.encoding);
        resolve_links(&found.links, &found.text, &base, usize::MAX, &never)
    });
    timed(&mut costs[5], || fingerprints(&found.text));
    timed(&mut costs[6], || blake3::hash(&decoded.bytes));
    let parsed = timed(&mut costs[7], || parsed(page));
    timed(&mut costs[8], || for_frontier_and_record(&parsed));
    held.decoded_bytes += decoded.bytes.len();
    held.text_bytes += parsed.text.len();
    held.links += parsed.links.len();
    costs
}

fn parsed(page: &Page) -> Parsed {
    let input = Input {
        url: &page.url,
        headers: &page.headers,
        body: &page.body,
        product: "mehman",
        extractors: &[],
        out_of_time: &|| false,
    };
    parse(&input, &Limits::default())
}

/// What becomes of the links: each as a URL that may be requested, and each as the record has it.
fn for_frontier_and_record(parsed: &Parsed) -> (Vec<CrawlUrl>, Vec<Link>) {
    let urls = parsed.links.iter().filter_map(|link| CrawlUrl::parse(link.url).ok());
    (urls.collect(), parsed.links.to_record())
}

/// Does the work and notes what it took.
fn timed<T>(cost: &mut f64, work: impl FnOnce() -> T) -> T {
    let from = now();
    let done = black_box(work());
    *cost = micros_since(from);
    done
}

#[expect(clippy::disallowed_methods, reason = "the crawler's clock counts milliseconds")]
fn now() -> Instant {
    Instant::now()
}

fn micros_since(from: Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1e6
}

/// Digest, records, members and their way into a file, through the actor's own mailbox. All of it
/// runs on this thread.
async fn archive(pages: &[Page]) -> anyhow::Result<f64> {
    let (tell, mut heard) = mpsc::channel(pages.len());
    let (shard, shard_task) = Actor::spawn(None, Listener, tell).await?;
    let dice = Arc::new(SeededDice::new(1));
    let args = ArchiveArgs {
        spool: Arc::new(MemorySpool::new()),
        clock: Arc::new(TokioClock::system()),
        dice,
        routes: watch::channel(Arc::new(Routes::default())).1,
        exclusions: watch::channel(Arc::default()).1,
        metrics: Arc::default(),
        settings: ArchiveSettings {
            format: ArchiveFormat::WarcGz,
            file_bytes_max: u64::MAX,
            file_age_max: Duration::from_secs(3600),
            index: 0,
            count: 1,
            crawler: CrawlerInfo {
                software: "mehman".to_owned(),
                user_agent: "mehman".to_owned(),
                operator: "bench@example.org".to_owned(),
            },
        },
    };
    let (actor, actor_task) = Actor::spawn(None, ArchiveActor, args).await?;
    let jobs: Vec<StoreJob> = pages.iter().map(|page| job(page, &shard)).collect();
    let from = now();
    for job in jobs {
        actor.send_message(ArchiveMsg::Store(Box::new(job)))?;
    }
    for _ in pages {
        heard.recv().await.context("the archive did not answer")?;
    }
    let cost = micros_since(from);
    // Without closing: reading a file back is not part of a page's way.
    actor.stop(None);
    shard.stop(None);
    actor_task.await?;
    shard_task.await?;
    Ok(cost)
}

fn job(page: &Page, shard: &ActorRef<ShardMsg>) -> StoreJob {
    let host = page.url.host_key();
    let entry = QueueEntry {
        id: UrlId { host: host.id(), hash: 0, disambiguator: 0 },
        version: UrlVersion(1),
        url: page.url.clone(),
        depth: 0,
        band: 0,
        order: 0,
        attempts: 0,
        redirects: 0,
        validators: None,
        discovered_from: None,
    };
    let lease = Lease {
        id: LeaseId(1),
        kind: LeaseKind::Page,
        host,
        entry,
        epoch: Epoch(1),
        granted_at: Timestamp::EPOCH,
        not_before: Timestamp::EPOCH,
        expires_at: Timestamp::NEVER,
        address: None,
    };
    let completion = Completion::failed(&lease, Timestamp::EPOCH, Outcome::Ok, Reason::Queued);
    let response = Response {
        lease: Arc::new(lease),
        request_head: Bytes::from_static(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        protocol: "HTTP/1.1",
        status: 200,
        status_line: None,
        headers: page.headers.clone(),
        body: page.body.clone(),
        truncated: None,
        sent_at: Timestamp::EPOCH,
        ended_at: Timestamp::EPOCH,
        address: "192.0.2.1:80".parse().expect("an address as it is written"),
    };
    let (shard, permit, unheard) = (shard.clone(), Permit::free(), Unheard::default());
    StoreJob { response, completion, shard, permit, unheard }
}

/// Hears what the archive reports.
struct Listener;

impl Actor for Listener {
    type Msg = ShardMsg;
    type State = mpsc::Sender<()>;
    type Arguments = mpsc::Sender<()>;

    async fn pre_start(
        &self,
        _me: ActorRef<ShardMsg>,
        tell: mpsc::Sender<()>,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(tell)
    }

    async fn handle(
        &self,
        _me: ActorRef<ShardMsg>,
        message: ShardMsg,
        tell: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if matches!(message, ShardMsg::Ended(_)) {
            tell.send(()).await?;
        }
        Ok(())
    }
}

/// Every `.html` and `.htm` of a folder, compressed as a server would send it.
fn pages_in(folder: &Path) -> anyhow::Result<Vec<Page>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        let is_html = path.extension().is_some_and(|kind| kind == "html" || kind == "htm");
        if is_html {
            let url = format!("https://www.example.org/pages/{}", pages.len());
            pages.push(page(&url, "text/html", gzipped(&fs::read(&path)?)?)?);
        }
    }
    Ok(pages)
}

/// Articles of the sandbox, over HTTP: from hosts that have enough of them for a navigation.
async fn pages_of_sandbox(sizes: PageSizes) -> anyhow::Result<Vec<Page>> {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::system());
    let options =
        SandboxOptions { sizes, hosts: 16, pages_per_host: 250, ..SandboxOptions::default() };
    let sandbox = Sandbox::start(options, clock).await?;
    let web = sandbox.web_addresses();
    let address = web.first().context("the sandbox has no address")?;
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let client = reqwest::Client::new();
    let urls = sandbox.urls_of(Behaviour::Article);
    let step = (urls.len() / SANDBOX_PAGES).max(1);
    let mut pages = Vec::new();
    for url in urls.iter().step_by(step).take(SANDBOX_PAGES) {
        let parsed = CrawlUrl::parse(url).map_err(anyhow::Error::msg)?;
        let at = format!("http://{address}{}", parsed.path_and_query());
        let request = client.get(at).header("host", parsed.host_key().authority());
        let response = request.send().await?.error_for_status()?;
        let content_type = response.headers().get("content-type").context("without a type")?;
        let content_type = content_type.to_str()?.to_owned();
        pages.push(page(url, &content_type, gzipped(&response.bytes().await?)?)?);
    }
    sandbox.shutdown().await;
    Ok(pages)
}

fn page(url: &str, content_type: &str, body: Bytes) -> anyhow::Result<Page> {
    let headers = [("content-type", content_type), ("content-encoding", "gzip")];
    let headers =
        headers.map(|(name, value)| (name.to_owned(), Bytes::copy_from_slice(value.as_bytes())));
    Ok(Page {
        url: CrawlUrl::parse(url).map_err(anyhow::Error::msg)?,
        headers: headers.into(),
        body,
    })
}

/// The same page as a server sends it that does not compress.
fn uncompressed(page: &Page) -> Page {
    let limits = Limits::default();
    let body = decode(&page.headers, &page.body, &limits.decode, limits.memory).bytes;
    let kept = page.headers.iter().filter(|(name, _)| name != "content-encoding");
    Page { url: page.url.clone(), headers: kept.cloned().collect(), body }
}

fn gzipped(body: &[u8]) -> anyhow::Result<Bytes> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut out = vec![0; compressor.gzip_compress_bound(body.len())];
    let length = compressor.gzip_compress(body, &mut out)?;
    out.truncate(length);
    Ok(out.into())
}
