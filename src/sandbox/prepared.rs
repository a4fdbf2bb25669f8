//! Pages made and compressed before anybody asks, so that the server's work is not in the way of
//! whatever is measured against it.
//!
//! A host's pages are made together, all hosts by as many threads as there are processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use bytes::Bytes;
use libdeflater::{CompressionLvl, Compressor};
use tokio::task::JoinSet;

use super::page::{self, Page};
use super::site::{HostPlan, Shape};
use super::web::{Web, is_compressible};

/// A page with its body compressed; the page itself has none.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) page: Page,
    pub(super) gzip: Bytes,
}

/// By host and place in its plan; nothing for pages that are not worth compressing.
#[derive(Debug, Default)]
pub(super) struct Prepared(Vec<OnceLock<Vec<Option<Made>>>>);

impl Prepared {
    /// Room for so many hosts; none are prepared yet.
    pub(super) fn of(hosts: u16) -> Self {
        Self((0..hosts).map(|_| OnceLock::new()).collect())
    }

    /// The page of a plan, where pages of it are kept.
    pub(super) fn find(&self, shape: &Shape, plan: &HostPlan, nth: usize) -> Option<&Made> {
        let host = self.0.get(usize::from(plan.host))?;
        host.get_or_init(|| make(shape, plan)).get(nth)?.as_ref()
    }
}

/// Makes the pages of all hosts.
pub(super) async fn prepare(web: &Arc<Web>) {
    let next = Arc::new(AtomicU16::new(0));
    let mut makers = JoinSet::new();
    for _ in 0..available_parallelism().map_or(1, NonZero::get) {
        let (web, next) = (Arc::clone(web), Arc::clone(&next));
        makers.spawn_blocking(move || {
            while let Some(plan) = web.plan(next.fetch_add(1, Ordering::Relaxed)) {
                web.prepared.find(&web.shape, plan, 0);
            }
        });
    }
    makers.join_all().await;
}

fn make(shape: &Shape, plan: &HostPlan) -> Vec<Option<Made>> {
    let mut compressor = Compressor::new(CompressionLvl::default());
    let places = 0..plan.nodes.len();
    places.map(|nth| compressed(page::page(shape, plan, nth), &mut compressor)).collect()
}

fn compressed(mut page: Page, compressor: &mut Compressor) -> Option<Made> {
    if !is_compressible(&page) {
        return None;
    }
    let body = std::mem::take(&mut page.body);
    let mut gzip = vec![0; compressor.gzip_compress_bound(body.len())];
    let length = compressor.gzip_compress(&body, &mut gzip).ok()?;
    gzip.truncate(length);
    gzip.shrink_to_fit();
    Some(Made { page, gzip: gzip.into() })
}
