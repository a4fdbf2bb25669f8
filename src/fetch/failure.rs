//! What went wrong, as outcome and reason: the words are for whoever asks why a page is missing.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError, InvalidMessage};

use super::http1::HEADER_BYTES_MAX;
use crate::types::{Outcome, Reason, SizeLimit};

/// Links of a chain that are looked at; a longer one has gone in a circle.
const CHAIN_MAX: usize = 32;

/// How an exchange without a response ended, and why.
pub(super) type Failed = (Outcome, Reason);

/// What came is no HTTP, or not enough of it.
pub(super) fn protocol(why: impl Into<String>) -> Failed {
    (Outcome::Protocol, Reason::Protocol { why: why.into() })
}

/// H1: more headers than are taken.
pub(super) fn too_many_headers() -> Failed {
    let reason = Reason::TooLarge { limit: SizeLimit::Headers, max: HEADER_BYTES_MAX.into() };
    (Outcome::TooLarge, reason)
}

/// The socket could not be connected.
pub(super) fn connect(error: &io::Error) -> Failed {
    (Outcome::Connect, Reason::Connect { why: words(error) })
}

/// The handshake failed: over TLS itself, or because the connection ended within it.
pub(super) fn handshake(error: &io::Error) -> Failed {
    let tls = chain(error).find_map(|link| link.downcast_ref::<rustls::Error>());
    let why = match tls {
        Some(tls) => tls_words(tls),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server closed the connection during the handshake".to_owned()
        }
        None => format!("the connection ended during the handshake: {}", words(error)),
    };
    (Outcome::Tls, Reason::Tls { why })
}

/// The words of the TLS library, begun with what they mean where that is not plain.
#[expect(clippy::wildcard_enum_match_arm, reason = "of a library: its own words serve as well")]
fn tls_words(error: &rustls::Error) -> String {
    let meaning = match error {
        rustls::Error::InvalidCertificate(why) => certificate(why),
        rustls::Error::AlertReceived(alert) => Some(alerted(*alert)),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            Some("the server does not answer with TLS")
        }
        rustls::Error::PeerIncompatible(_) => Some("the server offers no TLS 1.2 or 1.3 of ours"),
        _ => None,
    };
    match meaning {
        Some(meaning) => format!("{meaning} ({error})"),
        None => error.to_string(),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "of a library: its own words serve as well")]
fn certificate(why: &CertificateError) -> Option<&'static str> {
    Some(match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is for other names"
        }
        CertificateError::UnknownIssuer => {
            "the server's certificate comes from nobody trusted here, or its chain is not complete"
        }
        CertificateError::Revoked => "the server's certificate was revoked",
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "of a library: its own words serve as well")]
fn alerted(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::HandshakeFailure
        | AlertDescription::ProtocolVersion
        | AlertDescription::InsufficientSecurity => {
            "the server has no TLS version or cipher in common with us"
        }
        AlertDescription::UnrecognisedName => "the server does not know this name",
        AlertDescription::CertificateRequired => "the server wants a certificate of ours",
        _ => "the server broke off the handshake",
    }
}

/// The innermost words: they name the cause, the outer ones only the place.
pub(super) fn words(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// An error and its causes. An [`io::Error`] hides what it wraps from `source`, so it is opened.
pub(super) fn chain<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |link| {
        let link: &'e (dyn Error + 'static) = *link;
        match link.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => link.source(),
        }
    })
    .take(CHAIN_MAX)
}
