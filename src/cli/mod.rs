//! Commands: arguments in, exit status out.
