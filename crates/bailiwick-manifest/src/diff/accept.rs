//! Accepted risks: differences that a person has looked at, with a reason and an end.

use bailiwick_policy::finding::{Code, Collector, Finding, Findings};
use toml_datetime::{Date, Datetime};

use super::Difference;
use crate::document::{self, Fields, Node};

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
        let mut fields = Fields::from_node(&node, "a file of accepted risks", Code::AcceptShape)?;
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
    let mut fields = found.keep(Fields::from_node(item, "an accepted risk", Code::AcceptShape))?;
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
        let near = bailiwick_policy::capability::nearest(&code, Code::ALL.iter().map(|known| known.as_str()));
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
    let expires = day(&date);
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

/// A day as it must be written: `2027-01-31`, and no other way.
pub(super) fn day(text: &str) -> Option<Date> {
    let read: Datetime = text.parse().ok()?;
    read.date.filter(|date| date.to_string() == text)
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
        let today = day("2026-01-01").unwrap();
        let diff =
            Diff::between(&base, &new).unwrap().accepting(&Accepted::parse(text).unwrap(), today, &new);
        let codes: Vec<_> = diff.differences().iter().map(Difference::code).collect();
        assert_eq!(codes, [Code::AcceptExpired, Code::LimitsRelaxed, Code::ManifestVersionChanged]);
    }

    #[test]
    fn a_day_is_written_in_one_way() {
        assert_eq!(day("2024-02-29").unwrap().to_string(), "2024-02-29");
        for bad in [
            "",
            "2027-02-29",
            "2027-13-01",
            "20270131",
            "2027-1-31",
            "2027-01-31T00:00",
            "+002027-01-31",
            " 2027-01-31",
        ] {
            assert_eq!(day(bad), None, "{bad}");
        }
    }
}
