//! The binary: arguments, configuration, node, exit status.

fn main() {}
