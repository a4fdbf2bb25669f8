//! What discovery follows, as values.

use std::collections::BTreeSet;

use crate::policy::scope::ScopeSettings;
use crate::policy::traps::TrapSettings;
use crate::types::LinkKind;

/// `[scope]`, `[traps]` and what bounds redirects.
#[derive(Clone, Debug)]
pub struct DiscoverySettings {
    /// `[scope]`.
    pub scope: ScopeSettings,
    /// `[traps]`.
    pub traps: TrapSettings,
    /// `scope.follow_links`; redirects and the entries of sitemaps and feeds always among them.
    pub follow: BTreeSet<LinkKind>,
    /// `fetch.max_redirects`.
    pub max_redirects: u8,
}
