//! T1: what a URL's own form says about a trap. Growth of templates and hosts is judged elsewhere.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::types::{CrawlUrl, Reason};

/// `traps.*`: the bounds on the form of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrapSettings {
    /// Segments in a path.
    pub max_path_segments: usize,
    /// Times that one segment may stand in a path: relative links that lead into themselves.
    pub max_repeated_segment: usize,
    /// Parameters in a query.
    pub max_query_parameters: usize,
}

impl Default for TrapSettings {
    fn default() -> Self {
        Self { max_path_segments: 30, max_repeated_segment: 4, max_query_parameters: 20 }
    }
}

/// Whether the form of `url` looks like a trap.
pub fn trap(url: &CrawlUrl, settings: &TrapSettings) -> Option<Reason> {
    let refuse = |rule: String| Some(Reason::Trap { rule });
    let segments = || url.as_url().path().split('/').filter(|segment| !segment.is_empty());
    let count = segments().count();
    if count > settings.max_path_segments {
        let max = settings.max_path_segments;
        return refuse(format!("{count} path segments, at most {max} are followed"));
    }
    if count > settings.max_repeated_segment {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for segment in segments() {
            let times = seen.entry(segment).or_default();
            *times += 1;
            if *times > settings.max_repeated_segment {
                let max = settings.max_repeated_segment;
                return refuse(format!("the path repeats `{segment}` more than {max} times"));
            }
        }
    }
    let query = url.as_url().query().unwrap_or_default();
    let count = query.split('&').filter(|parameter| !parameter.is_empty()).count();
    if count > settings.max_query_parameters {
        let max = settings.max_query_parameters;
        return refuse(format!("{count} query parameters, at most {max} are followed"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Option<String> {
        match trap(&CrawlUrl::parse(text).unwrap(), &TrapSettings::default()) {
            Some(Reason::Trap { rule }) => Some(rule),
            other => {
                assert_eq!(other, None);
                None
            }
        }
    }

    #[test]
    fn ordinary_urls_are_no_traps() {
        for text in ["http://h/", "http://h/a/b/a/b/a/b/a/b", "http://h//////////x?a=1&a=2&&&"] {
            assert_eq!(rule(text), None, "{text}");
        }
    }

    #[test]
    fn each_bound_refuses_one_more_than_it_allows() {
        let deep = |n: u32| (0..n).map(|i| format!("/{i}")).collect::<String>();
        assert_eq!(rule(&format!("http://h{}", deep(30))), None);
        assert!(rule(&format!("http://h{}", deep(31))).unwrap().contains("31 path segments"));
        assert!(rule("http://h/a/b/a/b/a/b/a/b/a").unwrap().contains("repeats `a`"));
        let wide = |n: u32| (0..n).map(|i| format!("{i}=x&")).collect::<String>();
        assert_eq!(rule(&format!("http://h/?{}", wide(20))), None);
        assert!(rule(&format!("http://h/?{}", wide(21))).unwrap().contains("21 query parameters"));
    }
}
