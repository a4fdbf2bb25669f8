//! R1: whom a `User-agent` line speaks to.

/// Whether a user-agent line names the product: its token is what comes before the first character
/// that no token has (`mehman/1.0`, `mehman bot`), or the whole first word for a product whose own
/// name has such a character.
pub(in crate::policy) fn names(value: &str, product: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphabetic() || c == '-' || c == '_';
    let token = value.split(|c| !is_token(c)).next().unwrap_or_default();
    let word = value.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
    let product = product.split('/').next().unwrap_or_default();
    !product.is_empty()
        && (token.eq_ignore_ascii_case(product) || word.eq_ignore_ascii_case(product))
}

/// Whether a user-agent line speaks to everyone.
pub(in crate::policy) fn names_everyone(value: &str) -> bool {
    let rest = value.strip_prefix('*');
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}
