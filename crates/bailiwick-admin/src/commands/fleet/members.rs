//! `bailiwick fleet ls`, `diff` and `audit`: members, what they run, in what they differ, and who changed what.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::member_link::{MemberLink, block_on};
use bailiwick_command::moment;
use bailiwick_command::render::{escape, json as render_json, style};
use bailiwick_fleet::admin::AuditRow;
use bailiwick_fleet::inventory::{Difference, differences};
use bailiwick_fleet::protocol::{InventoryServer, MemberRow};
use serde_json::json;

use super::{FleetFault, role_word};
use crate::args::fleet::{Audit, Members};

/// How many members a hub answers at once.
const PAGE: usize = 200;

pub(super) fn list(link: &MemberLink, args: &Members) -> Result<Answer, FleetFault> {
    let rows = all(link, args)?;
    let text = match args.shown.format {
        AnswerFormat::Json => {
            render_json::document(&json!({ "format": "bailiwick.fleet-members/1", "members": rows }))
        }
        AnswerFormat::Text if rows.is_empty() => "no member\n".to_owned(),
        AnswerFormat::Text => rows.iter().map(member).collect(),
    };
    Ok(Answer::result(Exit::Fine, text))
}

pub(super) fn diff(link: &MemberLink, args: &Members) -> Result<Answer, FleetFault> {
    let found = differences(&all(link, args)?);
    let exit = if found.is_empty() { Exit::Fine } else { Exit::Found };
    let text = match args.shown.format {
        AnswerFormat::Json => {
            render_json::document(&json!({ "format": "bailiwick.fleet-diff/1", "differences": found }))
        }
        AnswerFormat::Text if found.is_empty() => "all machines run the same\n".to_owned(),
        AnswerFormat::Text => found.iter().map(difference).collect(),
    };
    Ok(Answer::result(exit, text))
}

pub(super) fn audit(link: &MemberLink, args: &Audit) -> Result<Answer, FleetFault> {
    let rows: Vec<AuditRow> = block_on(link.hub.get(&format!("/v1/audit?limit={}", args.lines)))??;
    let text = match args.shown.format {
        AnswerFormat::Json => {
            render_json::document(&json!({ "format": "bailiwick.fleet-audit/1", "changes": rows }))
        }
        AnswerFormat::Text => rows.iter().map(change).collect(),
    };
    Ok(Answer::result(Exit::Fine, text))
}

/// Every member, page by page.
fn all(link: &MemberLink, args: &Members) -> Result<Vec<MemberRow>, FleetFault> {
    let mut rows: Vec<MemberRow> = Vec::new();
    loop {
        let after = rows.last().map_or_else(String::new, |row| row.member.clone());
        let path = format!("/v1/members?after={after}&limit={PAGE}");
        let page: Vec<MemberRow> = block_on(link.hub.get(&path))??;
        let is_last = page.len() < PAGE || page.iter().all(|row| row.member <= after);
        rows.extend(page);
        if is_last {
            break;
        }
    }
    rows.retain(|row| args.label.as_ref().is_none_or(|label| row.labels.contains(label)));
    Ok(rows)
}

fn member(row: &MemberRow) -> String {
    let labels: String = row.labels.iter().map(|label| format!(" {}", escape::line(label))).collect();
    let seen = row.seen_ms.map_or_else(
        || "has not reported".to_owned(),
        |seen| format!("reported {}", moment::utc(seen.saturating_mul(1000))),
    );
    let version = row.inventory.iter().map(|report| format!("  bailiwick {}", escape::line(&report.version)));
    let head = format!(
        "{}  {} `{}`{labels}  {seen}{}\n",
        style::strong(&escape::line(&row.member)),
        role_word(row.role),
        escape::line(&row.name),
        version.collect::<String>(),
    );
    let servers = row.inventory.iter().flat_map(|report| &report.servers).map(server);
    head + &servers.collect::<String>()
}

fn server(server: &InventoryServer) -> String {
    let state = if server.running { "runs" } else { "known" };
    let package = server.package.as_ref().map(|package| format!("  {package}")).unwrap_or_default();
    let hash = |name: &str, hash: Option<bailiwick_fleet::Hash>| {
        hash.map(|hash| format!("\n    {name} {hash}")).unwrap_or_default()
    };
    let held: Vec<String> =
        server.enforcement.iter().map(|(axis, level)| escape::line(&format!("{axis} {level}"))).collect();
    let held = if held.is_empty() { String::new() } else { format!("\n    {}", held.join(", ")) };
    format!(
        "  {}  {state}{}{}{}{held}\n",
        escape::line(&server.server),
        escape::line(&package),
        hash("surface", server.surface),
        hash("manifest", server.manifest),
    )
}

fn difference(difference: &Difference) -> String {
    let head = format!(
        "{}  {}\n",
        style::strong(&escape::line(&difference.server)),
        escape::line(&difference.field)
    );
    let values = difference.values.iter().map(|(value, machines)| {
        let shown: Vec<String> = machines.iter().take(5).map(|machine| escape::line(machine)).collect();
        let more = machines.len().saturating_sub(shown.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("  {}  {}{more}\n", escape::line(value), shown.join(", "))
    });
    head + &values.collect::<String>()
}

fn change(row: &AuditRow) -> String {
    format!(
        "{}  {}  {}  {}  {}\n",
        moment::utc(row.time_ms.saturating_mul(1000)),
        escape::line(&row.actor),
        escape::line(&row.action),
        escape::line(&row.subject),
        escape::line(&row.detail),
    )
}
