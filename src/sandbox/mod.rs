//! A small web on loopback, made from a seed, with its own DNS.
