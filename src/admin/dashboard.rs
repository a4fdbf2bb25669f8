//! `GET /`: the dashboard, one page without anything from elsewhere (U3).

use axum::response::{Html, IntoResponse as _};

use super::router::{Call, Handled};

/// The page; it reads `/v1/status` and `/v1/hosts` by itself.
const PAGE: &str = include_str!("dashboard.html");

/// `GET /`.
pub(super) async fn show(_call: Call) -> Handled {
    Ok(Html(PAGE).into_response())
}
