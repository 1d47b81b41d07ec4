//! What runs where, as an admin sees it: names, packages with their versions, manifests, how they are held, and in what machines differ.

use std::process::Command;

use serde_json::Value;

use super::{Fleet, Home, until};
use crate::wrap::Wrapped;
use crate::wrap::in_fleet::planted;

const MANIFEST: &str = "name = 'files'\nversion = '1'\n[[tools]]\nname = 'read'\ncapabilities = []\n";

/// A machine on which this version of a package runs.
fn runs(machine: &Home, version: &str, manifest: &str) -> Wrapped {
    let program = planted(&machine.path(""), version);
    let mut command: Command = machine.bailiwick(&["wrap", "--manifest"]);
    command.arg(machine.manifest(manifest)).arg("--").arg(program);
    let wrapped = Wrapped::spawned(command);
    until("it runs", || machine.json(&["ps", "--format", "json"])["servers"].get(0).is_some().then_some(()));
    machine.prints(&["fleet", "report"]);
    wrapped
}

fn inventory(fleet: &Fleet, machine: &Home) -> Value {
    let members = fleet.admin.json(&["fleet", "ls", "--format", "json"]);
    let rows = members["members"].as_array().unwrap().clone();
    rows.into_iter().find(|row| row["member"] == machine.id()).unwrap()["inventory"].clone()
}

#[test]
fn an_admin_sees_which_version_runs_where_and_in_what_machines_differ() {
    let Some(fleet) = Fleet::start() else { return };
    let (one, other) = (fleet.member("machine"), fleet.member("machine"));
    let first = runs(&one, "1.2.3", MANIFEST);
    let second = runs(&other, "1.2.3", MANIFEST);
    let server = inventory(&fleet, &one)["servers"][0].clone();
    assert_eq!(server["server"], "files", "{server}");
    let package = serde_json::json!({ "registry": "npm", "name": "@a/files", "version": "1.2.3" });
    assert_eq!((&server["package"], &server["running"]), (&package, &Value::Bool(true)), "{server}");
    assert_eq!(server["enforcement"]["fs"], "kernel", "{server}");
    assert_eq!(server["manifest"], inventory(&fleet, &other)["servers"][0]["manifest"]);
    assert!(fleet.admin.prints(&["fleet", "ls"]).contains("files  runs  npm:@a/files@1.2.3"));
    assert_eq!(fleet.admin.prints(&["fleet", "diff"]), "all machines run the same\n");
    drop(second.end());
    let newer = MANIFEST.replace("'read'", "'write'");
    let second = runs(&other, "1.3.0-rc.1", &newer);
    let found = fleet.admin.run(&["fleet", "diff", "--format", "json"]);
    assert_eq!(found.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let fields: Vec<&str> =
        found["differences"].as_array().unwrap().iter().map(|one| one["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["manifest", "package"], "{found}");
    let values = &found["differences"][1]["values"];
    assert_eq!(values["npm:@a/files@1.2.3"][0], one.id(), "{found}");
    assert_eq!(values["npm:@a/files@1.3.0-rc.1"][0], other.id(), "{found}");
    drop((first.end(), second.end()));
}
