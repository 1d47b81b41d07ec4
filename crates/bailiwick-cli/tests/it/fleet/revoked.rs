//! A revocation by an admin, through a real hub and its published log, to a server that runs.

use serde_json::json;

use super::Fleet;
use crate::wrap::call;

const WAITS: &str = "name = 'waits'\nversion = '1'\n[[tools]]\nname = 'wait'\ncapabilities = []\n";

#[test]
fn what_an_admin_revokes_ends_where_it_runs_and_starts_nowhere() {
    let Some(fleet) = Fleet::start() else { return };
    let machine = fleet.member("machine");
    let status = machine.prints(&["fleet", "status"]);
    assert!(status.contains("entries, root ") && status.contains("signed "), "{status}");
    let mut wrapped = machine.wrap(WAITS);
    wrapped.initialize();
    fleet.admin.prints(&["fleet", "revoke", "server", "waits", "--reason", "leaked", "--yes"]);
    // It ends while its client says nothing.
    assert!(crate::run::eventually(|| wrapped.child.try_wait().unwrap().is_some()));
    let recorded = machine.prints(&["log", "export"]);
    assert!(recorded.contains("the fleet revoked the server `waits`"), "{recorded}");
    let mut again = machine.wrap(WAITS);
    let hello = again.initialize();
    let why = hello["result"]["instructions"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("the fleet revoked the server `waits`") && why.contains("leaked"), "{hello}");
    let answer = again.ask(&call(1, "wait", &json!({})));
    assert!(answer["result"]["content"].is_null(), "{answer}");
}
