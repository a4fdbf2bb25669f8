//! U1: any text as a configuration file: it loads, or every fault says where it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mehman::config::Config;

fuzz_target!(|text: &str| {
    match Config::from_toml(text, "fuzz.toml") {
        Ok(config) => drop(config.crawlable()),
        Err(faults) => {
            assert!(!faults.faults.is_empty());
            assert!(!faults.to_string().is_empty());
        }
    }
});
