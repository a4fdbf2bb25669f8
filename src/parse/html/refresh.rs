//! `<meta http-equiv=refresh>`: the standard's shared declarative refresh steps.

/// The delay in whole seconds and the URL as written; an empty URL is the page itself.
pub fn parse_refresh(content: &str) -> Option<(u64, &str)> {
    let content = content.trim_start_matches(is_space);
    let after_digits = content.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = content.strip_suffix(after_digits).unwrap_or_default();
    if digits.is_empty() && !content.starts_with('.') {
        return None;
    }
    let seconds = digits.parse().unwrap_or(if digits.is_empty() { 0 } else { u64::MAX });
    let rest = after_digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if rest.is_empty() {
        return Some((seconds, ""));
    }
    if !rest.starts_with(|c| is_space(c) || c == ';' || c == ',') {
        return None;
    }
    let rest = rest.trim_start_matches(is_space);
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start_matches(is_space);
    Some((seconds, address(rest)))
}

/// What follows the delay: `url=` and quotes are optional.
fn address(rest: &str) -> &str {
    let url = match rest.split_at_checked(3) {
        Some((word, after)) if word.eq_ignore_ascii_case("url") => {
            match after.trim_start_matches(is_space).strip_prefix('=') {
                Some(value) => value.trim_start_matches(is_space),
                None => return trim(rest),
            }
        }
        Some(_) | None if rest.starts_with(['u', 'U']) => return trim(rest),
        Some(_) | None => rest,
    };
    let Some(quote) = url.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return trim(url);
    };
    let inner = url.strip_prefix(quote).unwrap_or(url);
    trim(inner.split_once(quote).map_or(inner, |(before, _)| before))
}

fn trim(url: &str) -> &str {
    url.trim_matches(is_space)
}

fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ')
}
