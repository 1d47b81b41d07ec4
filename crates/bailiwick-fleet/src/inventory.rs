//! What machines say that they run, compared: the servers in which they differ.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::protocol::{InventoryServer, MemberRow};

/// A server that is not the same on all machines that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The server.
    pub server: String,
    /// In what: `package`, `surface`, `manifest`, or an axis of enforcement as `enforcement.files`.
    pub field: String,
    /// Each value with the machines that have it; a machine that says nothing has `-`.
    pub values: BTreeMap<String, BTreeSet<String>>,
}

/// Where machines differ, by server and field.
///
/// # Examples
/// ```
/// use bailiwick_fleet::inventory::differences;
///
/// assert!(differences(&[]).is_empty());
/// ```
#[must_use]
pub fn differences(members: &[MemberRow]) -> Vec<Difference> {
    let mut found: BTreeMap<(String, String), BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let axes: BTreeSet<&String> =
        servers(members).flat_map(|(_, server)| server.enforcement.keys()).collect();
    for (machine, server) in servers(members) {
        for (field, value) in fields(server, &axes) {
            let values = found.entry((server.server.clone(), field)).or_default();
            values.entry(value).or_default().insert(machine.to_owned());
        }
    }
    let differing = found.into_iter().filter(|(_, values)| values.len() > 1);
    differing.map(|((server, field), values)| Difference { server, field, values }).collect()
}

fn servers(members: &[MemberRow]) -> impl Iterator<Item = (&str, &InventoryServer)> {
    members.iter().flat_map(|member| {
        let inventory = member.inventory.iter();
        inventory.flat_map(|report| report.servers.iter().map(|server| (member.member.as_str(), server)))
    })
}

fn fields(server: &InventoryServer, axes: &BTreeSet<&String>) -> Vec<(String, String)> {
    let none = || "-".to_owned();
    let mut fields = vec![
        ("package".to_owned(), server.package.as_ref().map_or_else(none, ToString::to_string)),
        ("surface".to_owned(), server.surface.map_or_else(none, |hash| hash.to_string())),
        ("manifest".to_owned(), server.manifest.map_or_else(none, |hash| hash.to_string())),
    ];
    let level = |axis: &String| server.enforcement.get(axis).cloned().unwrap_or_else(none);
    fields.extend(axes.iter().map(|axis| (format!("enforcement.{axis}"), level(axis))));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hash;
    use crate::entry::Role;
    use crate::protocol::InventoryReport;

    fn machine(name: &str, servers: Vec<InventoryServer>) -> MemberRow {
        let report = InventoryReport {
            time_ms: 1,
            version: "0.1.0".to_owned(),
            log_size: 0,
            log_root: Hash::sha256(b""),
            servers,
        };
        let labels = BTreeSet::new();
        MemberRow {
            member: name.to_owned(),
            role: Role::Machine,
            name: name.to_owned(),
            labels,
            seen_ms: None,
            inventory: Some(report),
        }
    }

    fn server(name: &str, manifest: &[u8], files: Option<&str>) -> InventoryServer {
        InventoryServer {
            server: name.to_owned(),
            package: None,
            surface: None,
            manifest: Some(Hash::sha256(manifest)),
            enforcement: files.map(|level| ("files".to_owned(), level.to_owned())).into_iter().collect(),
            running: true,
        }
    }

    #[test]
    fn only_what_differs_is_listed_with_who_has_what() {
        let members = [
            machine("m1", vec![server("a", b"1", Some("kernel")), server("b", b"1", Some("kernel"))]),
            machine("m2", vec![server("a", b"2", Some("kernel"))]),
            machine("m3", vec![server("a", b"1", None)]),
        ];
        let found = differences(&members);
        let fields: Vec<&str> = found.iter().map(|difference| difference.field.as_str()).collect();
        assert_eq!(fields, ["enforcement.files", "manifest"]);
        assert!(found.iter().all(|difference| difference.server == "a"));
        let with =
            |at: usize, value: &str| found[at].values[value].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!((with(0, "-"), with(0, "kernel")), (vec!["m3"], vec!["m1", "m2"]));
        assert_eq!(with(1, &Hash::sha256(b"2").to_string()), ["m2"]);
    }
}
