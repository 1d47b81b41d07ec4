//! Statements that clients of databases are given: what they lose.

use super::effects::Seen;
use crate::reader::Simple;

const CLIENTS: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "cqlsh",
    "clickhouse-client",
    "duckdb",
    "sqlcmd",
    "sqlplus",
    "pgcli",
    "mycli",
    "litecli",
    "usql",
    "cockroach",
    "bq",
    "snowsql",
    "trino",
    "presto",
    "impala-shell",
    "beeline",
    "wrangler",
    "db2",
    "isql",
    "rman",
    "turso",
];
const LOSES: &[&str] = &[
    "drop table",
    "drop database",
    "drop schema",
    "drop keyspace",
    "drop index",
    "drop view",
    "drop user",
    "drop role",
    "drop column",
    "drop owned",
    "drop function",
    "drop trigger",
    "truncate ",
    "drop materialized",
    "delete noprompt",
    "delete backup",
];
/// Statements that switch a protection off, or end what others do.
const WEAKENS: &[&str] = &[
    "disable row level security",
    "no force row level",
    "disable trigger",
    "set ssl = off",
    "set general_log",
];
const STOPS: &[&str] = &["pg_terminate_backend", "pg_cancel_backend", "kill connection"];

/// Statements with which a server runs programs, or reads and writes files.
const RUNS: &[&str] =
    &["from program", "to program", "into outfile", "into dumpfile", "load_file(", "load_extension("];

/// Tables and columns in which servers keep passwords.
const SECRETS: &[&str] = &["pg_authid", "pg_shadow", "mysql.user", "authentication_string"];
/// Statements that give privileges away.
const GAINS: &[&str] = &[" superuser", "grant all", "with grant option", " createrole"];

/// Notes what the statements of a command lose.
pub(super) fn note(seen: &mut Seen<'_>, simple: &Simple, program: &str, arguments: &[String]) {
    if !CLIENTS.contains(&program) {
        return;
    }
    let texts = arguments.iter().map(String::as_str).chain(simple.input.as_deref());
    for text in texts {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let text = words.join(" ");
        for statement in text.split(';') {
            if RUNS.iter().any(|words| statement.contains(words)) {
                seen.note("runs(injected)", statement.trim());
            }
            if SECRETS.iter().any(|name| statement.contains(name)) {
                seen.note("reads(secret)", statement.trim());
            }
            if GAINS.iter().any(|words| statement.contains(words)) {
                seen.note("gains(privilege)", statement.trim());
            }
            if WEAKENS.iter().any(|words| statement.contains(words)) {
                seen.note("weakens(protection)", statement.trim());
            }
            if STOPS.iter().any(|words| statement.contains(words)) {
                seen.note("stops(services)", statement.trim());
            }
            if loses(statement.trim()) {
                seen.note("loses(data)", statement.trim());
            }
        }
    }
}

fn loses(statement: &str) -> bool {
    let all = |start: &str| statement.contains(start) && !statement.contains(" where ");
    LOSES.iter().any(|words| statement.contains(words))
        || all("delete from ")
        || (all("update ") && statement.contains(" set "))
}
