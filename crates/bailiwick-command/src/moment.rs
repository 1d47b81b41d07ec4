//! Times as people write and read them. Pure: what time it is now is passed in.

use std::str::FromStr;

use bailiwick_manifest::units;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

const MILLI: u64 = 1_000;
const SECOND: u64 = 1_000_000;

/// How long, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub u64);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let span = units::age_ms(text).and_then(|millis| millis.checked_mul(MILLI));
        span.map(Self)
            .ok_or_else(|| "write a number and a unit, such as `45s`, `10m`, `2h`, `3d` or `1w`".to_owned())
    }
}

/// A point in time, or how long ago it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A moment, in microseconds since 1970.
    At(u64),
    /// As long before now.
    Ago(Span),
}

impl When {
    /// In microseconds since 1970.
    pub const fn at(self, now: u64) -> u64 {
        match self {
            Self::At(time) => time,
            Self::Ago(Span(span)) => now.saturating_sub(span),
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.parse().map(Self::Ago).ok().or_else(|| rfc3339(text).map(Self::At));
        parsed.ok_or_else(|| "write `2026-01-31T12:00:00Z`, or how long ago: `10m`, `2h`, `3d`".to_owned())
    }
}

/// Microseconds since 1970 of an RFC 3339 time; a date alone is its first moment in UTC.
fn rfc3339(text: &str) -> Option<u64> {
    let time = match text.len() {
        10 => text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp(),
        _ => text.parse::<Timestamp>().ok()?,
    };
    u64::try_from(time.as_microsecond()).ok()
}

/// `2026-01-31T12:00:00.000Z`; a time beyond the year 9999 as the last moment before it.
pub fn utc(time: u64) -> String {
    let time = i64::try_from(time).ok().and_then(|time| Timestamp::from_microsecond(time).ok());
    time.unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// `3m ago`; a time to come, by a clock that jumped, is written out.
pub fn ago(time: u64, now: u64) -> String {
    let Some(past) = now.checked_sub(time) else { return utc(time) };
    units::age_text(past / MILLI).map_or_else(|| "now".to_owned(), |age| format!("{age} ago"))
}

/// How long something took.
pub fn took(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..SECOND => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        _ => format!("{}.{} s", micros / SECOND, micros % SECOND / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 60 * 60;

    #[test]
    fn times_are_read_and_written() {
        for (text, time) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-01-01T00:00:00Z", 1_767_225_600 * SECOND),
            ("2026-01-01T01:30:00.25+01:30", 1_767_225_600 * SECOND + 250_000),
            ("2025-12-31T19:00:00-05:00", 1_767_225_600 * SECOND),
            ("2026-01-01", 1_767_225_600 * SECOND),
            ("2024-02-29T23:59:59.999Z", 1_709_251_199 * SECOND + 999_000),
        ] {
            assert_eq!(text.parse(), Ok(When::At(time)), "{text}");
        }
        assert_eq!(utc(1_709_251_199 * SECOND + 999_500), "2024-02-29T23:59:59.999Z");
        assert_eq!(utc(0), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let bad = [
            "",
            "now",
            "5",
            "5x",
            "-5m",
            "+5m",
            "5.5m",
            "é",
            "2026-02-30",
            "2026-01-01T",
            "2026-01-01T25:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00Zx",
            "2026-01-01T00:00:00+1:00",
            "1969-12-31T23:59:59Z",
            "99999999999999999999d",
            "2026-01-01T0:00:00Z",
            "2026-01-01x00:00:00Z",
        ];
        for text in bad {
            assert!(text.parse::<When>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_count_back_from_now() {
        let now = 10 * DAY * SECOND;
        assert_eq!("3d".parse::<When>().unwrap().at(now), 7 * DAY * SECOND);
        assert_eq!("52w".parse::<When>().unwrap().at(now), 0);
        assert_eq!(ago(now - 90 * SECOND, now), "1m ago");
        assert_eq!(ago(now - 3 * DAY * SECOND, now), "3d ago");
        assert_eq!((ago(now, now), ago(0, now)), ("now".to_owned(), "10d ago".to_owned()));
        assert_eq!(ago(now + 1, now), utc(now + 1));
        assert_eq!(
            (took(12), took(1_250), took(2_300_000)),
            ("12 µs".into(), "1.2 ms".into(), "2.3 s".into())
        );
    }
}
