//! Leases in, responses and outcomes out.
