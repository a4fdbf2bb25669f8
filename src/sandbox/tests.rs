//! The sandbox as a visitor meets it.
