//! Query parameters: only those a route declares, each once, each checked.

use url::form_urlencoded;

use super::problem::{Kind, Problem};

/// Items of a list unless asked otherwise.
const LIMIT_DEFAULT: u16 = 100;

/// Items of a list at most.
const LIMIT_MAX: u16 = 1000;

/// A query parameter as a route declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// Its name.
    pub(super) name: &'static str,
    /// Whether the route answers without it.
    pub(super) required: bool,
    /// The type for the description: `string` or `integer`.
    pub(super) kind: &'static str,
    /// One phrase.
    pub(super) help: &'static str,
}

impl Parameter {
    /// A text that may be left out.
    pub(super) const fn text(name: &'static str, help: &'static str) -> Self {
        Self { name, required: false, kind: "string", help }
    }

    /// A whole number that may be left out.
    pub(super) const fn number(name: &'static str, help: &'static str) -> Self {
        Self { name, required: false, kind: "integer", help }
    }

    /// Must be there.
    pub(super) const fn required(self) -> Self {
        Self { required: true, ..self }
    }
}

/// The parameters of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Reads a query string against the parameters of a route.
    pub(super) fn parse(query: Option<&str>, known: &'static [Parameter]) -> Result<Self, Problem> {
        let mut found: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
                return Err(unknown(&name, known));
            };
            if found.iter().any(|(earlier, _)| *earlier == parameter.name) {
                return Err(fault(parameter.name, format!("`{name}` is given twice")));
            }
            found.push((parameter.name, value.into_owned()));
        }
        for parameter in known.iter().filter(|parameter| parameter.required) {
            if !found.iter().any(|(name, _)| *name == parameter.name) {
                let detail = format!("`{}` is missing: {}", parameter.name, parameter.help);
                return Err(fault(parameter.name, detail));
            }
        }
        Ok(Self(found))
    }

    /// A parameter as given; an empty one counts as left out.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(found, _)| *found == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// A whole number in a range, or what stands for it.
    pub(super) fn number(
        &self,
        name: &'static str,
        otherwise: u16,
        range: std::ops::RangeInclusive<u16>,
    ) -> Result<u16, Problem> {
        let Some(text) = self.text(name) else { return Ok(otherwise) };
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let (low, high) = range.into_inner();
            fault(name, format!("`{text}` is not a whole number from {low} to {high}"))
        })
    }

    /// `limit`.
    pub(super) fn limit(&self) -> Result<u16, Problem> {
        self.number("limit", LIMIT_DEFAULT, 1..=LIMIT_MAX)
    }
}

/// A parameter with a bad value.
pub(super) fn fault(name: &str, detail: String) -> Problem {
    Problem::new(Kind::BadParameter, detail).at_key(name)
}

fn unknown(name: &str, known: &[Parameter]) -> Problem {
    let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
    let nearest = names.iter().min_by_key(|candidate| distance(name, candidate));
    let shown: String = name.chars().take(60).collect();
    fault(
        &shown,
        match nearest {
            None => format!("`{shown}` is not known; this route takes no parameters"),
            Some(nearest) => format!(
                "`{shown}` is not known, the nearest is `{nearest}`; this route takes {}",
                names.join(", ")
            ),
        },
    )
}

/// Levenshtein's distance, of a name cut to a sane length.
fn distance(found: &str, known: &str) -> usize {
    let known: Vec<char> = known.chars().collect();
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (line, letter) in found.chars().take(60).enumerate() {
        let mut diagonal = line;
        let mut left = line + 1;
        for (column, other) in known.iter().enumerate() {
            let above = row.get(column + 1).copied().unwrap_or(usize::MAX - 1);
            let changed = diagonal + usize::from(letter != *other);
            let best = changed.min(above + 1).min(left + 1);
            diagonal = above;
            if let Some(cell) = row.get_mut(column) {
                *cell = left;
            }
            left = best;
        }
        if let Some(cell) = row.last_mut() {
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Parameter] = &[
        Parameter::text("state", "a state"),
        Parameter::text("domain", "a domain"),
        Parameter::number("limit", "how many"),
    ];

    #[test]
    fn unknown_parameters_are_refused_with_the_nearest() {
        let refused = Query::parse(Some("stat=x"), KNOWN).unwrap_err();
        assert_eq!(
            refused.detail(),
            "`stat` is not known, the nearest is `state`; this route takes state, domain, limit"
        );
        assert!(Query::parse(Some("a=1"), &[]).is_err());
        assert!(Query::parse(Some("limit=1&limit=2"), KNOWN).is_err());
    }

    #[test]
    fn required_parameters_are_missed() {
        const URL: &[Parameter] = &[Parameter::text("url", "the URL").required()];
        assert!(Query::parse(None, URL).is_err());
        assert_eq!(
            Query::parse(Some("url=http%3A//a.test/"), URL).unwrap().text("url"),
            Some("http://a.test/")
        );
    }

    #[test]
    fn limits_have_limits() {
        let limit = |query| Query::parse(Some(query), KNOWN).unwrap().limit();
        assert_eq!(limit(""), Ok(100));
        assert_eq!(limit("limit="), Ok(100));
        assert_eq!(limit("limit=1000"), Ok(1000));
        for wrong in ["limit=0", "limit=1001", "limit=-1", "limit=x", "limit=99999"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn distances_are_levenshtein_s() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
