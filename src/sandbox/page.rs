//! What a page answers: status, headers and bytes, as a pure function of shape, plan and place.

use std::borrow::Cow;
use std::fmt::Write as _;

use encoding_rs::Encoding;
use httpdate::HttpDate;

use super::behaviour::Behaviour;
use super::draw::Draw;
use super::options::PageSizes;
use super::site::{HostPlan, Link, Node, RobotsAnswer, Shape, calendar_path, host_name};
use super::words::{Language, voice};

mod markup;

/// A PNG of one pixel.
pub(super) const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0,
    1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, b'I', b'D', b'A', b'T',
    0x78, 0x9c, 0x63, 0x60, 0x60, 0x60, 0xf8, 0x0f, 0, 1, 4, 1, 0, 0x5f, 0xe5, 0xc3, 0x4b, 0, 0, 0,
    0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

/// The quantiles of page sizes in permille of the median: log-normal with sigma 1, in integers so
/// that every machine draws the same. Their mean is 1.56 times the median.
const SIZE_PERMILLE: [usize; 16] =
    [155, 268, 364, 460, 560, 669, 789, 925, 1081, 1267, 1495, 1784, 2173, 2746, 3736, 6442];

/// The day the first page was last modified, in seconds since the epoch: 2024-01-01.
const FIRST_DAY_SECS: u64 = 1_704_067_200;
/// Sentences of a paragraph, at most.
const SENTENCES_MAX: usize = 6;
/// A paragraph in this many comes with a picture.
const PICTURE_EVERY: usize = 4;

const SALT_TEXT: u64 = 11;
const SALT_SIZE: u64 = 12;
const SALT_AGE: u64 = 13;
const SALT_TAG: u64 = 14;
const SALT_CALENDAR: u64 = 15;

/// What a page answers, before content coding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) content_type: Cow<'static, str>,
    /// Of a redirect.
    pub(super) location: Option<String>,
    pub(super) stamp: Option<Stamp>,
    pub(super) body: Vec<u8>,
}

impl Page {
    /// A short answer in plain text.
    pub(super) fn plain(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: Cow::Borrowed("text/plain; charset=utf-8"),
            location: None,
            stamp: None,
            body: text.as_bytes().to_vec(),
        }
    }

    /// A redirect.
    pub(super) fn redirect(status: u16, location: String) -> Self {
        Self { location: Some(location), ..Self::plain(status, "this page is elsewhere\n") }
    }

    fn content(content_type: Cow<'static, str>, stamp: Stamp, body: Vec<u8>) -> Self {
        Self { status: 200, content_type, location: None, stamp: Some(stamp), body }
    }
}

/// The validators of a page. They are known without making its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    tag: u64,
    /// Seconds since the epoch.
    pub(super) modified_secs: u64,
}

impl Stamp {
    /// The stamp of a page; `None` where validators have no meaning.
    pub(super) fn of(shape: &Shape, plan: &HostPlan, nth: usize) -> Option<Self> {
        let behaviour = plan.node(nth)?.behaviour;
        let failing =
            [Behaviour::NotFound, Behaviour::Gone, Behaviour::ServerError].contains(&behaviour);
        if failing || behaviour.is_redirect() {
            return None;
        }
        let days = draw(shape, plan, nth, SALT_AGE).bits() % 500;
        let tag = draw(shape, plan, nth, SALT_TAG).bits();
        Some(Self { tag, modified_secs: FIRST_DAY_SECS + days * 86_400 })
    }

    /// The entity tag: weak, because it holds with and without content coding.
    pub(super) fn entity_tag(self) -> String {
        format!("W/\"{:016x}\"", self.tag)
    }

    /// The date of the last change as headers have it.
    pub(super) fn last_modified(self) -> String {
        let since = std::time::Duration::from_secs(self.modified_secs);
        HttpDate::from(std::time::UNIX_EPOCH + since).to_string()
    }
}

/// The answer of a page of the plan.
pub(super) fn page(shape: &Shape, plan: &HostPlan, nth: usize) -> Page {
    let Some(node) = plan.node(nth) else {
        return Page::plain(404, "no such page\n");
    };
    if let Some((status, to)) = node.redirect {
        return Page::redirect(status, plan.url_of(shape, to));
    }
    let Some(stamp) = Stamp::of(shape, plan, nth) else {
        let status = if node.behaviour == Behaviour::Gone { 410 } else { 404 };
        let failing = node.behaviour == Behaviour::ServerError;
        return Page::plain(if failing { 500 } else { status }, "nothing to see here\n");
    };
    let (language, encoding) = voice(plan.host);
    match node.behaviour {
        Behaviour::PlainText => {
            let mut text = String::new();
            paragraph(language, &mut draw(shape, plan, nth, SALT_TEXT), &mut text);
            let content_type = format!("text/plain; charset={}", charset(encoding));
            Page::content(Cow::Owned(content_type), stamp, encode(encoding, &text))
        }
        Behaviour::Pdf => Page::content(Cow::Borrowed("application/pdf"), stamp, pdf()),
        Behaviour::Image => Page::content(Cow::Borrowed("image/png"), stamp, PIXEL.to_vec()),
        Behaviour::Article
        | Behaviour::Duplicate
        | Behaviour::Private
        | Behaviour::NofollowOnly
        | Behaviour::Redirect
        | Behaviour::RedirectChain
        | Behaviour::RedirectLoop
        | Behaviour::RedirectAway
        | Behaviour::RedirectPrivate
        | Behaviour::RedirectHop
        | Behaviour::NotFound
        | Behaviour::Gone
        | Behaviour::ServerError
        | Behaviour::BusyOnce
        | Behaviour::LimitedOnce
        | Behaviour::Slow
        | Behaviour::Drip
        | Behaviour::Big
        | Behaviour::Tangled => {
            let shown = node.original.unwrap_or(nth);
            let text = Writer::new(shape, plan, shown).html();
            // Every second host says its encoding in the page only, as the web does.
            let content_type = if plan.host.is_multiple_of(2) {
                Cow::Owned(format!("text/html; charset={}", charset(encoding)))
            } else {
                Cow::Borrowed("text/html")
            };
            Page::content(content_type, stamp, encode(encoding, &text))
        }
    }
}

/// The robots.txt of a host.
pub(super) fn robots(shape: &Shape, robots: RobotsAnswer) -> Page {
    let delay = shape.options.crawl_delay.as_secs();
    match robots {
        RobotsAnswer::Missing => Page::plain(404, "no robots.txt here\n"),
        RobotsAnswer::Open => Page::plain(200, "# Welcome.\nUser-agent: *\nDisallow:\n"),
        RobotsAnswer::Private => Page::plain(200, "User-agent: *\nDisallow: /private/\n"),
        RobotsAnswer::Delayed => {
            Page::plain(200, &format!("User-agent: *\nCrawl-delay: {delay}\nDisallow:\n"))
        }
        RobotsAnswer::Unavailable => Page::plain(503, "come back later\n"),
        RobotsAnswer::Elsewhere(host) => Page::redirect(301, shape.url(host, "/robots.txt")),
    }
}

/// A day of the calendar: links to the next day and to one far ahead, for ever.
pub(super) fn calendar(shape: &Shape, plan: &HostPlan, day: u32) -> Page {
    let mut words = Draw::of(&[shape.options.seed, u64::from(day), SALT_CALENDAR]);
    let (language, encoding) = voice(plan.host);
    let title = language.phrase(&mut words, 3);
    let (next, far) = (calendar_path(day + 1), calendar_path(day.saturating_mul(2) + 31));
    let text = format!(
        "<!doctype html>\n<html lang=\"{}\"><head><meta charset=\"{}\"><title>{title} {day}</title>\
         </head><body><h1>{title} {day}</h1><a href=\"{next}\">{}</a> <a href=\"{far}\">{}</a>\
         </body></html>\n",
        language.code,
        charset(encoding),
        day + 1,
        day.saturating_mul(2) + 31,
    );
    let content_type = Cow::Owned(format!("text/html; charset={}", charset(encoding)));
    let stamp = Stamp { tag: words.bits(), modified_secs: FIRST_DAY_SECS };
    Page::content(content_type, stamp, encode(encoding, &text))
}

fn draw(shape: &Shape, plan: &HostPlan, nth: usize, salt: u64) -> Draw {
    let nth = u64::try_from(nth).unwrap_or(u64::MAX);
    Draw::of(&[shape.options.seed, u64::from(plan.host), nth, salt])
}

fn charset(encoding: &'static Encoding) -> String {
    encoding.name().to_ascii_lowercase()
}

fn encode(encoding: &'static Encoding, text: &str) -> Vec<u8> {
    encoding.encode(text).0.into_owned()
}

fn paragraph(language: &Language, draw: &mut Draw, out: &mut String) {
    for _ in 0..draw.between(3, SENTENCES_MAX) {
        language.sentence(draw, out);
    }
}

/// The smallest document with a page that viewers open.
fn pdf() -> Vec<u8> {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>",
    ];
    let mut out = String::from("%PDF-1.4\n");
    let mut offsets = Vec::new();
    for (number, object) in (1..).zip(objects) {
        offsets.push(out.len());
        out.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let table = out.len();
    out.push_str("xref\n0 4\n0000000000 65535 f \n");
    for offset in offsets {
        out.push_str(&format!("{offset:010} 00000 n \n"));
    }
    out.push_str(&format!("trailer\n<< /Size 4 /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"));
    out.into_bytes()
}

/// Writes one HTML page.
struct Writer<'a> {
    shape: &'a Shape,
    plan: &'a HostPlan,
    nth: usize,
    draw: Draw,
    language: &'static Language,
    encoding: &'static Encoding,
    out: String,
}

impl<'a> Writer<'a> {
    fn new(shape: &'a Shape, plan: &'a HostPlan, nth: usize) -> Self {
        let (language, encoding) = voice(plan.host);
        let draw = draw(shape, plan, nth, SALT_TEXT);
        Self { shape, plan, nth, draw, language, encoding, out: String::new() }
    }

    fn html(mut self) -> String {
        let Some(node) = self.plan.node(self.nth) else {
            return self.out;
        };
        if node.behaviour == Behaviour::Tangled {
            self.tangled(node);
            return self.out;
        }
        let bytes = self.size(node.behaviour);
        self.out.reserve(bytes + bytes / 4);
        if self.shape.options.sizes == PageSizes::Realistic {
            self.marked_up(&node.links, bytes);
            return self.out;
        }
        self.head();
        let mut links = node.links.iter();
        let mut paragraphs = 0_usize;
        while self.out.len() < bytes {
            self.paragraph(links.next());
            if paragraphs.is_multiple_of(PICTURE_EVERY) {
                self.picture();
            }
            paragraphs += 1;
        }
        self.foot(links.as_slice());
        self.out
    }

    /// The size aimed at, in bytes of UTF-8.
    fn size(&self, behaviour: Behaviour) -> usize {
        if behaviour == Behaviour::Big {
            return self.shape.options.big_bytes;
        }
        let mut draw = draw(self.shape, self.plan, self.nth, SALT_SIZE);
        let permille = draw.pick(&SIZE_PERMILLE) * draw.between(850, 1150) / 1000;
        self.shape.options.sizes.median_bytes() * permille / 1000
    }

    fn put(&mut self, piece: std::fmt::Arguments<'_>) {
        self.out.write_fmt(piece).expect("a string takes what is written to it");
    }

    fn head(&mut self) {
        let count = self.draw.between(3, 7);
        let title = self.language.phrase(&mut self.draw, count);
        let mut description = String::new();
        self.language.sentence(&mut self.draw, &mut description);
        let canonical = self.shape.url(self.plan.host, self.plan.path(self.nth));
        let (code, host) = (self.language.code, host_name(self.plan.host));
        let charset = charset(self.encoding);
        self.put(format_args!(
            "<!doctype html>\n<html lang=\"{code}\">\n<head>\n<meta charset=\"{charset}\">\n\
             <title>{title}</title>\n<meta name=\"description\" content=\"{}\">\n\
             <link rel=\"canonical\" href=\"{canonical}\">\n\
             <link rel=\"stylesheet\" href=\"/style.css\">\n</head>\n<body>\n\
             <header><nav><a href=\"/\">{host}</a> <a href=\"#top\">&uarr;</a></nav></header>\n\
             <main id=\"top\">\n<h1>{title}</h1>\n",
            description.trim_end(),
        ));
    }

    fn paragraph(&mut self, link: Option<&Link>) {
        self.out.push_str("<p>");
        paragraph(self.language, &mut self.draw, &mut self.out);
        if let Some(link) = link {
            self.link(link);
        }
        self.out.push_str("</p>\n");
    }

    /// A link: relative to the host's root within it, absolute elsewhere.
    fn link(&mut self, link: &Link) {
        let to = self.plan.url_of(self.shape, link.to);
        let own = self.shape.url(self.plan.host, "");
        let href = to.strip_prefix(&own).unwrap_or(&to);
        let rel = if link.nofollow { " rel=\"nofollow\"" } else { "" };
        let text = self.language.phrase(&mut self.draw, 3);
        self.put(format_args!("<a href=\"{href}\"{rel}>{text}</a>"));
    }

    fn picture(&mut self) {
        let number = self.draw.below(1000);
        let alt = self.language.phrase(&mut self.draw, 2);
        self.put(format_args!(
            "<figure><img src=\"/img/{number}.png\" alt=\"{alt}\" width=\"1\" height=\"1\">\
             <figcaption>{alt}</figcaption></figure>\n"
        ));
    }

    fn foot(&mut self, links: &[Link]) {
        self.out.push_str("</main>\n<footer><ul>\n");
        for link in links {
            self.out.push_str("<li>");
            self.link(link);
            self.out.push_str("</li>\n");
        }
        self.out.push_str("</ul></footer>\n</body>\n</html>\n");
    }

    /// No head, tags out of order, attributes without quotes, a comment that never ends: what
    /// browsers read all the same.
    fn tangled(&mut self, node: &Node) {
        let title = self.language.phrase(&mut self.draw, 4);
        let charset = charset(self.encoding);
        self.put(format_args!("<META charset={charset}><TITLE>{title}</title><p><b><i>"));
        paragraph(self.language, &mut self.draw, &mut self.out);
        self.out.push_str("</b></i><table><tr><div></table>");
        for link in &node.links {
            let to = self.plan.url_of(self.shape, link.to);
            let text = self.language.phrase(&mut self.draw, 2);
            self.put(format_args!("<A class='x HREF=no' HREF={to}>{text}<p>"));
        }
        self.out.push_str("</span></p></div>< p>&nosuch; &amp &#x110000;<!-- the end");
    }
}
