//! Responses in, pointers out; before anything parses.
