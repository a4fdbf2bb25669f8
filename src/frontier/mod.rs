//! Admitted URLs in, leases out; one live owner per host.
