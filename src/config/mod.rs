//! One TOML file in, one checked `Config` out; every fault named at once (U1).
