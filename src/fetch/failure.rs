//! What went wrong, read from the chain of an error's sources: outcome and reason.

use std::error::Error;
use std::io;

use super::connect::{ATTEMPT_MAX, HEADER_BYTES_MAX};
use crate::types::{Outcome, Reason, SizeLimit, TimeLimit};

/// Links of a chain that are looked at; a longer one has gone in a circle.
const CHAIN_MAX: usize = 32;

/// Why an exchange brought no response.
pub(super) fn explain(error: &reqwest::Error) -> (Outcome, Reason) {
    let why = words(error);
    if error.is_builder() {
        return (Outcome::Protocol, Reason::NotAUrl { why });
    }
    if chain(error).any(|link| link.is::<rustls::Error>()) {
        return (Outcome::Tls, Reason::Tls { why });
    }
    if error.is_connect() && error.is_timeout() {
        let reason = Reason::TimedOut { limit: TimeLimit::Connect, after: ATTEMPT_MAX };
        return (Outcome::Timeout, reason);
    }
    if error.is_connect() {
        // The socket's own failure stands alone; one during the handshake comes wrapped in another.
        return if chain(error).filter(|link| link.is::<io::Error>()).count() > 1 {
            (Outcome::Tls, Reason::Tls { why })
        } else {
            (Outcome::Connect, Reason::Connect { why })
        };
    }
    if hyper_error(error).is_some_and(hyper::Error::is_parse_too_large) {
        return too_many_headers();
    }
    (Outcome::Protocol, Reason::Protocol { why })
}

/// H1: more headers than are taken.
pub(super) fn too_many_headers() -> (Outcome, Reason) {
    let reason = Reason::TooLarge { limit: SizeLimit::Headers, max: HEADER_BYTES_MAX.into() };
    (Outcome::TooLarge, reason)
}

/// The innermost words: they name the cause, the outer ones only the place.
pub(super) fn words(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn hyper_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e hyper::Error> {
    chain(error).find_map(|link| link.downcast_ref())
}

/// An error and its causes. An [`io::Error`] hides what it wraps from `source`, so it is opened.
fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |link| {
        let link: &'e (dyn Error + 'static) = *link;
        match link.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => link.source(),
        }
    })
    .take(CHAIN_MAX)
}
