//! A server's command, split: the package that a launcher would fetch and run, and the server's own arguments.
//!
//! Only what a launcher would fetch from the user's registry by name is known. Whatever takes code from elsewhere (an
//! alias, a repository, an archive, a directory, a second package) leaves the server unknown, with the reason.

use std::ffi::OsString;
use std::path::Path;

/// Where packages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Registry {
    /// The registry that npm is set up for.
    Npm,
    /// The index that pip is set up for.
    Pypi,
}

impl Registry {
    /// How identities begin.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
        }
    }
}

/// What a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerCommand {
    /// A package of a registry, through a launcher.
    Package(PackageCall),
    /// A program that is there.
    Program,
}

/// A package of a registry, and how it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageCall {
    /// Where it comes from.
    pub registry: Registry,
    /// Its name there.
    pub name: String,
    /// The version, range or tag that is asked for; empty is the newest.
    pub version: String,
    /// The program of it that is asked for, if it was named.
    pub program: Option<String>,
    /// The server's own arguments.
    pub arguments: Vec<OsString>,
}

impl PackageCall {
    /// What the server is known by.
    #[must_use]
    pub fn identity(&self) -> String {
        format!("{}:{}", self.registry.as_str(), self.name)
    }
}

/// Why it is not known what a command starts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCommand {
    /// Nothing of it can be held.
    #[error("{0}")]
    Refused(String),
    /// It takes code from where no registry vouches for it.
    #[error("{0}")]
    Unknown(String),
}

/// What options a launcher has before the package.
struct Grammar {
    registry: Registry,
    /// Options without a value that change nothing here.
    switches: &'static [&'static str],
    /// Options whose value is the package.
    package: &'static [&'static str],
    /// Whether words behind the package belong to the launcher until `--`.
    until_dashes: bool,
}

const NPX: Grammar = Grammar {
    registry: Registry::Npm,
    switches: &["-y", "--yes", "-q", "--quiet", "-s", "--silent", "--prefer-online", "--prefer-offline"],
    package: &["-p", "--package"],
    until_dashes: false,
};
const UVX: Grammar = Grammar {
    registry: Registry::Pypi,
    switches: &["-q", "--quiet", "-v", "--verbose", "--no-progress", "--isolated", "--native-tls"],
    package: &["--from"],
    until_dashes: false,
};
const PIPX: Grammar = Grammar {
    registry: Registry::Pypi,
    switches: &["-q", "--quiet", "--verbose", "--no-cache"],
    package: &["--spec"],
    until_dashes: false,
};

const CONTAINERS: [&str; 3] = ["docker", "podman", "nerdctl"];

/// Splits a server's command.
///
/// # Errors
/// Why what it starts is not known.
///
/// # Examples
/// ```
/// use bailiwick_store::{ServerCommand, split_command};
///
/// let words = ["npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "notes"].map(Into::into);
/// let Ok(ServerCommand::Package(call)) = split_command(&words) else { panic!() };
/// assert_eq!(call.identity(), "npm:@modelcontextprotocol/server-filesystem");
/// assert_eq!((call.version.as_str(), call.arguments), ("2026.8.31", vec!["notes".into()]));
/// assert!(split_command(&["npx", "-y", "github:owner/server"].map(Into::into)).is_err());
/// ```
pub fn split_command(words: &[OsString]) -> Result<ServerCommand, UnknownCommand> {
    let Some((program, rest)) = words.split_first() else { return Ok(ServerCommand::Program) };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let first = rest.first().and_then(|word| word.to_str()).unwrap_or_default();
    let skipped = |count: usize| rest.get(count..).unwrap_or_default();
    if CONTAINERS.contains(&name) {
        return Err(UnknownCommand::Refused(format!(
            "`{name}` has a service outside of this sandbox start the server, which no sandbox here can hold; name the \
             server's own command instead"
        )));
    }
    let (grammar, rest) = match (name, first) {
        ("npx" | "bunx" | "pnpx", _) => (NPX, rest),
        ("npm", "exec" | "x") => (Grammar { until_dashes: true, ..NPX }, skipped(1)),
        ("pnpm" | "yarn", "dlx") | ("bun", "x") => (NPX, skipped(1)),
        ("uvx", _) => (UVX, rest),
        ("uv", "tool") if rest.get(1).is_some_and(|word| word == "run") => (UVX, skipped(2)),
        ("uv", "run") => return Err(UnknownCommand::Refused(without_uv_run(skipped(1)))),
        ("pipx", "run") => (PIPX, skipped(1)),
        _ => return Ok(ServerCommand::Program),
    };
    split(name, &grammar, rest).map(ServerCommand::Package)
}

/// What to write instead of `uv run`, which changes a project's environment before it starts anything from it.
fn without_uv_run(words: &[OsString]) -> String {
    let mut project = "";
    let mut module = "";
    let mut rest = words.iter().map(|word| word.to_str().unwrap_or_default());
    let program = loop {
        match rest.next() {
            Some("--directory" | "--project") => project = rest.next().unwrap_or_default(),
            Some("-m" | "--module") => module = "-m ",
            Some(word) if word.starts_with('-') => {}
            program => break program.unwrap_or_default(),
        }
    };
    let place =
        if project.is_empty() { String::new() } else { format!("{}/", project.trim_end_matches('/')) };
    let is_script = Path::new(program).extension().is_some_and(|ending| ending == "py");
    let program = match (is_script, module) {
        (true, _) => format!("python {place}{program}"),
        (false, "-m ") => format!("python -m {program}"),
        (false, _) => program.to_owned(),
    };
    let line: Vec<String> =
        std::iter::once(format!("{place}.venv/bin/{program}")).chain(rest.map(str::to_owned)).collect();
    format!(
        "`uv run` may change a project's environment and fetch code before it starts anything; run `uv sync` once, and name the \
         program in the environment: `{}`",
        line.join(" ")
    )
}

fn unknown(why: &str) -> UnknownCommand {
    UnknownCommand::Unknown(why.to_owned())
}

fn split(launcher: &str, grammar: &Grammar, words: &[OsString]) -> Result<PackageCall, UnknownCommand> {
    let mut package: Option<String> = None;
    let mut rest = words.iter();
    let named = loop {
        let Some(word) = rest.next() else { return Err(unknown("the command names no package")) };
        let word = word.to_str().ok_or_else(|| unknown("a word of the command is not text"))?;
        let (option, value) =
            word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
        match word {
            "--" => continue,
            _ if grammar.switches.contains(&word) => continue,
            _ if grammar.package.contains(&option) => {
                let value = value.or_else(|| rest.next().and_then(|word| word.to_str()));
                let value = value.ok_or_else(|| unknown("an option of the launcher has no value"))?;
                if package.replace(value.to_owned()).is_some() {
                    return Err(unknown("the command brings more than one package"));
                }
            }
            _ if word.starts_with('-') => {
                return Err(UnknownCommand::Unknown(format!(
                    "`{launcher} {option}` may take code from elsewhere, or is not known here"
                )));
            }
            _ => break word,
        }
    };
    let arguments = own_arguments(grammar, rest.as_slice())?;
    let (spec, program) = package.map_or((named.to_owned(), None), |spec| (spec, Some(named.to_owned())));
    if program.as_ref().is_some_and(|program| !is_plain(program)) {
        return Err(unknown("the program of the package is not a name"));
    }
    let (name, version) = match grammar.registry {
        Registry::Npm => npm_spec(&spec)?,
        Registry::Pypi => pypi_spec(&spec)?,
    };
    Ok(PackageCall { registry: grammar.registry, name, version, program, arguments })
}

fn own_arguments(grammar: &Grammar, words: &[OsString]) -> Result<Vec<OsString>, UnknownCommand> {
    let is_dashes = |word: &OsString| word == "--";
    match words.iter().position(is_dashes).filter(|_| grammar.until_dashes) {
        Some(at) => {
            Ok([words.get(..at), words.get(at + 1..)].into_iter().flatten().flatten().cloned().collect())
        }
        None if grammar.until_dashes && words.iter().any(|word| word.to_string_lossy().starts_with('-')) => {
            Err(unknown(
                "write `--` before the arguments of the server: `npm exec` takes options of its own there",
            ))
        }
        None => Ok(words.to_vec()),
    }
}

fn is_plain(name: &str) -> bool {
    let sign = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=214).contains(&name.len()) && name.chars().all(sign) && !name.starts_with(['.', '-'])
}

fn npm_spec(spec: &str) -> Result<(String, String), UnknownCommand> {
    let scoped = spec.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    let (scope, rest) = scoped.map_or((None, spec), |(scope, rest)| (Some(scope), rest));
    let (name, version) = rest.split_once('@').unwrap_or((rest, ""));
    let lower = |text: &str| is_plain(text) && !text.contains(|c: char| c.is_ascii_uppercase());
    if !lower(name) || scope.is_some_and(|scope| !lower(scope)) || !is_version(version) {
        return Err(UnknownCommand::Unknown(format!(
            "`{spec}` is not a package of the registry by its name"
        )));
    }
    let name = scope.map_or_else(|| name.to_owned(), |scope| format!("@{scope}/{name}"));
    Ok((name, if version == "latest" { String::new() } else { version.to_owned() }))
}

fn is_version(version: &str) -> bool {
    version.len() <= 64 && version.chars().all(|c| c.is_ascii_alphanumeric() || ".-+^~*".contains(c))
}

fn pypi_spec(spec: &str) -> Result<(String, String), UnknownCommand> {
    let (name, version) = spec.split_once("==").or_else(|| spec.split_once('@')).unwrap_or((spec, ""));
    if !is_plain(name) || !is_version(version) {
        return Err(UnknownCommand::Unknown(format!("`{spec}` is not a package of the index by its name")));
    }
    Ok((pypi_name(name), if version == "latest" { String::new() } else { version.to_owned() }))
}

/// A name as the index compares it.
pub(crate) fn pypi_name(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Result<ServerCommand, UnknownCommand> {
        split_command(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    fn shown(line: &str) -> String {
        match split(line) {
            Ok(ServerCommand::Package(call)) => format!(
                "{}@{} {} {:?}",
                call.identity(),
                call.version,
                call.program.unwrap_or_default(),
                call.arguments
            ),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn launchers_name_packages() {
        assert_eq!(shown("npx -y @a/b@1.2.3 x -y"), r#"npm:@a/b@1.2.3  ["x", "-y"]"#);
        assert_eq!(shown("/usr/bin/npx --yes b"), "npm:b@  []");
        assert_eq!(shown("npx -y -p @a/b@^1 tool x"), r#"npm:@a/b@^1 tool ["x"]"#);
        assert_eq!(shown("npm exec -y -- b x"), r#"npm:b@  ["x"]"#);
        assert_eq!(shown("npm exec b -- --x"), r#"npm:b@  ["--x"]"#);
        assert_eq!(shown("pnpm dlx b@latest"), "npm:b@  []");
        assert_eq!(shown("bunx b"), "npm:b@  []");
        assert_eq!(shown("uvx mcp_server.time --local x"), r#"pypi:mcp-server-time@  ["--local", "x"]"#);
        assert_eq!(shown("uvx --from a==1.0 b"), "pypi:a@1.0 b []");
        assert_eq!(shown("uv tool run a@2"), "pypi:a@2  []");
        assert_eq!(shown("pipx run --spec a==1 b"), "pypi:a@1 b []");
    }

    #[test]
    fn what_no_registry_vouches_for_is_unknown() {
        for line in [
            "npx -y github:a/b",
            "npx -y a@npm:b",
            "npx -y ./b",
            "npx -y https://x.test/b.tgz",
            "npx -y a@https://x.test/b.tgz",
            "npx --registry=https://x.test b",
            "npx -p a -p b c",
            "npx -c b",
            "npx -y a/b",
            "npm exec b --x",
            "npx -y",
            "uvx --with c a",
            "uvx --index-url https://x.test a",
            "uvx git+https://x.test/a",
            "uvx --from git+https://x.test/a b",
            "pipx run --spec ./a b",
        ] {
            assert!(matches!(split(line), Err(UnknownCommand::Unknown(_))), "{line}: {:?}", split(line));
        }
        assert!(matches!(split("docker run -i mcp/time"), Err(UnknownCommand::Refused(_))));
        for (line, instead) in [
            ("uv run notes-server --db x", "`.venv/bin/notes-server --db x`"),
            ("uv run --directory /srv/p/ server.py", "`/srv/p/.venv/bin/python /srv/p/server.py`"),
            ("uv run --project p -m notes -v", "`p/.venv/bin/python -m notes -v`"),
            ("uv run --frozen -- notes-server", "`.venv/bin/notes-server`"),
        ] {
            let Err(UnknownCommand::Refused(why)) = split(line) else { panic!("{line}") };
            assert!(why.contains(instead), "{line}: {why}");
        }
        for line in ["node server.js", "npm start", "/opt/mcp-server-time", "python3 -m mcp_server_time"] {
            assert_eq!(split(line), Ok(ServerCommand::Program), "{line}");
        }
    }
}
