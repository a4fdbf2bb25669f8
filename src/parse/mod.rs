//! Pointers in, links and documents out.
