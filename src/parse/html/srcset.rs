//! `srcset`: the standard's parser, which knows that commas may stand inside a URL.
//!
//! Descriptors that mean nothing are passed over, those that contradict each other or are zero
//! make the candidate void, as in browsers.

/// The URLs of the valid candidates, in their order. Time is linear.
pub fn candidates(srcset: &str) -> impl Iterator<Item = &str> {
    let mut rest = srcset;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c| is_space(c) || c == ',');
            if rest.is_empty() {
                return None;
            }
            let end = rest.find(is_space).unwrap_or(rest.len());
            let (url, after) = rest.split_at(end);
            let plain = url.trim_end_matches(',');
            if plain.len() < url.len() {
                rest = after;
                return Some(plain);
            }
            let (descriptors, after) = split_descriptors(after);
            rest = after;
            if are_valid(descriptors) {
                return Some(url);
            }
        }
    })
}

/// Up to the comma that ends the candidate; commas in parentheses do not.
fn split_descriptors(text: &str) -> (&str, &str) {
    let mut inside = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => inside = true,
            b')' => inside = false,
            b',' if !inside => return text.split_at_checked(at).unwrap_or((text, "")),
            _ => {}
        }
    }
    (text, "")
}

fn are_valid(descriptors: &str) -> bool {
    let (mut width, mut density, mut height) = (false, false, false);
    for token in tokens(descriptors) {
        let Some(unit) = token.chars().last() else { continue };
        let number = token.strip_suffix(unit).unwrap_or_default();
        match unit {
            'w' if is_integer(number) => {
                if width || density || is_zero(number) {
                    return false;
                }
                width = true;
            }
            'x' if is_float(number) => {
                if width || density || height {
                    return false;
                }
                density = true;
            }
            'h' if is_integer(number) => {
                if height || density || is_zero(number) {
                    return false;
                }
                height = true;
            }
            _ => {}
        }
    }
    !height || width
}

/// Split at white space outside parentheses.
fn tokens(descriptors: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    descriptors
        .split(move |c| {
            inside = (inside || c == '(') && c != ')';
            !inside && is_space(c)
        })
        .filter(|token| !token.is_empty())
}

fn is_integer(number: &str) -> bool {
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

fn is_zero(number: &str) -> bool {
    number.bytes().all(|b| b == b'0')
}

/// A valid floating-point number of the standard that is not negative.
fn is_float(number: &str) -> bool {
    let unsigned = number.strip_prefix('-').unwrap_or(number);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent_fits =
        exponent.is_none_or(|digits| is_integer(digits.strip_prefix(['-', '+']).unwrap_or(digits)));
    let mantissa_fits = fraction.map_or_else(
        || is_integer(whole),
        |digits| is_integer(digits) && (whole.is_empty() || is_integer(whole)),
    );
    let negative = number.starts_with('-') && !mantissa.bytes().all(|b| matches!(b, b'0' | b'.'));
    mantissa_fits && exponent_fits && !negative
}

fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ')
}
