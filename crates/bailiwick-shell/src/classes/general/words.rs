//! Verbs, flags and names by which commands of any program are judged.

/// Programs whose input is text for their output and nothing else.
#[rustfmt::skip]
pub(super) const PASS_ON: &[&str] = &[
    "cat", "head", "tail", "sort", "uniq", "wc", "nl", "tr", "cut", "column", "fold", "fmt", "paste", "tac", "rev", "less", "more",
    "base64", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "jq", "yq", "diff", "cmp", "comm", "expand", "iconv",
];
/// Programs whose subcommands, targets and test names are a project's own affair.
#[rustfmt::skip]
pub(super) const DEVELOPERS: &[&str] = &[
    "git", "hg", "svn", "jj", "sl", "npm", "pnpm", "yarn", "bun", "npx", "bunx", "pip", "pip3", "pipx", "uv",
    "poetry", "pdm", "rye", "hatch", "conda", "mamba", "micromamba", "cargo", "rustup", "go", "gem", "bundle",
    "composer", "make", "gmake", "cmake", "ninja", "meson", "bazel", "buck2", "mvn", "gradle", "gradlew", "sbt",
    "lein", "mill", "mix", "rebar3", "rails", "rake", "ember", "ng", "nx", "turbo", "dotnet", "pytest", "jest",
    "mocha", "vitest", "rspec", "phpunit", "ctest", "tox", "nox", "playwright", "cypress", "just", "task",
    "mise", "asdf", "direnv", "pre-commit", "alembic", "flask", "brew", "apt", "apt-get", "dnf", "apk",
    "pacman", "nix", "opam", "stack", "cabal", "nvm", "tmux", "screen", "code", "jupyter", "openssl",
    "bailiwick", "tr", "claude", "codex", "gemini", "opencode",
];
/// Words behind which stand names that the project has given.
#[rustfmt::skip]
pub(super) const OWN_NAMES: &[&str] = &[
    "run", "test", "exec", "x", "script", "task", "help", "build", "generate", "g", "new", "init", "logs",
    "search",
];
/// Verbs that only look: what follows them names things.
#[rustfmt::skip]
pub(super) const LOOKS: &[&str] = &[
    "get", "list", "ls", "describe", "show", "status", "explain", "info", "view", "top", "wait", "diff", "plan",
    "validate", "lint", "template", "render", "inspect", "history", "ps", "version", "doctor", "count", "watch",
];
/// Flags with which nothing happens yet.
#[rustfmt::skip]
pub(super) const ONLY_SHOWS: &[&str] = &[
    "--dry-run", "--dryrun", "--help", "-h", "--check", "--simulate", "--noop", "--what-if",
];

/// Verbs that destroy, alone or joined to a noun: `delete-stack`, `sites:delete`.
#[rustfmt::skip]
pub(super) const DESTROYS: &[&str] = &[
    "delete", "destroy", "purge", "obliterate", "wipe", "erase", "undeploy", "terminate", "decommission",
    "deprovision", "deleteall", "rmr", "nuke", "teardown", "uninstall",
];
/// Verbs that destroy where they are not to ask back.
#[rustfmt::skip]
pub(super) const REMOVES: &[&str] = &[
    "rm", "remove", "drop", "down", "reset", "clear", "revoke", "evict", "prune", "format",
];
/// Flags that say so.
#[rustfmt::skip]
pub(super) const UNASKED: &[&str] = &[
    "-y", "--yes", "-f", "--force", "-force", "--auto-approve", "--no-prompt", "--no-input", "--confirm", "-r",
    "-R", "--recursive", "--all", "--purge", "--cascade", "-skipTrash", "--stage", "--prod", "--production",
    "--quiet",
];
/// Flags that destroy, whatever the verb.
#[rustfmt::skip]
pub(super) const DESTROYING: &[&str] = &[
    "--purge", "--destroy", "--wipe", "--erase", "--delete-all", "--remove", "-skipTrash", "--delete",
];
#[rustfmt::skip]
pub(super) const PUBLISHES: &[&str] = &[
    "publish", "unpublish", "deploy", "upload", "yank", "rollback",
];
#[rustfmt::skip]
pub(super) const STOPS: &[&str] = &[
    "drain", "shutdown", "poweroff", "reboot", "halt", "hibernate",
];

/// What secrets are called among words.
#[rustfmt::skip]
pub(super) const SECRETS: &[&str] = &[
    "password", "passwd", "secret", "token", "credential", "private-key", "privkey", "apikey", "api-key",
    "recovery-key", "kubeconfig",
];
/// Words with which they are only named, or changed.
#[rustfmt::skip]
pub(super) const SECRETS_UNSEEN: &[&str] = &[
    "list", "ls", "status", "rotate", "revoke", "set", "rm", "delete", "remove", "lint", "validate", "scan",
];
#[rustfmt::skip]
pub(super) const SHOWS_SECRETS: &[&str] = &[
    "--show-secrets", "--show-secret", "--show-token", "--show-tokens", "--show-passwords", "--show-password",
    "--reveal", "--unmask", "--plaintext", "--print-join-command", "--with-decryption", "--show-sensitive",
    "--show-keys",
];

/// Verbs with which something is taken from an address.
#[rustfmt::skip]
pub(super) const INSTALLS: &[&str] = &[
    "install", "add", "try-repo", "plugin", "pull", "apply", "create", "copy", "tool", "bootstrap", "extension",
    "wrapper", "update", "upgrade", "load", "import", "restore",
];
/// Programs for which such an address is where to send, to look or to clone from.
#[rustfmt::skip]
pub(super) const ADDRESSES: &[&str] = &[
    "git", "hg", "svn", "jj", "curl", "wget", "http", "https", "xh", "gh", "glab", "docker", "podman", "claude",
    "codex", "gemini", "opencode", "bailiwick", "psql", "mongorestore", "hey", "wrk", "k6", "jira",
];
/// Short names of places to take code from.
#[rustfmt::skip]
pub(super) const FORGES: &[&str] = &[
    "gh:", "gl:", "github:", "gitlab:", "bitbucket:", "git+",
];

/// Verbs that give rights, and what gives power.
#[rustfmt::skip]
pub(super) const GIVES: &[&str] = &[
    "add", "addmembers", "set", "setuser", "grant", "create", "write", "bind", "assign", "attach", "promote",
];
#[rustfmt::skip]
pub(super) const POWERS: &[&str] = &[
    "acl", "acls", "policy", "policies", "role", "roles", "rolebinding", "permission", "permissions", "scc",
    "rbac", "member", "members", "admin", "admins", "administrator", "administrators", "superuser", "sudoers",
    "owner", "owners",
];
/// Flags with which something is taken without a look at who made it.
#[rustfmt::skip]
pub(super) const UNCHECKED: &[&str] = &[
    "--allow-untrusted", "--no-verify-ssl", "--no-check-certificate", "--skip-verify", "--skip-tls-verify",
    "--insecure-skip-tls-verify", "--insecure-skip-verify", "--nosignature", "--no-gpg-check",
    "--no-gpg-checks", "--disable-verification", "--dangerously-skip-permissions", "--yolo",
    "--ignore-signature",
];
/// Programs that look into libraries or make them.
#[rustfmt::skip]
pub(super) const BINARIES: &[&str] = &[
    "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "lld", "mold", "ar", "nm", "readelf", "objdump",
    "strip", "strings", "ldd", "patchelf", "file", "gdb", "lldb", "size", "otool", "install_name_tool",
    "codesign", "adb", "docker", "podman", "zip", "unzip", "7z", "scp", "rustc", "swiftc", "zig", "emcc",
    "wasm-ld", "sha256sum", "du", "wc", "cmp", "diff", "xxd",
];
/// Programs that carry words to people.
#[rustfmt::skip]
pub(super) const MESSENGERS: &[&str] = &[
    "gh", "glab", "jira", "tea", "notify-send", "wall", "write", "mail", "mailx", "say", "espeak", "zenity",
    "dialog", "whiptail", "slackcat", "curl", "http", "xh", "psql", "mysql", "sqlite3", "redis-cli", "mongosh",
    "figlet", "cowsay",
];

/// Ways in which code of any language starts a command.
#[rustfmt::skip]
pub(super) const STARTS: &[&str] = &[
    "system(", "system (", "system \"", "(system ", "\" system", "shell(", "shell \"", "(shell ", "/shell ",
    "Sys.command", "popen(", "os:cmd", "exec(", "execute_process", "%pipe%", "syscmd(", "%(", "run-command",
];

/// Variables by their ends that load what they name.
#[rustfmt::skip]
pub(super) const LOADING: &[&str] = &[
    "FLAGS", "HOOKS", "HOOK", "MODULES", "PRELOAD", "PLUGINS", "PLUGIN", "MAKEFILES", "PROFILER", "LINKER",
    "WRAPPER", "RUNNER", "_OPTS", "_OPTIONS", "LIBRARY_PATH", "COMPILER_PATH", "EXEC_PREFIX",
];
