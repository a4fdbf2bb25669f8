//! `[[extract]]`: fields of a page by CSS selectors from the configuration (P3).
//!
//! A selector gives the text of what it selects; `::attr(NAME)` at its end gives an attribute
//! instead, and `<meta>` gives its content. The tree is html5ever's, so this is paid for only by
//! the pages that match. What one element costs to match is bounded by the tree, whose size is;
//! the time is asked about between a few of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use regex::Regex;
use scraper::error::SelectorErrorKind;
use scraper::selector::{Parser, Simple};
use scraper::{ElementRef, Html, Node};
use selectors::SelectorList;
use selectors::context::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode,
    SelectorCaches,
};
use selectors::matching::matches_selector_list;
use selectors::parser::ParseRelative;
use thiserror::Error;

use super::html::fold;
use super::memory::Memory;
use super::tree::build;
use crate::policy::scope::{RuleSet, ScopeRule};
use crate::types::{CrawlUrl, Reason};

/// Bytes of one value; more are cut.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// Values of one field.
const VALUES_MAX: usize = 1000;
/// How often the time limit is asked about, in nodes looked at.
const NODES_PER_CHECK: usize = 1024;
/// To match an element may cost as much as to look at so many nodes and more.
const NODES_PER_MATCH: usize = 64;

/// What is wrong with an `[[extract]]` section.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ExtractorError {
    /// The regular expression in `match`.
    #[error("`match` is not a regular expression: {why}")]
    Pattern {
        /// The words of the regex parser.
        why: String,
    },
    /// A selector in `fields`.
    #[error("field `{field}`: `{selector}` is not a CSS selector: {why}")]
    Selector {
        /// The field's name.
        field: String,
        /// The selector as written.
        selector: String,
        /// The words of the CSS parser.
        why: String,
    },
}

/// Which pages an extractor is for.
#[derive(Clone, Debug)]
enum Pages {
    Prefix(String),
    Pattern(Regex),
    Rule(RuleSet),
}

/// What a field takes from an element.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    selectors: SelectorList<Simple>,
    attribute: Option<String>,
}

/// One `[[extract]]` section.
#[derive(Clone, Debug)]
pub struct Extractor {
    pages: Pages,
    fields: Vec<Field>,
}

impl Extractor {
    /// `matches` is the beginning of a URL, `regex:` and an expression, or another rule of
    /// `scope.include`; empty means all pages.
    /// `fields` are names with their selectors.
    ///
    /// # Errors
    /// The first selector or expression that cannot be read, with its field.
    pub fn new(matches: &str, fields: &BTreeMap<String, String>) -> Result<Self, ExtractorError> {
        let pages = match matches.strip_prefix("regex:") {
            Some(pattern) => Pages::Pattern(
                Regex::new(pattern)
                    .map_err(|error| ExtractorError::Pattern { why: error.to_string() })?,
            ),
            None => match ScopeRule::parse(matches).and_then(|rule| RuleSet::new([rule])) {
                Ok(rule) => Pages::Rule(rule),
                // No word of a rule: the beginning of a URL.
                Err(_) => Pages::Prefix(matches.to_owned()),
            },
        };
        let fields = fields.iter().map(|(name, text)| Field::new(name, text));
        Ok(Self { pages, fields: fields.collect::<Result<_, _>>()? })
    }

    /// It is for this page.
    pub fn matches(&self, url: &CrawlUrl) -> bool {
        match &self.pages {
            Pages::Prefix(prefix) => url.as_str().starts_with(prefix),
            Pages::Pattern(pattern) => pattern.is_match(url.as_str()),
            Pages::Rule(rule) => rule.find(url).is_some(),
        }
    }
}

impl Field {
    fn new(name: &str, text: &str) -> Result<Self, ExtractorError> {
        let attribute = text.trim().strip_suffix(')').and_then(|text| text.rsplit_once("::attr("));
        let (selector, attribute) = match attribute {
            Some((selector, attribute)) => (selector, Some(attribute.trim().to_lowercase())),
            None => (text, None),
        };
        let mut input = cssparser::Parser::new(selector);
        let selectors = SelectorList::parse(&Parser, &mut input, ParseRelative::No);
        let selectors = selectors.map_err(|error| ExtractorError::Selector {
            field: name.to_owned(),
            selector: text.to_owned(),
            why: SelectorErrorKind::from(error).to_string(),
        })?;
        Ok(Self { name: name.to_owned(), selectors, attribute })
    }

    /// The values in a page, as long as there is time and room for their bytes.
    fn values(&self, document: &Html, room: &mut usize, watch: &mut Watch<'_>) -> Vec<String> {
        let mut caches = SelectorCaches::default();
        let mut values = Vec::new();
        let elements = document.tree.nodes().filter_map(ElementRef::wrap);
        for element in elements.filter(|element| element.parent().is_some()) {
            watch.pass(NODES_PER_MATCH);
            if watch.is_late {
                break;
            }
            let mut context = MatchingContext::new(
                MatchingMode::Normal,
                None,
                &mut caches,
                QuirksMode::NoQuirks,
                NeedsSelectorFlags::No,
                MatchingForInvalidation::No,
            );
            if !matches_selector_list(&self.selectors, &element, &mut context) {
                continue;
            }
            if values.len() == VALUES_MAX {
                watch.has_too_many = true;
                break;
            }
            if let Some(value) = self.value(element, watch) {
                *room = room.saturating_sub(value.len());
                if *room == 0 {
                    break;
                }
                values.push(value);
            }
        }
        values
    }

    fn value(&self, element: ElementRef<'_>, watch: &mut Watch<'_>) -> Option<String> {
        let value = match &self.attribute {
            Some(attribute) => Cow::Borrowed(element.value().attr(attribute)?),
            None => match element.value().attr("content") {
                Some(content) if element.value().name() == "meta" => Cow::Borrowed(content),
                Some(_) | None => Cow::Owned(text_of(element, watch)),
            },
        };
        Some(fold(&value, VALUE_BYTES_MAX).0).filter(|value| !value.is_empty())
    }
}

/// The text inside an element, as far as a value may go: elements that hold each other would
/// otherwise have the page's text copied for each.
fn text_of(element: ElementRef<'_>, watch: &mut Watch<'_>) -> String {
    let mut text = String::new();
    for node in element.descendants() {
        watch.pass(1);
        if let Node::Text(piece) = node.value() {
            text.push_str(piece);
        }
        if text.len() > 2 * VALUE_BYTES_MAX || watch.is_late {
            break;
        }
    }
    text
}

/// Looks at the time now and then.
struct Watch<'w> {
    out_of_time: &'w dyn Fn() -> bool,
    passed: usize,
    is_late: bool,
    /// A field had more values than are kept.
    has_too_many: bool,
}

impl Watch<'_> {
    /// So many nodes were looked at.
    fn pass(&mut self, nodes: usize) {
        self.passed += nodes;
        if self.passed >= NODES_PER_CHECK {
            self.passed = 0;
            self.is_late = self.is_late || (self.out_of_time)();
        }
    }
}

/// What the extractors found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extracted {
    /// Values by the names of their fields; fields without a value are left out.
    pub fields: BTreeMap<String, Vec<String>>,
    /// Why they are not all.
    pub cut: Option<Reason>,
}

/// The fields that the extractors for this page find, within its memory and time.
pub fn extract(
    extractors: &[Extractor],
    html: &str,
    url: &CrawlUrl,
    memory: Memory,
    out_of_time: &dyn Fn() -> bool,
) -> Extracted {
    let mut found = Extracted::default();
    let ours: Vec<_> = extractors.iter().filter(|extractor| extractor.matches(url)).collect();
    if ours.is_empty() {
        return found;
    }
    let document = match build(html, memory.tree(), out_of_time) {
        Ok(document) => document,
        Err(cut) => return Extracted { cut: Some(cut), ..found },
    };
    let mut room = memory.markup();
    let mut watch = Watch { out_of_time, passed: 0, is_late: false, has_too_many: false };
    for field in ours.iter().flat_map(|extractor| &extractor.fields) {
        let values = field.values(&document, &mut room, &mut watch);
        if !values.is_empty() {
            found.fields.entry(field.name.clone()).or_default().extend(values);
        }
    }
    if watch.is_late {
        found.cut = Some(Reason::ParseLimit { limit: "parse.max_time".to_owned() });
    } else if room == 0 {
        found.cut = Some(Memory::reason(memory.markup(), "extracted fields"));
    } else if watch.has_too_many {
        let limit = format!("extract: {VALUES_MAX} values of a field");
        found.cut = Some(Reason::ParseLimit { limit });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extractor(matches: &str, fields: &[(&str, &str)]) -> Result<Extractor, ExtractorError> {
        let fields = fields.iter().map(|(n, s)| ((*n).to_owned(), (*s).to_owned())).collect();
        Extractor::new(matches, &fields)
    }

    fn run(extractors: &[Extractor], html: &str, url: &CrawlUrl) -> Extracted {
        extract(extractors, html, url, Memory::new(256 << 20), &|| false)
    }

    #[test]
    fn fields_are_found_on_the_pages_that_match() {
        let fields = [
            ("price", ".price > b"),
            ("image", "img.main::attr(SRC)"),
            ("site", "meta[property='og:site_name']"),
            ("none", "#nowhere"),
        ];
        let html = "<meta property=og:site_name content='A  Shop'><img class=main src=/1.png>\
            <p class=price><b> 3 <i>EUR</i></b><p class=price><b>4</b>";
        let url = CrawlUrl::parse("https://shop.example/item/1").unwrap();
        for matches in ["https://shop.example/item/", r"regex:/item/\d+$", ""] {
            let found = run(&[extractor(matches, &fields).unwrap()], html, &url).fields;
            assert_eq!(found["price"], ["3 EUR", "4"]);
            assert_eq!(found["image"], ["/1.png"]);
            assert_eq!(found["site"], ["A Shop"]);
            assert_eq!(found.len(), 3);
        }
        let other = extractor("https://other.example/", &fields).unwrap();
        assert_eq!(run(&[other], html, &url), Extracted::default());
    }

    #[test]
    fn bad_sections_say_which_field() {
        let error = extractor("", &[("title", "h1 >> b")]).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("field `title`: `h1 >> b` is not a CSS selector: "), "{text}");
        let error = extractor("regex:(", &[]).unwrap_err();
        assert!(matches!(error, ExtractorError::Pattern { .. }));
    }
}
