//! `[[extract]]`: fields of a page by CSS selectors from the configuration (P3).
//!
//! A selector gives the text of what it selects; `::attr(NAME)` at its end gives an attribute
//! instead, and `<meta>` gives its content. The tree is html5ever's, so this is paid for only by
//! the pages that match.

use std::collections::BTreeMap;

use regex::Regex;
use scraper::{ElementRef, Html, Selector};
use thiserror::Error;

use super::html::fold;
use crate::policy::scope::{RuleSet, ScopeRule};
use crate::types::CrawlUrl;

/// Bytes of one value; more are cut.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// Bytes of all values of a page; what comes after them is left out.
const FIELDS_BYTES_MAX: usize = 4 << 20;
/// Values of one field.
const VALUES_MAX: usize = 1000;

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
    selector: Selector,
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
        let selector = Selector::parse(selector).map_err(|error| ExtractorError::Selector {
            field: name.to_owned(),
            selector: text.to_owned(),
            why: error.to_string(),
        })?;
        Ok(Self { name: name.to_owned(), selector, attribute })
    }

    fn value(&self, element: ElementRef<'_>) -> Option<String> {
        let value = match &self.attribute {
            Some(attribute) => element.value().attr(attribute)?.to_owned(),
            None => match element.value().attr("content") {
                Some(content) if element.value().name() == "meta" => content.to_owned(),
                Some(_) | None => text_of(element),
            },
        };
        Some(fold(&value, VALUE_BYTES_MAX).0).filter(|value| !value.is_empty())
    }
}

/// The text inside an element, as far as a value may go: elements that hold each other would
/// otherwise have the page's text copied for each.
fn text_of(element: ElementRef<'_>) -> String {
    let mut text = String::new();
    for piece in element.text() {
        text.push_str(piece);
        if text.len() > 2 * VALUE_BYTES_MAX {
            break;
        }
    }
    text
}

/// The fields that the extractors for this page find; fields without a value are left out.
pub fn extract(
    extractors: &[Extractor],
    html: &str,
    url: &CrawlUrl,
) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let ours: Vec<_> = extractors.iter().filter(|extractor| extractor.matches(url)).collect();
    if ours.is_empty() {
        return found;
    }
    let document = Html::parse_document(html);
    let mut room = FIELDS_BYTES_MAX;
    for field in ours.iter().flat_map(|extractor| &extractor.fields) {
        let values = document.select(&field.selector).filter_map(|element| field.value(element));
        let fits = |value: &String| {
            room = room.saturating_sub(value.len());
            room > 0
        };
        let values: Vec<_> = values.take(VALUES_MAX).take_while(fits).collect();
        if !values.is_empty() {
            found.entry(field.name.clone()).or_default().extend(values);
        }
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
            let found = extract(&[extractor(matches, &fields).unwrap()], html, &url);
            assert_eq!(found["price"], ["3 EUR", "4"]);
            assert_eq!(found["image"], ["/1.png"]);
            assert_eq!(found["site"], ["A Shop"]);
            assert_eq!(found.len(), 3);
        }
        let other = extractor("https://other.example/", &fields).unwrap();
        assert!(extract(&[other], html, &url).is_empty());
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
