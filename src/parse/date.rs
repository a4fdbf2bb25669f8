//! Dates in documents: of `unavailable_after`, and of sitemaps and feeds. ISO 8601, RFC 822 and
//! RFC 850, as found in the wild.

use time::{Date, Month, Time, UtcOffset};

use crate::types::Timestamp;

/// The point in time; `None` where it is none. A date without a zone is taken as UTC.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    // ISO 8601 with its time, whose zone may be a number.
    if let Some(at) = Some(text).filter(|text| text.len() > 10).and_then(w3c) {
        return Some(at);
    }
    let mut words: Words = Words::default();
    let mut digit = false;
    let separates = |c: char| {
        // The T of ISO 8601 follows a digit, that of a month's name a letter.
        let separates = matches!(c, ' ' | ',' | '-' | '_') || digit && matches!(c, 't' | 'T');
        digit = c.is_ascii_digit();
        separates
    };
    for word in text.split(separates).filter(|word| !word.is_empty()) {
        words.take(word);
    }
    if let Some(offset) = text.rsplit_once([' ']).and_then(|(_, last)| numeric_zone(last)) {
        words.offset_hours_minutes = offset;
    }
    words.timestamp()
}

/// When an entry of a sitemap or a feed changed: the forms of W3C-DTF, from the year alone to
/// fractions of a second, or RFC 822, whose times need a zone. `None` for anything else.
pub(super) fn changed_at(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.as_bytes().get(4).is_none_or(|byte| *byte == b'-') && text.is_char_boundary(4) {
        return w3c(text);
    }
    let has_time = text.contains(':');
    let last = text.rsplit(' ').next()?;
    let has_zone = zone(last).is_some() || numeric_zone(last).is_some();
    parse(text).filter(|_| has_zone || !has_time)
}

/// `YYYY[-MM[-DD[Thh:mm[:ss[.s]]zone]]]`; a time without a zone is taken as UTC.
fn w3c(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_at_checked(10).unwrap_or((text, ""));
    let mut parts =
        date.split('-').map(|part| part.parse::<u16>().ok().filter(|_| !part.is_empty()));
    let year = i32::from(parts.next()??);
    let month = Month::try_from(u8::try_from(parts.next().unwrap_or(Some(1))?).ok()?).ok()?;
    let day = u8::try_from(parts.next().unwrap_or(Some(1))?).ok()?;
    let date = Date::from_calendar_date(year, month, day).ok()?;
    if rest.is_empty() {
        return Some(Timestamp::from_secs(
            date.with_time(Time::MIDNIGHT).assume_utc().unix_timestamp(),
        ));
    }
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at_checked(at)?;
    let (hours, minutes) = match zone {
        "" | "Z" | "z" => (0, 0),
        zone => numeric_zone(zone)?,
    };
    let offset = UtcOffset::from_hms(hours, minutes, 0).ok()?;
    let at = date.with_time(time_of(clock)?).assume_offset(offset);
    Some(Timestamp::from_millis(i64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok()?))
}

/// `hh:mm[:ss[.s]]`.
fn time_of(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':').map(|part| part.parse().ok());
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
    Time::from_hms_milli(hours, minutes, seconds, millis.parse().ok()?).ok()
}

#[derive(Default)]
struct Words {
    numbers: Vec<i32>,
    month: Option<Month>,
    time: Option<Time>,
    offset_hours_minutes: (i8, i8),
}

impl Words {
    fn take(&mut self, word: &str) {
        if let Some(month) = month(word) {
            self.month = Some(month);
        } else if word.contains(':') {
            self.time = clock(word);
        } else if let Some(hours) = zone(word) {
            self.offset_hours_minutes = (hours, 0);
        } else if let Ok(number) = word.parse() {
            self.numbers.push(number);
        }
    }

    fn timestamp(self) -> Option<Timestamp> {
        let (year, month, day) = match (self.month, self.numbers.as_slice()) {
            (Some(month), [day, year, ..]) if *day <= 31 => (*year, month, *day),
            (Some(month), [year, day, ..]) => (*year, month, *day),
            (None, [year, month, day, ..]) => {
                (*year, Month::try_from(u8::try_from(*month).ok()?).ok()?, *day)
            }
            _ => return None,
        };
        let year = if year < 70 { year + 2000 } else { year };
        let year = if year < 100 { year + 1900 } else { year };
        let date = Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()?;
        let (hours, minutes) = self.offset_hours_minutes;
        let offset = UtcOffset::from_hms(hours, minutes, 0).ok()?;
        let at = date.with_time(self.time.unwrap_or(Time::MIDNIGHT)).assume_offset(offset);
        Some(Timestamp::from_secs(at.unix_timestamp()))
    }
}

fn month(word: &str) -> Option<Month> {
    const NAMES: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = word.get(..3)?.to_ascii_lowercase();
    let at = NAMES.iter().position(|name| *name == start)?;
    Month::try_from(u8::try_from(at + 1).ok()?).ok()
}

fn clock(word: &str) -> Option<Time> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let mut parts = digits.split(['.', '+']).next()?.split(':').map(|part| part.parse().ok());
    let (hours, minutes) = (parts.next()??, parts.next()??);
    Time::from_hms(hours, minutes, parts.next().flatten().unwrap_or(0)).ok()
}

/// The zones RFC 822 names, in hours from UTC.
fn zone(word: &str) -> Option<i8> {
    Some(match word.to_ascii_lowercase().as_str() {
        "utc" | "gmt" | "ut" | "z" => 0,
        "est" => -5,
        "edt" => -4,
        "cst" => -6,
        "cdt" => -5,
        "mst" => -7,
        "mdt" => -6,
        "pst" => -8,
        "pdt" => -7,
        "cet" => 1,
        "cest" => 2,
        _ => return None,
    })
}

/// `+0130` as hours and minutes.
fn numeric_zone(word: &str) -> Option<(i8, i8)> {
    let sign = match word.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = word.get(1..)?.replace(':', "");
    let (hours, minutes) = digits.split_at_checked(2)?;
    let (hours, minutes): (i8, i8) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some((sign * hours, sign * minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_the_forms_found() {
        let expected = Timestamp::parse_rfc3339("2010-06-25T15:00:00Z");
        for text in [
            "2010-06-25T15:00:00Z",
            "2010-06-25t15:00:00z",
            "2010-06-25T15:00:00.000Z",
            "2010-06-25T17:00:00+02:00",
            "Fri Jun 25 15:00:00 2010",
            "25 Jun 2010 07:00:00 -0800",
            "2010-06-25 15:00:00",
            "25 jun 2010 15:00:00 gmt",
            "25 Jun 2010 07:00:00 PST",
            "fri, 25 jun 2010 15:00:00 utc",
            "friday, 25-jun-10 15:00:00 utc",
            "friday, 25-jun-10 11:00:00 edt",
            "25 jun 2010 16:30:00 +0130",
            "25 june 2010 15:00",
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(parse("2010-06-25"), Timestamp::parse_rfc3339("2010-06-25T00:00:00Z"));
        for text in ["", "soon", "99 jun", "31 feb 2010", "2010"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
