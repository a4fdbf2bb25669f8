//! How pages behave, and which hosts have which behaviour.

use super::site::RobotsAnswer;

/// How a page of the sandbox behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behaviour {
    /// An HTML page with text, images and links.
    Article,
    /// The bytes of another page of the host under a second URL, with a canonical link to it.
    Duplicate,
    /// An HTML page under `/private/`, which the host's robots.txt closes.
    Private,
    /// An HTML page that is linked with `rel=nofollow` only.
    NofollowOnly,
    /// A redirect (301, 302, 307 or 308) to an article of the host.
    Redirect,
    /// The first of three redirects that end at an article.
    RedirectChain,
    /// One of two redirects that point to each other.
    RedirectLoop,
    /// A redirect to an article of another host.
    RedirectAway,
    /// A redirect to a page that robots.txt closes.
    RedirectPrivate,
    /// A later hop of a chain, linked from nowhere.
    RedirectHop,
    /// 404.
    NotFound,
    /// 410.
    Gone,
    /// 500, every time.
    ServerError,
    /// 503 with Retry-After the first time, an HTML page from then on.
    BusyOnce,
    /// 429 with Retry-After the first time, an HTML page from then on.
    LimitedOnce,
    /// An HTML page whose first byte is late.
    Slow,
    /// An HTML page whose body comes in small pieces with pauses.
    Drip,
    /// An HTML page of `SandboxOptions::big_bytes`.
    Big,
    /// An HTML page with broken markup; one article is linked from there only.
    Tangled,
    /// `text/plain`.
    PlainText,
    /// The bytes of a PDF.
    Pdf,
    /// A PNG of one pixel.
    Image,
}

impl Behaviour {
    /// Whether the answer is a redirect.
    pub(super) fn is_redirect(self) -> bool {
        matches!(
            self,
            Self::Redirect
                | Self::RedirectChain
                | Self::RedirectLoop
                | Self::RedirectAway
                | Self::RedirectPrivate
                | Self::RedirectHop
        )
    }
}

/// Which behaviours beside articles a host has: each comes back after its period of hosts.
pub(super) fn leaves(robots: RobotsAnswer, host: u16) -> impl Iterator<Item = Behaviour> {
    let spread = SPREAD
        .iter()
        .filter(move |(_, period, first)| host % period == *first)
        .map(|(behaviour, _, _)| *behaviour);
    let private = [Behaviour::Private, Behaviour::Private, Behaviour::RedirectPrivate];
    let hidden = private.into_iter().filter(move |_| robots.hides_private());
    spread.chain(hidden).filter(move |_| robots != RobotsAnswer::Delayed)
}

/// Behaviour, period in hosts, first host.
const SPREAD: [(Behaviour, u16, u16); 19] = [
    (Behaviour::Redirect, 1, 0),
    (Behaviour::NotFound, 2, 0),
    (Behaviour::Image, 2, 1),
    (Behaviour::Duplicate, 3, 0),
    (Behaviour::Tangled, 4, 0),
    (Behaviour::PlainText, 4, 1),
    (Behaviour::Pdf, 5, 0),
    (Behaviour::Gone, 5, 1),
    (Behaviour::NofollowOnly, 5, 4),
    (Behaviour::Slow, 6, 1),
    (Behaviour::RedirectAway, 6, 0),
    (Behaviour::ServerError, 8, 4),
    (Behaviour::RedirectChain, 10, 1),
    (Behaviour::RedirectLoop, 10, 4),
    (Behaviour::BusyOnce, 10, 5),
    (Behaviour::LimitedOnce, 40, 6),
    (Behaviour::Drip, 10, 7),
    (Behaviour::Big, 10, 0),
    (Behaviour::Slow, 10, 9),
];

/// The path of a page that is not in the tree of articles.
pub(super) fn leaf_path(behaviour: Behaviour, nth: usize) -> String {
    let (folder, ending) = match behaviour {
        Behaviour::Article => ("hidden", ".html"),
        Behaviour::Duplicate => ("print", ".html"),
        Behaviour::Private => ("private", ".html"),
        Behaviour::NofollowOnly => ("sponsored", ".html"),
        Behaviour::Redirect => ("moved", ""),
        Behaviour::RedirectChain => ("chain", ""),
        Behaviour::RedirectHop => ("hop", ""),
        Behaviour::RedirectLoop => ("loop", ""),
        Behaviour::RedirectAway => ("away", ""),
        Behaviour::RedirectPrivate => ("members", ""),
        Behaviour::NotFound => ("lost", ".html"),
        Behaviour::Gone => ("gone", ".html"),
        Behaviour::ServerError => ("error", ".html"),
        Behaviour::BusyOnce => ("busy", ".html"),
        Behaviour::LimitedOnce => ("limited", ".html"),
        Behaviour::Slow => ("slow", ".html"),
        Behaviour::Drip => ("drip", ".html"),
        Behaviour::Big => ("big", ".html"),
        Behaviour::Tangled => ("tangled", ".html"),
        Behaviour::PlainText => ("files", ".txt"),
        Behaviour::Pdf => ("files", ".pdf"),
        Behaviour::Image => ("pictures", ".png"),
    };
    format!("/{folder}/{nth}{ending}")
}
