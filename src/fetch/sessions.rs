//! TLS sessions to be resumed (H6): the newest one of each host, of so many hosts.
//!
//! A server sends two tickets or more with every connection, and each holds a copy of its chain of
//! certificates. A host has one connection at a time as a rule, and every connection brings the
//! ticket for the next: keeping one costs a quarter of keeping all of them.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Sessions by host; the host heard of first goes first.
pub(super) struct Sessions {
    kept: Mutex<Kept>,
    hosts_max: usize,
}

#[derive(Default)]
struct Kept {
    hosts: HashMap<ServerName<'static>, Host>,
    oldest: VecDeque<ServerName<'static>>,
}

#[derive(Default)]
struct Host {
    group: Option<NamedGroup>,
    session: Option<Session>,
}

/// Boxed: the map has more places than hosts.
enum Session {
    Tls12(Box<Tls12ClientSessionValue>),
    Tls13(Box<Tls13ClientSessionValue>),
}

impl Sessions {
    /// Of no host yet; of `hosts_max` at most.
    pub(super) fn new(hosts_max: usize) -> Self {
        Self { kept: Mutex::default(), hosts_max }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, name: ServerName<'static>, change: impl FnOnce(&mut Host)) {
        let mut kept = self.kept();
        let Kept { hosts, oldest } = &mut *kept;
        match hosts.entry(name) {
            Entry::Occupied(mut known) => change(known.get_mut()),
            Entry::Vacant(place) => {
                oldest.push_back(place.key().clone());
                change(place.insert(Host::default()));
            }
        }
        while oldest.len() > self.hosts_max {
            if let Some(name) = oldest.pop_front() {
                hosts.remove(&name);
            }
        }
    }
}

impl fmt::Debug for Sessions {
    /// Nothing of a session: its keys are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sessions({} hosts)", self.kept().hosts.len())
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.change(name, |host| host.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().hosts.get(name).and_then(|host| host.group)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.change(name, |host| host.session = Some(Session::Tls12(Box::new(value))));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        match self.kept().hosts.get(name)?.session.as_ref()? {
            Session::Tls12(value) => Some(Tls12ClientSessionValue::clone(value)),
            Session::Tls13(_) => None,
        }
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        if let Some(host) = self.kept().hosts.get_mut(name) {
            host.session.take_if(|session| matches!(session, Session::Tls12(_)));
        }
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.change(name, |host| host.session = Some(Session::Tls13(Box::new(value))));
    }

    /// A ticket is used once: whoever watches must not see that two connections are of one client.
    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut kept = self.kept();
        let session = &mut kept.hosts.get_mut(name)?.session;
        match session.take_if(|session| matches!(session, Session::Tls13(_)))? {
            Session::Tls13(value) => Some(*value),
            Session::Tls12(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(host: &str) -> ServerName<'static> {
        ServerName::try_from(host.to_owned()).unwrap()
    }

    #[test]
    fn the_host_heard_of_first_is_forgotten_first() {
        let sessions = Sessions::new(2);
        for host in ["a.test", "b.test", "a.test", "c.test"] {
            sessions.set_kx_hint(name(host), NamedGroup::X25519);
        }
        let known = ["a.test", "b.test", "c.test"].map(|host| sessions.kx_hint(&name(host)));
        assert_eq!(known, [None, Some(NamedGroup::X25519), Some(NamedGroup::X25519)]);
        assert_eq!(format!("{sessions:?}"), "Sessions(2 hosts)");
    }

    #[test]
    fn where_no_host_is_remembered_none_is() {
        let sessions = Sessions::new(0);
        sessions.set_kx_hint(name("a.test"), NamedGroup::X25519);
        assert_eq!(sessions.kx_hint(&name("a.test")), None);
        assert!(sessions.take_tls13_ticket(&name("a.test")).is_none());
    }
}
