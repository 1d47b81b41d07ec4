//! Durations, sizes and fractions as people write them. The one reader: manifests and command lines agree.

/// Milliseconds of `30s`, `500ms`, `5m`, `1h`; a plain number is seconds.
#[must_use]
pub fn duration_ms(text: &str) -> Option<u64> {
    with_unit(text, &[("", SECOND), ("ms", 1), ("s", SECOND), ("m", MINUTE), ("h", HOUR)])
}

/// Milliseconds of `45s`, `10m`, `2h`, `3d`, `1w`: how long ago something was. The unit must be written.
#[must_use]
pub fn age_ms(text: &str) -> Option<u64> {
    with_unit(text, &AGES)
}

/// An age as [`age_ms`] reads it, in the largest unit of which it has at least one; weeks are written as days.
#[must_use]
pub fn age_text(millis: u64) -> Option<String> {
    let mut units = AGES.iter().rev().filter(|(name, _)| *name != "w");
    let (name, factor) = units.find(|(_, factor)| millis >= *factor)?;
    Some(format!("{}{name}", millis / factor))
}

/// Bytes of `64K`, `512M`, `2G`; a plain number is bytes.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    with_unit(text, &[("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)])
}

/// Thousandths of `1`, `0.5`, `2.25`: at most three decimals.
#[must_use]
pub fn thousandths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let clean = is_number(whole) && is_number(part) && !whole.is_empty() && part.len() <= 3;
    clean.then(|| format!("{whole}{part:0<3}").parse().ok()).flatten()
}

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const AGES: [(&str, u64); 5] = [("s", SECOND), ("m", MINUTE), ("h", HOUR), ("d", DAY), ("w", 7 * DAY)];

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_of_their_kind() {
        for (text, millis) in [("30", 30_000), ("500ms", 500), ("5m", 300_000), ("1h", 3_600_000), ("0s", 0)]
        {
            assert_eq!(duration_ms(text), Some(millis), "{text}");
        }
        assert_eq!((age_ms("3d"), age_ms("1w")), (Some(3 * DAY), Some(7 * DAY)));
        assert_eq!((bytes("64K"), bytes("2G"), bytes("7")), (Some(64 << 10), Some(2 << 30), Some(7)));
        assert_eq!(
            (thousandths("1"), thousandths("0.5"), thousandths("2.255")),
            (Some(1000), Some(500), Some(2255))
        );
    }

    #[test]
    fn what_is_no_number_with_a_unit_is_refused() {
        for bad in ["", "s", "-5s", "+5s", "5.5s", "5 s", "5d", "5S", "é", "99999999999999999999s"] {
            assert_eq!(duration_ms(bad), None, "{bad}");
        }
        for bad in ["5", "5ms", "1y", "99999999999999999999d", "18446744073709551615w"] {
            assert_eq!(age_ms(bad), None, "{bad}");
        }
        for bad in ["k", "5k", "5KiB", "-1", "99999999999G"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
        for bad in ["", ".5", "1.2345", "1e3", "-1", "1.x", "1,5"] {
            assert_eq!(thousandths(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_age_is_written_in_its_largest_unit() {
        let shown = |millis| age_text(millis).unwrap_or_default();
        assert_eq!(
            (shown(999), shown(90_000), shown(3 * DAY), shown(30 * DAY)),
            (String::new(), "1m".to_owned(), "3d".to_owned(), "30d".to_owned(),)
        );
    }
}
