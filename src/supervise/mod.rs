//! Pools whose workers come back, and names that stay inside one node (A1).
