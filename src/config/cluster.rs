//! The frontier's shape and the cluster: `[frontier]`, `[cluster]` (F3, F10, A3).

use std::net::SocketAddr;
use std::path::PathBuf;

use super::define::section;
use super::reader::{Check, Checked, Unfit};
use super::value::words;

section! {
    /// How the frontier is cut and what of it is in memory.
    pub struct Frontier {
        /// Parts the frontier is cut into, fixed at the first start. 4 do for one node; a cluster
        /// sets 256.
        shards: u16 = 4, within(1..=4096);
        /// HostActors in memory at once; hosts at rest are rows on disk.
        resident_hosts: u32 = 50_000, within(1..=10_000_000);
        /// URLs of a host in memory; the rest of its queue is on disk.
        window: u32 = 64, within(1..=65_536);
        /// Of 15 grants of a host with work in every band, how many go to each, the most urgent
        /// first; none may be 0, so that no band starves.
        bands: [u8; 4] = [8, 4, 2, 1],
            that(|bands| bands.iter().all(|share| *share > 0), "from 1 to 255");
    }
}

impl Checked for Frontier {}

words! {
    /// Who knows which node owns which shard.
    pub enum CoordinatorKind {
        /// Nobody needs to: one node.
        None = "none",
        /// etcd, over its HTTP gateway.
        Etcd = "etcd",
    }
}

section! {
    /// Membership and ownership over several nodes (A3).
    pub struct Cluster {
        /// `"none"` for one node, or `"etcd"`.
        coordinator: CoordinatorKind = CoordinatorKind::None;
        /// URLs of the coordinator, `["http://127.0.0.1:2379"]`.
        endpoints: Vec<String> = Vec::new(),
            each(|url| is_endpoint(url), "that is an http or https URL");
        /// This node's name, its own in the cluster.
        node: Option<String> = None,
            that(|name| name.as_deref().is_none_or(is_node_name), NODE_NAME);
        /// Where this node stands; hosts with this home region are placed here.
        region: Option<String> = None,
            that(|name| name.as_deref().is_none_or(is_node_name), NODE_NAME);
        /// Address and port for the other nodes.
        peer_listen: Option<SocketAddr> = None;
        /// PEM file of the authority that signs the nodes' certificates.
        ca_file: Option<PathBuf> = None;
        /// PEM file of this node's certificate.
        certificate_file: Option<PathBuf> = None;
        /// PEM file of its key.
        key_file: Option<PathBuf> = None;
    }
}

impl Checked for Cluster {
    fn check(&self, check: &mut Check<'_>) {
        match self.coordinator {
            CoordinatorKind::None => return,
            CoordinatorKind::Etcd => {}
        }
        let needed = [
            ("endpoints", !self.endpoints.is_empty()),
            ("node", self.node.is_some()),
            ("peer_listen", self.peer_listen.is_some()),
            ("ca_file", self.ca_file.is_some()),
            ("certificate_file", self.certificate_file.is_some()),
            ("key_file", self.key_file.is_some()),
        ];
        for (key, given) in needed {
            let fault = Unfit {
                found: None,
                problem: "missing, and a coordinator is set",
                remedy: "wanted a value, or `cluster.coordinator` = \"none\"",
            };
            check.refuse_unless(given, &[key, "coordinator"], fault);
        }
    }
}

fn is_endpoint(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// What [`is_node_name`] wants.
const NODE_NAME: &str = "of letters, digits, `.`, `_` and `-`";

fn is_node_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !text.is_empty() && text.bytes().all(fits)
}
