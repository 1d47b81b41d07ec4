//! The port that a command would have used on a host whose name it was refused.
//!
//! Only the name was asked for, so the port is not known. A grant for one port is smaller than one for all of them, and
//! lifts the refusal of the name: if the command uses another port, its next refusal names that one.

use std::ffi::OsString;
use std::path::Path;

/// Programs that speak neither HTTP nor TLS at first, or plain HTTP where no scheme is given: their usual port.
const USUAL: [(&[&str], u16); 6] = [
    (&["curl", "wget", "http"], 80),
    (&["ssh", "scp", "sftp", "sshfs"], 22),
    (&["psql", "pg_dump", "pg_restore"], 5432),
    (&["mysql", "mysqldump", "mariadb"], 3306),
    (&["redis-cli", "valkey-cli"], 6379),
    (&["mongosh", "mongo"], 27017),
];

/// What a URL's scheme says.
const SCHEMES: [(&str, u16); 7] = [
    ("http", 80),
    ("ssh", 22),
    ("git", 9418),
    ("ftp", 21),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("redis", 6379),
];

/// The port in the arguments that name the host; else the program's usual one; else that of HTTPS.
pub(super) fn likely_port(host: &str, command: &[OsString]) -> u16 {
    let arguments = || command.iter().skip(1).filter_map(|argument| argument.to_str());
    let program = command.first().map(Path::new).and_then(|program| program.file_name()?.to_str());
    let usual = USUAL.iter().find(|(names, _)| program.is_some_and(|program| names.contains(&program)));
    let in_arguments = arguments().find_map(|argument| port_in(argument, host, usual.map(|(_, port)| *port)));
    let speaks_http = |port: &u16| *port == 80;
    in_arguments.or_else(|| usual.map(|(_, port)| *port).filter(|port| !speaks_http(port))).unwrap_or(443)
}

/// The port that an argument says for the host, if it names it.
fn port_in(argument: &str, host: &str, usual: Option<u16>) -> Option<u16> {
    let at = argument.to_ascii_lowercase().find(host)?;
    let (before, rest) = (argument.get(..at)?, argument.get(at + host.len()..)?);
    let whole = !before.ends_with(|letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter))
        && !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || "-.".contains(letter));
    if !whole {
        return None;
    }
    // As bash has it: `/dev/tcp/host/port`.
    let mark = if before.ends_with("/dev/tcp/") { '/' } else { ':' };
    let digits = rest.strip_prefix(mark).map(|rest| rest.split(|letter: char| !letter.is_ascii_digit()));
    let written = digits.and_then(|mut parts| parts.next()?.parse().ok());
    let scheme = before.rsplit_once("://").map(|(scheme, _)| scheme);
    let scheme = scheme.map(|text| text.rsplit(|letter: char| !letter.is_ascii_alphabetic()).next());
    let by_scheme = match scheme {
        Some(scheme) => {
            let known = SCHEMES.iter().find(|(name, _)| Some(*name) == scheme);
            Some(known.map_or(443, |(_, port)| *port))
        }
        // `git@host:path` is over SSH.
        None if before.ends_with('@') && rest.starts_with(':') => Some(22),
        None => usual,
    };
    written.or(by_scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_what_the_command_says_or_its_usual_one() {
        for (command, port) in [
            ("curl https://a.test/x", 443),
            ("curl http://a.test/x", 80),
            ("curl http://user@a.test:8080/x", 8080),
            ("curl A.test", 80),
            ("curl a.test:81/x", 81),
            ("curl https://x.a.test", 443),
            ("npm install left-pad", 443),
            ("npm --registry=http://a.test:4873/ install x", 4873),
            ("git clone git@a.test:owner/name", 22),
            ("git clone ssh://git@a.test/name", 22),
            ("git clone https://a.test/name", 443),
            ("/usr/bin/psql -h a.test", 5432),
            ("psql postgresql://a.test:5433/db", 5433),
            ("redis-cli -h a.test", 6379),
            ("python3 x.py", 443),
            ("bash -c exec\t3<>/dev/tcp/a.test/6000;\texit", 6000),
        ] {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(likely_port("a.test", &words), port, "{command}");
        }
    }
}
