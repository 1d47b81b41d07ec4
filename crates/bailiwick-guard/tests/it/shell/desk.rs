//! A directory to work in, a secret beside it, and a registry with the shell.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bailiwick_guard::tools::Shell;
use bailiwick_guard::{Call, Grant, News, Output, Registry, Session, ToolError};
use bailiwick_journal::Options;
use bailiwick_manifest::caveats::{Caveats, Scope};
use serde_json::{Value, json};

use bailiwick_testkit::journal::Dir;

pub(super) struct Desk {
    dir: Dir,
    temp: tempfile::TempDir,
    pub(super) caveats: Caveats,
    variables: Vec<(String, String)>,
}

impl Desk {
    /// The directory may be read and written, and these programs started.
    pub(super) fn new(programs: &[&str]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        for directory in ["work/sub", "outside"] {
            std::fs::create_dir_all(temp.path().join(directory)).unwrap();
        }
        for file in ["work/a.txt", "work/b.txt", "work/.hidden", "work/sub/c.txt", "outside/secret"] {
            std::fs::write(temp.path().join(file), format!("{file}\n")).unwrap();
        }
        let work = || Scope::only([temp.path().join("work").to_str().unwrap().to_owned()]);
        let exec = Scope::only(programs.iter().map(|name| (*name).to_owned()));
        let (fs_read, fs_write) = (work(), work());
        let caveats =
            Caveats { exec, fs_read, fs_write, net: Scope::none(), env: Scope::none(), ..Caveats::top() };
        Self { dir: Dir::new(), temp, caveats, variables: Vec::new() }
    }

    pub(super) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn work(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join("work")
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join("outside")
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.dir.path()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.work().join(name).symlink_metadata().is_ok()
    }

    pub(super) fn registry(&self) -> Registry {
        let session = Session::new(self.work()).with_env(self.variables.clone());
        let session = session.with_home(self.work().join("sub"));
        Registry::builder(self.dir.open("s", Options::default()), session).tool(Shell).build().unwrap()
    }

    pub(super) fn call(&self, args: Value) -> Result<Value, ToolError> {
        let registry = self.registry();
        let grant = registry.mint_grant(&self.caveats).unwrap();
        call(&registry, &grant, args)
    }

    pub(super) fn script(&self, text: &str) -> Result<Value, ToolError> {
        self.call(json!({ "cmd": text }))
    }

    /// The script's output; it has to succeed.
    pub(super) fn says(&self, text: &str) -> String {
        let out = self.script(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(out["exit_code"], 0, "{text}: {out}");
        out["stdout"].as_str().unwrap().to_owned()
    }

    /// Why the script was refused.
    pub(super) fn refuses(&self, text: &str) -> String {
        match self.script(text) {
            Err(error) => error.to_string(),
            Ok(out) => panic!("{text}: {out}"),
        }
    }

    /// The result, and what was heard before it.
    pub(super) fn hears(&self, args: Value) -> (Value, Vec<News>) {
        let registry = self.registry();
        let grant = registry.mint_grant(&self.caveats).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&heard);
        let permit = registry.gate().authorize(Call { tool: "shell".into(), args }, &grant, None).unwrap();
        let permit = permit.heard_by(Arc::new(move |news| into.lock().unwrap().push(news)));
        let out = runtime().block_on(permit.run(&Shell)).unwrap().into_result().unwrap().into_value();
        let news = heard.lock().unwrap().clone();
        (out, news)
    }
}

pub(super) fn call(registry: &Registry, grant: &Grant, args: Value) -> Result<Value, ToolError> {
    runtime().block_on(registry.dispatch("shell", args, grant)).map(Output::into_value)
}

pub(super) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// How many processes of the host have this text in their command line.
pub(super) fn processes(mark: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let marked = |path: &Path| {
        std::fs::read(path.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
    };
    all.filter(|entry| marked(&entry.path())).count()
}
