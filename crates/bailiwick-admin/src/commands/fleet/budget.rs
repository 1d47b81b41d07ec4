//! `bailiwick fleet budget`: what machines may spend together.

use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::member_link::{MemberLink, block_on};
use bailiwick_command::render::{escape, json as render_json, style};
use bailiwick_fleet::admin::{BudgetRow, BudgetWish};
use bailiwick_fleet::protocol::BudgetUnit;
use serde_json::json;

use super::FleetFault;
use crate::args::fleet::{Budget, Unit};

pub(super) fn run(link: &MemberLink, args: &Budget) -> Result<Answer, FleetFault> {
    if let (Some(name), Some(total)) = (&args.name, args.total) {
        let slice = args.slice.unwrap_or_else(|| (total / 100).max(1));
        let lease_ms = u64::try_from(args.lease.0.as_millis()).unwrap_or(u64::MAX);
        let unit = match args.unit {
            Unit::Calls => BudgetUnit::Calls,
            Unit::Seconds => BudgetUnit::Seconds,
            Unit::Money => BudgetUnit::Money,
        };
        let wish = BudgetWish { id: name.clone(), unit, total, slice, lease_ms };
        block_on(link.hub.tell("/v1/budgets", &wish))??;
    }
    let rows: Vec<BudgetRow> = block_on(link.hub.get("/v1/budgets"))??;
    let rows: Vec<&BudgetRow> =
        rows.iter().filter(|row| args.name.as_ref().is_none_or(|name| *name == row.id)).collect();
    let text = match args.shown.format {
        AnswerFormat::Json => {
            render_json::document(&json!({ "format": "bailiwick.fleet-budgets/1", "budgets": rows }))
        }
        AnswerFormat::Text if rows.is_empty() => "there is no budget\n".to_owned(),
        AnswerFormat::Text => rows.iter().map(|row| line(row)).collect(),
    };
    Ok(Answer::result(Exit::Fine, text))
}

fn line(row: &BudgetRow) -> String {
    let left = row.total.saturating_sub(row.taken);
    format!(
        "{}  {left} of {} {} left, {} of the rest in leases that run; a lease has {} at most, for {} s\n",
        style::strong(&escape::line(&row.id)),
        row.total,
        unit_word(row.unit),
        row.leased,
        row.slice,
        row.lease_ms / 1000,
    )
}

/// The word for what a budget counts.
pub(super) const fn unit_word(unit: BudgetUnit) -> &'static str {
    match unit {
        BudgetUnit::Calls => "calls",
        BudgetUnit::Seconds => "seconds",
        BudgetUnit::Money => "money",
    }
}
