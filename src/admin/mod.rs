//! The admin HTTP interface, version 1.
