//! The servers, how they are started and what is asked of them.

use std::path::{Path, PathBuf};

use super::client::Era;

/// What a server is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Node,
    Python,
}

/// One server.
pub(super) struct Server {
    /// Its template.
    pub(super) name: &'static str,
    pub(super) language: Language,
    pub(super) args: &'static [&'static str],
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// Tools, and their arguments as JSON.
    pub(super) calls: &'static [(&'static str, &'static str)],
    /// Tools that are not called: what they answer depends on the host or on the client.
    pub(super) uncalled: &'static [&'static str],
    /// Whether answers have times, sizes of directories or hashes in them: numbers are not compared then.
    pub(super) has_numbers: bool,
    /// What it does bare and must not do under its template.
    pub(super) forbidden: Option<Forbidden>,
    pub(super) eras: &'static [Era],
    /// Where its program lies among the servers; by its name if empty.
    pub(super) place: &'static str,
}

/// A call that reaches for what the template does not grant.
pub(super) struct Forbidden {
    pub(super) args: &'static [&'static str],
    pub(super) variables: &'static [(&'static str, &'static str)],
    pub(super) call: (&'static str, &'static str),
    /// What the answer has where it worked.
    pub(super) shows: &'static str,
}

pub(super) const NODE: Server = Server {
    name: "",
    language: Language::Node,
    args: &[],
    variables: &[],
    calls: &[],
    uncalled: &[],
    has_numbers: false,
    forbidden: None,
    eras: &[Era::Legacy],
    place: "",
};
pub(super) const PYTHON: Server = Server { language: Language::Python, eras: BOTH, ..NODE };
const BOTH: &[Era] = &[Era::Legacy, Era::Modern];

pub(super) const SERVERS: [Server; 8] = [
    Server {
        name: "filesystem",
        args: &["{w}"],
        calls: &[
            ("read_file", r#"{"path":"{w}/a.txt"}"#),
            ("read_text_file", r#"{"path":"{w}/a.txt","head":1}"#),
            ("read_media_file", r#"{"path":"{w}/a.txt"}"#),
            ("read_multiple_files", r#"{"paths":["{w}/a.txt","{w}/sub/b.txt"]}"#),
            ("list_directory", r#"{"path":"{w}/sub"}"#),
            ("list_directory_with_sizes", r#"{"path":"{w}/sub"}"#),
            ("search_files", r#"{"path":"{w}","pattern":"**/*.txt"}"#),
            ("write_file", r#"{"path":"{w}/sub/new.txt","content":"text"}"#),
            ("edit_file", r#"{"path":"{w}/sub/new.txt","edits":[{"oldText":"text","newText":"other"}]}"#),
            ("move_file", r#"{"source":"{w}/sub/new.txt","destination":"{w}/sub/moved.txt"}"#),
            ("create_directory", r#"{"path":"{w}/made"}"#),
            ("directory_tree", r#"{"path":"{w}","excludePatterns":[".git"]}"#),
            ("get_file_info", r#"{"path":"{w}/a.txt"}"#),
            ("list_allowed_directories", "{}"),
            ("read_text_file", r#"{"path":"{out}/secret"}"#),
        ],
        has_numbers: true,
        forbidden: Some(Forbidden {
            args: &["{out}"],
            variables: &[],
            call: ("read_text_file", r#"{"path":"{out}/secret"}"#),
            shows: "hush",
        }),
        ..NODE
    },
    Server {
        name: "memory",
        variables: &[("MEMORY_FILE_PATH", "{home}/.local/share/mcp-memory/memory.jsonl")],
        calls: &[
            (
                "create_entities",
                r#"{"entities":[{"name":"Anna","entityType":"person","observations":["kind"]}]}"#,
            ),
            ("add_observations", r#"{"observations":[{"entityName":"Anna","contents":["tall"]}]}"#),
            ("create_relations", r#"{"relations":[{"from":"Anna","to":"Anna","relationType":"knows"}]}"#),
            ("read_graph", "{}"),
            ("search_nodes", r#"{"query":"Anna"}"#),
            ("open_nodes", r#"{"names":["Anna"]}"#),
            ("delete_observations", r#"{"deletions":[{"entityName":"Anna","observations":["tall"]}]}"#),
            ("delete_relations", r#"{"relations":[{"from":"Anna","to":"Anna","relationType":"knows"}]}"#),
            ("delete_entities", r#"{"entityNames":["Anna"]}"#),
        ],
        forbidden: Some(Forbidden {
            args: &[],
            variables: &[("MEMORY_FILE_PATH", "{out}/memory.jsonl")],
            call: ("create_entities", r#"{"entities":[{"name":"Anna","entityType":"p","observations":[]}]}"#),
            shows: "Anna",
        }),
        ..NODE
    },
    Server {
        name: "everything",
        calls: &[
            ("echo", r#"{"message":"hello"}"#),
            ("get-sum", r#"{"a":2,"b":40}"#),
            ("get-tiny-image", "{}"),
            ("get-structured-content", r#"{"location":"New York"}"#),
            ("get-annotated-message", r#"{"messageType":"error","includeImage":false}"#),
            ("get-resource-links", r#"{"count":2}"#),
            ("get-resource-reference", r#"{"resourceType":"Text","resourceId":1}"#),
            ("gzip-file-as-resource", r#"{"name":"a","data":"data:text/plain;base64,aGVsbG8="}"#),
            ("trigger-long-running-operation", r#"{"duration":0.1,"steps":1}"#),
            ("toggle-simulated-logging", "{}"),
            ("toggle-subscriber-updates", "{}"),
        ],
        uncalled: &["get-env", "simulate-research-query"],
        has_numbers: true,
        forbidden: Some(Forbidden { args: &[], variables: &[], call: ("get-env", "{}"), shows: "hush" }),
        ..NODE
    },
    Server {
        name: "sequential-thinking",
        calls: &[(
            "sequentialthinking",
            r#"{"thought":"one","nextThoughtNeeded":true,"thoughtNumber":1,"totalThoughts":2}"#,
        )],
        ..NODE
    },
    Server {
        name: "time",
        calls: &[
            ("get_current_time", r#"{"timezone":"Europe/Zurich"}"#),
            ("convert_time", r#"{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}"#),
        ],
        has_numbers: true,
        ..PYTHON
    },
    Server {
        name: "git",
        args: &["--repository", "{w}"],
        calls: &[
            ("git_status", r#"{"repo_path":"{w}"}"#),
            ("git_diff_unstaged", r#"{"repo_path":"{w}"}"#),
            ("git_log", r#"{"repo_path":"{w}","max_count":3}"#),
            ("git_add", r#"{"repo_path":"{w}","files":["a.txt"]}"#),
            ("git_diff_staged", r#"{"repo_path":"{w}"}"#),
            ("git_commit", r#"{"repo_path":"{w}","message":"two"}"#),
            ("git_diff", r#"{"repo_path":"{w}","target":"HEAD~1"}"#),
            ("git_show", r#"{"repo_path":"{w}","revision":"HEAD~1"}"#),
            ("git_reset", r#"{"repo_path":"{w}"}"#),
            ("git_create_branch", r#"{"repo_path":"{w}","branch_name":"other"}"#),
            ("git_branch", r#"{"repo_path":"{w}","branch_type":"local"}"#),
            ("git_checkout", r#"{"repo_path":"{w}","branch_name":"other"}"#),
        ],
        has_numbers: true,
        forbidden: Some(Forbidden {
            args: &[],
            variables: &[],
            call: ("git_log", r#"{"repo_path":"{out}/other"}"#),
            shows: "elsewhere",
        }),
        ..PYTHON
    },
    // What it fetches is compared where there is a network: see the tests of screening.
    Server { name: "fetch", uncalled: &["fetch"], ..PYTHON },
    Server {
        name: "sqlite",
        eras: &[Era::Legacy],
        args: &["--db-path", "{w}/data/app.db"],
        calls: &[
            ("create_table", r#"{"query":"CREATE TABLE t (a INTEGER)"}"#),
            ("write_query", r#"{"query":"INSERT INTO t VALUES (42)"}"#),
            ("read_query", r#"{"query":"SELECT a FROM t"}"#),
            ("list_tables", "{}"),
            ("describe_table", r#"{"table_name":"t"}"#),
            ("append_insight", r#"{"insight":"one"}"#),
        ],
        forbidden: Some(Forbidden {
            args: &["--db-path", "{out}/app.db"],
            variables: &[],
            call: ("create_table", r#"{"query":"CREATE TABLE t (a INTEGER)"}"#),
            shows: "success",
        }),
        ..PYTHON
    },
];

impl Server {
    pub(super) fn entry(&self, directory: &Path) -> PathBuf {
        if !self.place.is_empty() {
            return directory.join(self.place);
        }
        let bin = match self.language {
            Language::Node => "node/node_modules/.bin".to_owned(),
            Language::Python => format!("{}/bin", self.environment()),
        };
        directory.join(bin).join(format!("mcp-server-{}", self.name))
    }

    /// The virtual environment that it lies in: one server wants an older protocol library than the others.
    fn environment(&self) -> &'static str {
        if self.name == "sqlite" { "sqlite" } else { "python" }
    }

    pub(super) fn interpreter(&self, directory: &Path) -> PathBuf {
        match self.language {
            Language::Node => PathBuf::from("/usr/bin/node"),
            Language::Python => directory.join(self.environment()).join("bin/python"),
        }
    }

    pub(super) fn code(&self, directory: &Path) -> PathBuf {
        match self.language {
            Language::Node => directory.join("node/node_modules/planted.js"),
            Language::Python => directory.join(self.environment()).join("planted.py"),
        }
    }

    /// Whether two answers say the same.
    pub(super) fn is_same(&self, bare: &str, confined: &str) -> bool {
        let shown = |answer: &str| if self.has_numbers { without_numbers(answer) } else { answer.to_owned() };
        !confined.is_empty() && shown(bare) == shown(confined)
    }
}

/// A text with every word left out that holds a number and is made of hexadecimal digits, or of a time as ISO 8601 writes it.
fn without_numbers(text: &str) -> String {
    let is_number = |word: &str| {
        word.chars().all(|own| own.is_ascii_hexdigit() || "TZ".contains(own))
            && word.contains(|own: char| own.is_ascii_digit())
    };
    text.split(|own: char| !own.is_alphanumeric())
        .filter(|word| !is_number(word))
        .collect::<Vec<_>>()
        .join(" ")
}

impl Language {
    pub(super) fn run(self, text: &str) -> [String; 2] {
        let flag = match self {
            Self::Node => "-e",
            Self::Python => "-c",
        };
        [flag.to_owned(), text.to_owned()]
    }

    /// What no template grants.
    pub(super) fn acts(self, secret: &Path, code: &Path, port: u16) -> [(&'static str, String); 3] {
        let (secret, code) = (secret.display(), code.display());
        match self {
            Self::Node => [
                ("read", format!("require('fs').readFileSync('{secret}'); console.log('done')")),
                ("write code", format!("require('fs').writeFileSync('{code}', ''); console.log('done')")),
                (
                    "connect",
                    format!(
                        "require('net').connect({port}, '127.0.0.1', () => {{ console.log('done'); process.exit() }})"
                    ),
                ),
            ],
            Self::Python => [
                ("read", format!("open('{secret}').read(); print('done')")),
                ("write code", format!("open('{code}', 'w'); print('done')")),
                (
                    "connect",
                    format!(
                        "import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('done')"
                    ),
                ),
            ],
        }
    }
}
