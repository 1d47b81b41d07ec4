//! Downloaded code that runs: through a pipe, or in two steps by way of a file; and private data on its way out.

use super::effects::Seen;
use super::table::has_flag;
use super::{code, variables};
use crate::reader::{self, Simple};

const FETCHERS: &[&str] = &[
    "curl",
    "wget",
    "aria2c",
    "http",
    "https",
    "xh",
    "lynx",
    "w3m",
    "links",
    "fetch",
    "axel",
    "httpie",
    "scp",
    "sftp",
    "gh",
    "dig",
    "nslookup",
    "nc",
    "ncat",
    "netcat",
    "telnet",
    "ftp",
    "lftp",
    "rclone",
    "gsutil",
    "ssh",
    "aws",
    "ipfs",
    "redis-cli",
    "mosquitto_sub",
    "xclip",
    "xsel",
    "wl-paste",
    "pbpaste",
];
const UNPACKERS: &[&str] =
    &["tar", "unzip", "7z", "bsdtar", "unrar", "gunzip", "gzip", "zcat", "cpio", "unxz", "xz"];
/// Programs other than shells and interpreters that run or install the file they are given.
const RUNNERS: &[&str] = &[
    "source",
    ".",
    "java",
    "dpkg",
    "rpm",
    "apt",
    "apt-get",
    "dnf",
    "yum",
    "pip",
    "pip3",
    "npm",
    "installer",
    "make",
    "patch",
    "psql",
    "mysql",
    "at",
    "batch",
    "crontab",
    "gcc",
    "cc",
    "g++",
    "clang",
    "docker",
    "wine",
    "flatpak",
    "snap",
    "insmod",
    "kubectl",
    "apt-key",
    "gpg",
    "code",
];
const NETWORK: &[&str] = &[
    "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "openssl", "ssh", "http", "https", "xh",
    "websocat", "mail", "sendmail", "mutt", "ftp", "tftp", "whois", "finger",
];
/// Programs that print much that is private.
const PRIVATE: &[&str] =
    &["pg_dump", "pg_dumpall", "mysqldump", "mongodump", "history", "ps", "last", "sqlite3"];

impl Seen<'_> {
    pub(super) fn fetched(&mut self, number: usize, simple: &Simple, program: &str, arguments: &[String]) {
        let from_network = self.is_fed(number, 0, &|one| fetches(one));
        let interprets = reader::is_shell(program) || code::is_interpreter(program);
        let own_code = arguments
            .iter()
            .any(|word| matches!(word.as_str(), "-c" | "-e" | "-m" | "-p" | "-n" | "-ne" | "-pe"))
            || matches!(program, "awk" | "gawk" | "mawk" | "nawk" | "jq") && !has_flag(&["-f"], arguments);
        let takes_input = RUNNERS.contains(&program) && arguments.iter().any(|word| word == "-")
            || program == "docker" && arguments.iter().any(|word| matches!(word.as_str(), "load" | "import"))
            || matches!(program, "vim" | "nvim" | "vi") && has_flag(&["-S", "-u"], arguments)
            || matches!(program, "at" | "batch" | "patch" | "psql" | "mysql" | "crontab")
            || program == "parallel" && arguments.iter().all(|word| word.starts_with('-'));
        if from_network && (interprets && !own_code || takes_input) {
            self.note("runs(downloaded)", &simple.plain);
        }
        if NETWORK.contains(&program) && self.is_fed(number, 0, &|one| is_private(one)) {
            self.note("sends(private)", &simple.plain);
        }
        if UNPACKERS.contains(&program)
            && (from_network || arguments.iter().any(|word| self.is_downloaded(simple, word)))
        {
            self.unpacked = true;
        }
        self.ran_download(simple, program, arguments, interprets);
        self.keep_downloads(simple, program, arguments, from_network);
    }

    /// Whether something that runs was downloaded before.
    fn ran_download(&mut self, simple: &Simple, program: &str, arguments: &[String], interprets: bool) {
        let by_name = simple.path.contains('/') && self.is_downloaded(simple, &simple.path)
            || self
                .downloaded
                .iter()
                .any(|file| file.contains("/bin/") && file.ends_with(&format!("/{program}")));
        let unpacked = self.unpacked
            && (simple.path.starts_with("./")
                || interprets && arguments.iter().any(|word| word.ends_with(".sh")));
        let installs = arguments
            .first()
            .is_some_and(|word| matches!(word.as_str(), "install" | "add" | "load" | "import"));
        let given = match (interprets, installs || RUNNERS.contains(&program)) {
            (true, _) => scripts_among(arguments),
            (false, true) => arguments,
            (false, false) => &[],
        };
        let given = given.iter().any(|word| self.is_downloaded(simple, word));
        let loaded = simple.set.iter().any(|(_, value)| self.is_downloaded(simple, value));
        if by_name || unpacked || given || loaded {
            self.note("runs(downloaded)", &simple.plain);
        }
    }

    fn is_downloaded(&self, simple: &Simple, word: &str) -> bool {
        let base = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
        self.path(simple, word).is_some_and(|path| {
            self.downloaded.contains(&path)
                || self.earlier.downloaded.contains(&path)
                // The directory may have changed in between: the same name counts.
                || self.downloaded.iter().any(|file| base(file) == base(&path) && !base(&path).is_empty())
        })
    }

    fn keep_downloads(&mut self, simple: &Simple, program: &str, arguments: &[String], from_network: bool) {
        let mut files: Vec<String> = Vec::new();
        if fetches(simple) || from_network {
            files.extend(simple.writes.iter().cloned());
        }
        if from_network && program == "tee" {
            files.extend(arguments.iter().filter(|word| !word.starts_with('-')).cloned());
        }
        if from_network && matches!(program, "gcc" | "cc" | "clang" | "g++") {
            files.extend(super::table::flag_values(&["-o"], arguments).into_iter().map(str::to_owned));
        }
        match program {
            "curl" | "wget" | "aria2c" | "http" | "https" | "axel" | "xh" => {
                let flags = ["-o", "-O", "--output", "--output-document", "--out"];
                files.extend(super::table::flag_values(&flags, arguments).into_iter().map(str::to_owned));
                let urls = arguments.iter().filter(|word| word.contains("://"));
                files.extend(urls.filter_map(|url| Some(url.rsplit('/').next()?.to_owned())));
            }
            "scp" | "rsync" | "aws" | "gsutil" | "gcloud" | "s3cmd" | "rclone" | "kubectl" => {
                let remote = arguments.iter().filter(|word| word.contains(':'));
                files.extend(remote.filter_map(|word| Some(word.rsplit(['/', ':']).next()?.to_owned())));
            }
            "mv" | "cp" | "install" | "ln"
                if arguments.iter().any(|word| self.is_downloaded(simple, word)) =>
            {
                files.extend(arguments.last().cloned());
            }
            _ => {}
        }
        for file in
            files.iter().filter(|file| !file.is_empty() && !file.starts_with('-') && *file != "/dev/null")
        {
            let path = self.path(simple, file);
            self.downloaded.extend(path);
        }
    }

    /// Whether a command reads what such a command prints, directly or through others.
    fn is_fed(&self, number: usize, depth: usize, by: &impl Fn(&Simple) -> bool) -> bool {
        let commands = &self.reading.commands;
        let Some(simple) = commands.get(number) else { return false };
        depth < 16
            && simple.fed_by.clone().any(|from| {
                from != number && (commands.get(from).is_some_and(by) || self.is_fed(from, depth + 1, by))
            })
    }
}

/// The words of an interpreter up to its script: what follows that are data. A word behind a flag may be the flag's.
fn scripts_among(arguments: &[String]) -> &[String] {
    let is_flag = |at: usize| arguments.get(at).is_some_and(|word| word.starts_with('-') || word == "run");
    let script = (0..arguments.len()).find(|&at| !is_flag(at) && (at == 0 || !is_flag(at - 1)));
    arguments.get(..=script.unwrap_or(usize::MAX)).unwrap_or(arguments)
}

/// Whether a command prints or stores what it gets from the network.
fn fetches(simple: &Simple) -> bool {
    let program = simple.words.first().map(String::as_str).unwrap_or_default();
    match program {
        "gh" => simple.words.iter().any(|word| matches!(word.as_str(), "api" | "gist")),
        "git" => simple.words.iter().any(|word| word.starts_with("--remote")),
        "rsync" => simple.words.iter().any(|word| word.contains(':')),
        "busybox" => simple.words.iter().any(|word| word == "wget"),
        _ => FETCHERS.contains(&program),
    }
}

fn is_private(simple: &Simple) -> bool {
    let program = simple.words.first().map(String::as_str).unwrap_or_default();
    let bundle = program == "git" && simple.words.iter().any(|word| word == "bundle");
    variables::dumps(simple) || PRIVATE.contains(&program) || bundle
}
