//! Accepted risks: differences that a person has looked at, with a reason and an end.

use std::fmt;

use super::Difference;
use crate::document::{self, Fields, Node};
use crate::finding::{Code, Collector, Finding, Findings};

/// A day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// Reads `2027-01-31`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let mut number = |digits: usize| {
            let part = parts.next().filter(|part| part.len() == digits)?;
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u16>().ok()).flatten()
        };
        let (year, month, day) = (number(4)?, number(2)?, number(2)?);
        let (month, day) = (u8::try_from(month).ok()?, u8::try_from(day).ok()?);
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        (1..=days).contains(&day).then_some(Self { year, month, day })
    }

    /// The day on which this many seconds have passed since 1970.
    #[must_use]
    pub fn from_unix(seconds: u64) -> Self {
        // Days since 0000-03-01, so that leap days end a year.
        let days = seconds / 86_400 + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        Self {
            year: u16::try_from(year).unwrap_or(u16::MAX),
            month: u8::try_from(month).unwrap_or(12),
            day: u8::try_from(day).unwrap_or(31),
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// One accepted difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    code: String,
    tool: Option<String>,
    snapshot: Option<String>,
    reason: String,
    expires: Date,
}

impl Accepted {
    /// Reads a file of `[[accept]]` tables with `code`, `tool`, `snapshot`, `reason` and `expires`.
    ///
    /// # Errors
    /// Everything that is wrong with the text.
    pub fn parse(text: &str) -> Result<Vec<Self>, Findings> {
        let node = document::parse(text)?;
        let mut found = Collector::default();
        let mut fields = Fields::of(&node, "a file of accepted risks", Code::AcceptShape)?;
        let items = fields.required("accept", Code::AcceptShape)?.list(Code::AcceptShape)?;
        let accepted: Vec<Self> = items.iter().filter_map(|item| read(item, &mut found)).collect();
        fields.finish(Code::AcceptShape, &mut found);
        found.finish(accepted)
    }

    fn covers(&self, difference: &Difference, new_hash: &str) -> bool {
        let tool = self.tool.as_deref() == difference.tool();
        let snapshot = self.snapshot.as_deref().is_none_or(|hash| hash == new_hash);
        self.code == difference.code.as_str() && tool && snapshot
    }
}

fn read(item: &Node<'_>, found: &mut Collector) -> Option<Accepted> {
    let mut fields = found.keep(Fields::of(item, "an accepted risk", Code::AcceptShape))?;
    let mut text = |key| {
        let node = found.keep(fields.required(key, Code::AcceptShape))?;
        found.keep(node.text(Code::AcceptShape)).map(|text| (node, text.to_owned()))
    };
    let (code, reason, expires) = (text("code"), text("reason"), text("expires"));
    let tool = fields.optional("tool").and_then(|node| found.keep(node.text(Code::AcceptShape)));
    let snapshot = fields.optional("snapshot").and_then(|node| found.keep(node.text(Code::AcceptShape)));
    fields.finish(Code::AcceptShape, found);
    let ((code_node, code), (reason_node, reason), (date_node, date)) = (code?, reason?, expires?);
    if !Code::ALL.iter().any(|known| known.as_str() == code) {
        let near = crate::capability::nearest(&code, Code::ALL.iter().map(|known| known.as_str()));
        let help =
            near.map_or_else(|| "see `docs/codes.md`".to_owned(), |near| format!("did you mean `{near}`?"));
        found.push(
            Finding::new(Code::AcceptShape, format!("there is no code `{code}`"))
                .at(code_node.span)
                .help(help),
        );
    }
    if reason.trim().is_empty() {
        found.push(
            Finding::new(Code::AcceptShape, "the reason is empty")
                .at(reason_node.span)
                .help("say why it is acceptable"),
        );
    }
    let expires = Date::parse(&date);
    if expires.is_none() {
        let message = format!("`{date}` is not a date");
        found.push(Finding::new(Code::AcceptShape, message).at(date_node.span).help("write `2027-01-31`"));
    }
    Some(Accepted {
        code,
        tool: tool.map(str::to_owned),
        snapshot: snapshot.map(str::to_owned),
        reason,
        expires: expires?,
    })
}

/// Marks differences; reports risks that have expired or match nothing.
pub(super) fn apply(differences: &mut Vec<Difference>, accepted: &[Accepted], today: Date, new_hash: &str) {
    let mut reports = Vec::new();
    for risk in accepted {
        let mut covered =
            differences.iter_mut().filter(|difference| risk.covers(difference, new_hash)).peekable();
        let (code, message) = match (covered.peek().is_some(), risk.expires < today) {
            (false, _) => (Code::AcceptUnused, format!("the accepted `{}` matches no difference", risk.code)),
            (true, true) => (Code::AcceptExpired, format!("the accepted `{}` has expired", risk.code)),
            (true, false) => {
                covered.for_each(|difference| difference.accepted = Some(risk.reason.clone()));
                continue;
            }
        };
        reports.push(Difference {
            code,
            severity: code.severity(),
            tool: risk.tool.clone(),
            message,
            example: None,
            widens: false,
            accepted: None,
        });
    }
    differences.extend(reports);
    super::compare::sort(differences);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Diff;
    use crate::snapshot::Snapshot;

    #[test]
    fn an_expired_risk_stands_where_its_severity_puts_it() {
        let side = |version| {
            let text = format!("name = \"a\"\nversion = \"{version}\"\n[limits]\npids = {version}\n");
            Snapshot::parse(&text).unwrap()
        };
        let (base, new) = (side(1), side(2));
        let text = "[[accept]]\ncode = \"limits.relaxed\"\nreason = \"x\"\nexpires = \"2020-01-01\"\n";
        let today = Date::parse("2026-01-01").unwrap();
        let diff =
            Diff::between(&base, &new).unwrap().accepting(&Accepted::parse(text).unwrap(), today, &new);
        let codes: Vec<_> = diff.differences().iter().map(Difference::code).collect();
        assert_eq!(codes, [Code::AcceptExpired, Code::LimitsRelaxed, Code::ManifestVersionChanged]);
    }
}
