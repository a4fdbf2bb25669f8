//! Pages as the web has them: a tenth is text, the rest is tags, attributes, styles and scripts.
//!
//! The shape is our own choice, after what surveys of the web (HTTP Archive and the like) and the
//! pages this crawler was designed on show: 240 KB on average, a fifth to a sixth of that as
//! gzip, some 160 links of all kinds, a thousand elements. Of the bytes, about
//! - an eighth is style, the same on every page of a host;
//! - two fifths are scripts: the host's own, and the state that frameworks ship with a page;
//! - two fifths are markup: navigation and footer that repeat on the host, cards with pictures in
//!   several sizes, icons in SVG, nested boxes with lists of classes and data attributes;
//! - a tenth is text to be read.
//!
//! Links lead to where the plan says, and beside that only to articles of the same host, each of
//! which can be reached anyway: what a crawl finds stays the same.

use super::super::behaviour::Behaviour;
use super::super::draw::Draw;
use super::super::site::{Link, Target, host_name};
use super::{Writer, charset, paragraph};

/// Where in a page of 100 parts its style, its scripts, its content and its footer end; what is
/// left is state.
const STYLE_END: usize = 13;
const SCRIPT_END: usize = 19;
const CONTENT_END: usize = 66;
/// Links of the navigation, at most, and the bytes of a page for each.
const NAVIGATION_MAX: usize = 54;
const NAVIGATION_BYTES: usize = 2500;
/// Links of the footer, at most.
const FOOTER_MAX: usize = 24;
/// The widths that a picture comes in.
const WIDTHS: [u32; 3] = [320, 640, 1280];

const SALT_SITE: u64 = 16;

/// Names of classes, as components and utilities have them.
const CLASSES: &[&str] = &[
    "flex",
    "grid",
    "block",
    "hidden",
    "relative",
    "items-center",
    "justify-between",
    "mx-auto",
    "px-4",
    "py-2",
    "mt-6",
    "mb-3",
    "gap-x-4",
    "w-full",
    "max-w-screen",
    "rounded-lg",
    "shadow-sm",
    "border-t",
    "text-sm",
    "text-base",
    "font-medium",
    "leading-tight",
    "text-ink-700",
    "bg-paper",
    "hover:underline",
    "focus:ring-2",
    "md:grid-cols-3",
    "lg:px-8",
    "sm:hidden",
    "transition-all",
    "c-card",
    "c-card__media",
    "c-card__title",
    "c-card__meta",
    "c-list__item",
    "c-nav__link",
    "l-column",
    "l-column--wide",
    "is-lazy",
    "js-track",
    "u-visually-hidden",
    "o-ratio--16x9",
];

/// What style sheets set, and to what.
const STYLES: &[(&str, &[&str])] = &[
    ("margin", &["0 auto", "0 0 1rem", "4px 8px", "-1px"]),
    ("padding", &["0", "1rem 1.5rem", "12px", "calc(1rem + 2px)"]),
    ("display", &["flex", "grid", "none", "inline-block"]),
    ("font", &["400 1rem/1.5 var(--sans)", "700 1.25rem/1.2 var(--serif)"]),
    ("border-radius", &["4px", "50%", "0 0 8px 8px"]),
    ("transition", &["opacity .2s ease-in-out", "transform .3s cubic-bezier(.4,0,.2,1)"]),
    ("grid-template-columns", &["repeat(3,minmax(0,1fr))", "240px 1fr"]),
];

/// Statements of scripts; what looks like markup inside them is none.
const STATEMENTS: &[&str] = &[
    "if(e.length<2||t>n){return!1}",
    "for(var r=0;r<o.length;r++){i[r]=o[r]&&o[r].value}",
    "document.querySelectorAll('[data-track]').forEach(e=>e.addEventListener('click',t));",
    "n.innerHTML='<div class=\"c-card\"><a href=\"'+u+'\">'+s+'<\\/a><\\/div>';",
    "window.requestIdleCallback?requestIdleCallback(a):setTimeout(a,200);",
    "var c=Object.assign({},d,{passive:!0,once:e.once});",
    "try{localStorage.setItem(k,JSON.stringify(v))}catch(e){}",
];

impl Writer<'_> {
    /// A page of about so many bytes.
    pub(super) fn marked_up(&mut self, links: &[Link], bytes: usize) {
        let part = |parts: usize| bytes * parts / 100;
        let mut site = Draw::of(&[self.shape.options.seed, u64::from(self.plan.host), SALT_SITE]);
        let articles = self.articles();
        self.rich_head();
        self.style(&mut site.clone(), part(STYLE_END));
        self.script(&mut site.clone(), part(SCRIPT_END));
        self.navigation(&mut site, articles, bytes / NAVIGATION_BYTES);
        let mut links = links.iter();
        let mut block = 0_usize;
        while self.out.len() < part(CONTENT_END) {
            match block % 8 {
                0 | 3 | 5 => self.block_of_text(links.next(), articles, block),
                1 => self.card(articles),
                _ => self.boxes(),
            }
            block += 1;
        }
        self.rich_foot(&mut site, links.as_slice(), articles);
        self.state(articles, bytes);
        self.out.push_str("</body>\n</html>\n");
    }

    /// Articles that the tree of the host reaches; they are the first of its pages.
    fn articles(&self) -> usize {
        let nodes = self.plan.nodes.iter();
        nodes.take_while(|node| node.behaviour == Behaviour::Article).count()
    }

    fn rich_head(&mut self) {
        let count = self.draw.between(3, 7);
        let title = self.language.phrase(&mut self.draw, count);
        let mut description = String::new();
        self.language.sentence(&mut self.draw, &mut description);
        let description = description.trim_end();
        let canonical = self.shape.url(self.plan.host, self.plan.path(self.nth));
        let (code, host, build) =
            (self.language.code, host_name(self.plan.host), hex(self.plan.host));
        let charset = charset(self.encoding);
        let picture = self.draw.bits();
        self.put(format_args!(
            "<!doctype html>\n<html lang=\"{code}\" class=\"no-js\" data-build=\"{build}\">\n\
             <head>\n\
             <meta charset=\"{charset}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<meta name=\"description\" content=\"{description}\">\n\
             <link rel=\"canonical\" href=\"{canonical}\">\n\
             <meta property=\"og:type\" content=\"article\">\n\
             <meta property=\"og:title\" content=\"{title}\">\n\
             <meta property=\"og:description\" content=\"{description}\">\n\
             <meta property=\"og:url\" content=\"{canonical}\">\n\
             <meta property=\"og:image\" content=\"/img/{picture:016x}.png\">\n\
             <meta name=\"twitter:card\" content=\"summary_large_image\">\n\
             <link rel=\"preload\" as=\"style\" href=\"/style.css\">\n\
             <link rel=\"stylesheet\" href=\"/style.css\">\n\
             <link rel=\"icon\" type=\"image/png\" sizes=\"32x32\" href=\"/img/icon-32.png\">\n\
             <link rel=\"apple-touch-icon\" sizes=\"180x180\" href=\"/img/icon-180.png\">\n\
             <link rel=\"dns-prefetch\" href=\"//{host}\">\n\
             <script async src=\"/js/{build}.js\"></script>\n\
             <script type=\"application/ld+json\">{{\"@context\":\"https:\\/\\/schema.org\",\
             \"@type\":\"Article\",\"headline\":\"{title}\",\
             \"image\":[\"\\/img\\/{picture:016x}.png\"],\
             \"description\":\"{description}\"}}</script>\n"
        ));
    }

    fn style(&mut self, site: &mut Draw, end: usize) {
        self.out.push_str("<style>:root{--sans:system-ui,sans-serif;--serif:Georgia,serif}");
        while self.out.len() < end {
            let (one, other) = (site.pick(CLASSES), site.pick(CLASSES));
            self.put(format_args!(".{}>.{}{{", one.replace(':', "\\:"), other.replace(':', "\\:")));
            for _ in 0..site.between(2, 5) {
                let (property, values) = STYLES[site.below(STYLES.len())];
                self.put(format_args!("{property}:{};", site.pick(values)));
            }
            let (colour, size) = (site.bits() & 0xff_ffff, site.below(900));
            self.put(format_args!("color:#{colour:06x};width:{size}px}}\n"));
        }
        self.out.push_str("</style>\n</head>\n<body class=\"t-page is-loading\">\n");
    }

    fn script(&mut self, site: &mut Draw, end: usize) {
        self.out.push_str("<script>!function(e,t,n){\"use strict\";");
        while self.out.len() < end {
            let (statement, name) = (site.pick(STATEMENTS), site.bits() & 0xffff);
            self.put(format_args!("function f{name:x}(e,t){{{statement}return t+{name}}}\n"));
        }
        self.out.push_str("}(window,document);</script>\n");
    }

    /// The same on every page of the host, shorter on small ones.
    fn navigation(&mut self, site: &mut Draw, articles: usize, links_max: usize) {
        let host = host_name(self.plan.host);
        self.put(format_args!(
            "<header class=\"c-header js-sticky\" role=\"banner\"><a class=\"c-logo\" href=\"/\">\
             {host}</a>\n<nav class=\"c-nav\" aria-label=\"main\"><ul class=\"c-nav__list\">\n"
        ));
        for place in 1..articles.min(links_max.min(NAVIGATION_MAX)) {
            let href = self.plan.path(place);
            let (text, id) = (self.language.phrase(site, 2), site.bits() & 0xfff_ffff);
            let (one, other) = (site.pick(CLASSES), site.pick(CLASSES));
            self.put(format_args!(
                "<li class=\"c-nav__item {one}\" id=\"menu-item-{id}\"><a class=\"c-nav__link \
                 {other}\" href=\"{href}\" data-track=\"nav:{place}\"><span class=\"c-nav__text\">\
                 {text}</span>"
            ));
            self.icon(place % 6);
            self.out.push_str("</a></li>\n");
        }
        self.out.push_str("</ul></nav></header>\n<main id=\"main\" class=\"l-main\">\n");
    }

    /// One of the host's icons.
    fn icon(&mut self, which: usize) {
        let which = u64::try_from(which).unwrap_or_default();
        let mut lines = Draw::of(&[u64::from(self.plan.host), which, SALT_SITE]);
        self.out.push_str(
            "<svg class=\"icon\" width=\"16\" height=\"16\" viewBox=\"0 0 24 24\" \
             aria-hidden=\"true\" focusable=\"false\"><path fill=\"currentColor\" d=\"M12 2",
        );
        for _ in 0..8 {
            let (x, y) = (lines.below(240), lines.below(240));
            self.put(format_args!("l{}.{} {}.{}", x / 10, x % 10, y / 10, y % 10));
        }
        self.out.push_str("z\"/></svg>");
    }

    fn block_of_text(&mut self, link: Option<&Link>, articles: usize, block: usize) {
        let (class, id) = (self.draw.pick(CLASSES), self.draw.bits() & 0xffff_ffff);
        self.put(format_args!("<p class=\"c-text {class}\" data-block=\"{id:08x}\">"));
        paragraph(self.language, &mut self.draw, &mut self.out);
        let across = Link { to: Target::Here(self.draw.below(articles)), nofollow: false };
        match link {
            Some(link) => self.link(link),
            None if block.is_multiple_of(4) => self.link(&across),
            None => {}
        }
        self.out.push_str("</p>\n");
    }

    /// A picture in several sizes, a headline and a few lines, as lists of articles have them.
    fn card(&mut self, articles: usize) {
        let (one, other) = (self.draw.pick(CLASSES), self.draw.pick(CLASSES));
        let (id, place) = (self.draw.bits(), self.draw.below(articles));
        let href = self.plan.path(place);
        let (title, alt) =
            (self.language.phrase(&mut self.draw, 6), self.language.phrase(&mut self.draw, 3));
        self.put(format_args!(
            "<article class=\"c-card {one} {other}\" data-id=\"{id:016x}\" \
             data-position=\"{place}\" \
             data-tracking='{{\"module\":\"teaser\",\"id\":\"{id:x}\",\"slot\":{place}}}'>\n\
             <a class=\"c-card__media\" href=\"{href}\" tabindex=\"-1\" aria-hidden=\"true\">\
             <picture><img class=\"is-lazy {other}\" loading=\"lazy\" decoding=\"async\" \
             src=\"/img/{id:016x}-320.png\" srcset=\""
        ));
        for width in WIDTHS {
            let comma = if width == WIDTHS[0] { "" } else { ", " };
            self.put(format_args!("{comma}/img/{id:016x}-{width}.png {width}w"));
        }
        self.out.push_str(
            "\" sizes=\"(min-width: 1024px) 33vw, 100vw\" width=\"640\" height=\"360\" \
             style=\"background-image:url(data:image/png;base64,",
        );
        self.noise(96);
        self.put(format_args!(
            ")\" alt=\"{alt}\"></picture></a>\n<div class=\"c-card__body\">\
             <h3 class=\"c-card__title \
             {one}\"><a href=\"{href}\" class=\"js-track\">{title}</a></h3>\n\
             <div class=\"c-card__meta\">\
             <time datetime=\"2024-03-{:02}T08:{:02}:00Z\">{}.3.</time>",
            place % 28 + 1,
            place % 60,
            place % 28 + 1,
        ));
        self.icon(place % 6);
        self.out.push_str("</div></div></article>\n");
    }

    /// Boxes in boxes with hardly a word: banners, buttons, places for what scripts will show.
    fn boxes(&mut self) {
        let depth = self.draw.between(2, 5);
        for _ in 0..depth {
            let classes = [(); 4].map(|()| self.draw.pick(CLASSES)).join(" ");
            let id = self.draw.bits() & 0xffff_ffff_ffff;
            self.put(format_args!(
                "<div class=\"{classes}\" data-component=\"box\" data-key=\"{id:012x}\">"
            ));
        }
        let (class, label) = (self.draw.pick(CLASSES), self.language.phrase(&mut self.draw, 1));
        self.put(format_args!(
            "<button type=\"button\" class=\"c-button {class}\" aria-expanded=\"false\" \
             aria-controls=\"panel-{depth}\" onclick=\"toggle(this,&quot;{class}&quot;)\">{label}"
        ));
        self.icon(depth);
        self.out.push_str("</button>");
        (0..depth).for_each(|_| self.out.push_str("</div>"));
        self.out.push('\n');
    }

    fn rich_foot(&mut self, site: &mut Draw, links: &[Link], articles: usize) {
        self.out.push_str("</main>\n<footer class=\"c-footer\"><ul class=\"c-footer__list\">\n");
        for link in links {
            self.out.push_str("<li class=\"c-footer__item\">");
            self.link(link);
            self.out.push_str("</li>\n");
        }
        let from = articles.saturating_sub(FOOTER_MAX).max(1);
        for place in from..articles {
            let (href, text) = (self.plan.path(place), self.language.phrase(site, 2));
            self.put(format_args!(
                "<li class=\"c-footer__item\"><a class=\"c-footer__link\" href=\"{href}\" \
                 data-track=\"foot:{place}\">{text}</a></li>\n"
            ));
        }
        self.out.push_str("</ul></footer>\n");
    }

    /// What a framework needs to take over the page: all of it once more, as data.
    fn state(&mut self, articles: usize, end: usize) {
        self.out.push_str("<script id=\"state\" type=\"application/json\">{\"items\":[");
        while self.out.len() < end {
            let (id, score) = (self.draw.bits(), self.draw.below(10_000));
            let path = self.plan.path(self.draw.below(articles));
            let (title, class) = (self.language.phrase(&mut self.draw, 4), self.draw.pick(CLASSES));
            self.put(format_args!(
                "{{\"id\":\"{id:016x}\",\"type\":\"teaser\",\"title\":\"{title}\",\
                 \"href\":\"{path}\",\
                 \"html\":\"\\u003cspan class=\\\"{class}\\\"\\u003e\",\"score\":0.{score:04},\
                 \"media\":{{\"src\":\"/img/{id:016x}.png\",\"width\":640,\"height\":360,\
                 \"alt\":null}},\
                 \"flags\":{{\"premium\":false,\"live\":false,\"comments\":true}},\"blur\":\""
            ));
            self.noise(24);
            self.out.push_str("\"},\n");
        }
        self.out.push_str("null]}</script>\n");
    }

    /// Characters of Base64 that no compressor makes smaller than three quarters.
    fn noise(&mut self, length: usize) {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for _ in 0..length / 8 {
            let bits = self.draw.bits();
            for digit in 0..8 {
                let place = usize::try_from(bits >> (6 * digit) & 63).unwrap_or_default();
                self.out.push(char::from(DIGITS[place]));
            }
        }
    }
}

fn hex(host: u16) -> String {
    format!("{:016x}", Draw::of(&[u64::from(host), SALT_SITE]).bits())
}

#[cfg(test)]
mod tests;
