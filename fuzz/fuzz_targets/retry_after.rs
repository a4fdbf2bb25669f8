//! F7: any text as Retry-After, with any Date beside it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mehman::policy::retry_after::{retry_after, time_of_site};
use mehman::types::Timestamp;

fuzz_target!(|data: (&str, &str, i64)| {
    let (value, date, now) = data;
    let now = Timestamp::from_millis(now);
    retry_after(value, time_of_site(Some(date), now));
    let wait = retry_after(value, now);
    // A number is a number of seconds, whatever the time.
    if let Ok(seconds) = value.parse::<u32>()
        && !value.starts_with('+')
    {
        assert_eq!(wait.map(|wait| wait.as_secs()), Some(u64::from(seconds)));
    }
});
