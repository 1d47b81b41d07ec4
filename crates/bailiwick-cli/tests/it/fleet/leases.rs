//! A budget that two machines share, one of which is killed.

use serde_json::{Value, json};

use super::{Fleet, Home};
use crate::wrap::{Wrapped, call, text};

const MANIFEST: &str = r#"
name = "metered"
version = "1"

[[tools]]
name = "search"
capabilities = []
constraints = { fleet_budget = { name = "searches" } }
"#;

/// Whether a call ran; why not, if the budget refused it.
fn ran(wrapped: &mut Wrapped, number: u64) -> Result<(), String> {
    let answer = wrapped.ask(&call(number, "search", &json!({})));
    if text(&answer) == "ran" {
        return Ok(());
    }
    let code = &answer["result"]["_meta"]["dev.bailiwick/decision"]["code"];
    assert_eq!(code, "fleet-budget-spent", "{answer}");
    Err(text(&answer).to_owned())
}

fn wrapped(home: &Home) -> Wrapped {
    let mut wrapped = home.wrap(MANIFEST);
    wrapped.initialize();
    wrapped
}

fn budget(fleet: &Fleet) -> Value {
    fleet.admin.json(&["fleet", "budget", "searches", "--total", "10", "--slice", "3", "--format", "json"])
}

#[test]
fn two_machines_never_spend_more_than_there_is_whatever_is_killed() {
    let Some(fleet) = Fleet::start() else { return };
    assert_eq!(budget(&fleet)["budgets"][0]["taken"], 0);
    let (first, second) = (fleet.member("machine"), fleet.member("machine"));
    let mut one = wrapped(&first);
    for number in 1..=2 {
        ran(&mut one, number).unwrap();
    }
    one.kill();
    // Two of a slice of three were spent: that is on disk, and the rest stays taken.
    let held = first.json(&["fleet", "status", "--format", "json"]);
    assert_eq!(held["leases"][0]["spent"], 2, "{held}");
    assert_eq!(budget(&fleet)["budgets"][0]["taken"], 3);

    let mut two = wrapped(&second);
    let passed = (1..=20).take_while(|number| ran(&mut two, *number).is_ok()).count();
    assert_eq!(passed, 7, "ten, less the slice that was not returned");
    let why = ran(&mut two, 21).unwrap_err();
    assert!(why.contains("nothing is left of the budget"), "{why}");

    // The machine that was killed goes on with what it holds, and gets no more.
    let mut one = wrapped(&first);
    ran(&mut one, 1).unwrap();
    assert!(ran(&mut one, 2).is_err());
    drop((one.end(), two.end()));
    assert_eq!(budget(&fleet)["budgets"][0]["taken"], 10);
}

#[test]
fn a_lease_is_spent_without_a_hub_and_what_is_left_goes_back() {
    let Some(mut fleet) = Fleet::start() else { return };
    budget(&fleet);
    let machine = fleet.member("machine");
    let mut held = wrapped(&machine);
    ran(&mut held, 1).unwrap();
    fleet.kill_hub();
    ran(&mut held, 2).unwrap();
    ran(&mut held, 3).unwrap();
    let why = ran(&mut held, 4).unwrap_err();
    assert!(why.contains("no hub"), "{why}");
    fleet.start_hub();
    ran(&mut held, 5).unwrap();
    assert_eq!(budget(&fleet)["budgets"][0]["taken"], 6);
    drop(held.end());
    assert_eq!(budget(&fleet)["budgets"][0]["taken"], 4, "two of the second slice came back");
}

#[test]
fn where_no_fleet_is_joined_a_budget_of_one_lets_nothing_run() {
    let home = Home::new();
    let mut alone = wrapped(&home);
    let why = ran(&mut alone, 1).unwrap_err();
    assert!(why.contains("on a machine that is enrolled"), "{why}");
    drop(alone.end());
}
