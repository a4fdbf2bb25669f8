//! R1: any bytes as a robots.txt, judged for a path that is in them.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mehman::policy::robots::Rules;

fuzz_target!(|data: &[u8]| {
    let text = Bytes::copy_from_slice(data);
    let rules = Rules::parse(&text, "mehman");
    assert_eq!(rules.text(), &text);
    let lines = 1 + data.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    assert!(rules.len() <= lines);
    assert!(rules.verdict("/robots.txt").is_allowed());
    let line = String::from_utf8_lossy(data.rsplit(|byte| *byte == b'\n').next().unwrap_or(data));
    for path in ["/".to_owned(), format!("/{line}"), format!("/{}", line.repeat(3))] {
        assert_eq!(rules.verdict(&path), rules.verdict(&path));
    }
});
