//! Bytes of a response in, a document and its links out.
//!
//! The core is pure and synchronous: no clock, no I/O, no task; the time limit comes in as a
//! question. The actor around it owns the waiting and the retries.

pub mod memory;
pub mod handler;
pub mod decode;
pub mod mime;
pub mod charset;
mod page;
mod document;
mod worker;
mod seen;
pub mod html;
pub mod links;
pub mod robots_meta;
mod date;
pub mod sitemap;
pub mod simhash;
mod tree;
pub mod select;

pub use handler::{
    Handler, Input, Limits, PARSER_VERSION, Parsed, TextHandler, handler_for, is_wanted, parse,
};
pub use links::{LinkRef, Links, redirect_link};
pub use page::HtmlHandler;
pub use worker::{ParseActor, ParseContext, ParseHeld, ParseSettings, ParseState, Parsers};
