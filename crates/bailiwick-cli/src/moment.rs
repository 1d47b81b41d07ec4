//! Times as people write and read them. Pure: what time it is now is passed in.

use std::str::FromStr;

use bailiwick_policy::diff::Date;

const SECOND: u64 = 1_000_000;
const DAY: u64 = 24 * 60 * 60;

/// Units of a span, in seconds.
const UNITS: [(char, u64); 5] = [('s', 1), ('m', 60), ('h', 60 * 60), ('d', DAY), ('w', 7 * DAY)];

/// How long, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) u64);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || "write a number and a unit, such as `45s`, `10m`, `2h`, `3d` or `1w`".to_owned();
        let (unit, seconds) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit)).ok_or_else(bad)?;
        let digits = text.strip_suffix(unit).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        let number: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or_else(bad)?;
        let span = number.checked_mul(seconds).and_then(|span| span.checked_mul(SECOND));
        span.map(Self).ok_or_else(|| "that is too long".to_owned())
    }
}

/// A point in time, or how long ago it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    At(u64),
    Ago(Span),
}

impl When {
    /// In microseconds since 1970.
    pub(crate) const fn at(self, now: u64) -> u64 {
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
    let (date, rest) = text.split_at_checked(10)?;
    Date::parse(date)?;
    let mut numbers = date.split('-').map_while(|part| part.parse::<i64>().ok());
    let days = days(numbers.next()?, numbers.next()?, numbers.next()?);
    let (clock, micros) = match rest.strip_prefix(['T', 't', ' ']) {
        None if rest.is_empty() => (0, 0),
        None => return None,
        Some(rest) => time_of_day(rest)?,
    };
    let seconds = u64::try_from(days * i64::try_from(DAY).ok()? + clock).ok()?;
    seconds.checked_mul(SECOND)?.checked_add(micros)
}

/// Seconds since midnight in UTC, and microseconds, of `12:00:00.5+01:00`.
fn time_of_day(text: &str) -> Option<(i64, u64)> {
    let (clock, zone) = text.split_at_checked(text.find(['Z', 'z', '+', '-'])?)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let (hours, rest) = clock.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let seconds =
        two_digits(hours, 23)? * 3600 + two_digits(minutes, 59)? * 60 + two_digits(seconds, 60)?.min(59);
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let offset = match zone.strip_prefix(['+', '-']) {
        None => i64::from(!zone.eq_ignore_ascii_case("z")),
        Some(offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let offset = two_digits(hours, 23)? * 3600 + two_digits(minutes, 59)? * 60;
            if zone.starts_with('-') { -offset } else { offset }
        }
    };
    let is_known = zone.len() == 6 || offset == 0;
    is_known.then_some((seconds - offset, micros.parse().ok()?))
}

fn two_digits(text: &str, most: i64) -> Option<i64> {
    let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= most)
}

/// Days since 1970; years begin in March so that leap days end one.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// `2026-01-31T12:00:00.000Z`.
pub(crate) fn utc(time: u64) -> String {
    let (seconds, millis) = (time / SECOND, time % SECOND / 1000);
    let (date, clock) = (Date::from_unix(seconds), seconds % DAY);
    let (hours, minutes, seconds) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{date}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// `3m ago`; a time to come, by a clock that jumped, is written out.
pub(crate) fn ago(time: u64, now: u64) -> String {
    let Some(past) = now.checked_sub(time) else { return utc(time) };
    let seconds = past / SECOND;
    let unit = UNITS.into_iter().rev().skip(1).find(|(_, unit)| seconds >= *unit);
    unit.map_or_else(|| "now".to_owned(), |(name, unit)| format!("{}{name} ago", seconds / unit))
}

/// How long something took.
pub(crate) fn took(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..SECOND => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        _ => format!("{}.{} s", micros / SECOND, micros % SECOND / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
