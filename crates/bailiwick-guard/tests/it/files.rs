//! The tools for files, as a model calls them.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bailiwick_guard::{
    Output, Registry, RegistryBuilder, Required, Session, Tool, ToolContext, ToolError, tools,
};
use bailiwick_journal::format::RecordKind;
use bailiwick_journal::{Filter, Options};
use bailiwick_manifest::caveats::Caveats;
use bailiwick_policy::capability::CapabilitySet;
use serde_json::{Value, json};

use bailiwick_testkit::journal::Dir;

mod swapped;

/// A tool under a ceiling of capability lines.
pub(crate) struct Under<T>(pub(crate) T, pub(crate) CapabilitySet);

impl<T: Tool> Tool for Under<T> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema(&self) -> Value {
        self.0.schema()
    }

    fn required(&self) -> Required {
        Required::ceiling(self.1.authority().clone())
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Output, ToolError> {
        self.0.invoke(args, context).await
    }
}

/// A directory to play in; grants name it `{}`.
struct Scene {
    _temp: tempfile::TempDir,
    base: PathBuf,
    journal: Dir,
    calls: AtomicUsize,
}

impl Scene {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        Self { _temp: temp, base, journal: Dir::new(), calls: AtomicUsize::new(0) }
    }

    fn with(self, files: &[(&str, &str)]) -> Self {
        for (name, text) in files {
            let path = self.base.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        self
    }

    fn at(&self, name: &str) -> String {
        self.base.join(name).to_str().unwrap().to_owned()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.base.join(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(&self.base)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Calls a tool under these lines. `path` in the arguments is below the scene unless absolute.
    fn call(&self, tool: impl Tool, lines: &[&str], args: Value) -> Result<Value, ToolError> {
        let name = tool.name().to_owned();
        let registry = self.builder().tool(Under(tool, self.lines(lines))).build().unwrap();
        run(&registry, &name, args)
    }

    fn builder(&self) -> RegistryBuilder {
        let session = format!("files-{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let journal = self.journal.open(&session, Options::default());
        Registry::builder(journal, Session::new(&self.base))
    }

    fn lines(&self, lines: &[&str]) -> CapabilitySet {
        let base = self.base.to_str().unwrap();
        let lines: Vec<String> = lines.iter().map(|line| line.replace("{}", base)).collect();
        CapabilitySet::new(lines.iter().map(String::as_str)).unwrap()
    }

    fn records(&self, kind: RecordKind) -> Vec<String> {
        let records = self.journal.records(Filter::default());
        let of_kind = records.iter().filter_map(|record| record.event()).filter(|event| event.kind() == kind);
        of_kind.map(|event| event.capability().unwrap_or_default().to_owned()).collect()
    }
}

fn run(registry: &Registry, name: &str, args: Value) -> Result<Value, ToolError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(registry.dispatch(name, args, &Caveats::top())).map(Output::into_value)
}

const READ: &[&str] = &["fs:read:{}"];
const BOTH: &[&str] = &["fs:read,write:{}"];

fn said(result: Result<Value, ToolError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_file_is_read_by_windows_of_lines() {
    let scene = Scene::new().with(&[("a", "one\ntwo\nthree\nfour"), ("empty", "")]);
    let read = |args: Value| scene.call(tools::FsRead, READ, args).unwrap();
    let all = read(json!({ "path": "a" }));
    assert_eq!((&all["content"], &all["count"]), (&json!("one\ntwo\nthree\nfour"), &json!(4)));
    assert_eq!(
        (&all["truncated"], &all["next_offset"], &all["size"]),
        (&json!(false), &Value::Null, &json!(18))
    );
    let middle = read(json!({ "path": "a", "offset": 2, "limit": 2 }));
    assert_eq!((&middle["content"], &middle["next_offset"]), (&json!("two\nthree\n"), &json!(4)));
    assert_eq!(middle["truncated"], true);
    let last = read(json!({ "path": "a", "offset": 4, "limit": 9 }));
    assert_eq!((&last["content"], &last["truncated"]), (&json!("four"), &json!(false)));
    let beyond = read(json!({ "path": "a", "offset": 99 }));
    assert_eq!(
        (&beyond["content"], &beyond["count"], &beyond["truncated"]),
        (&json!(""), &json!(0), &json!(false))
    );
    assert_eq!(read(json!({ "path": "empty" }))["content"], "");
    let cut = read(json!({ "path": "a", "max_bytes": 5 }));
    assert_eq!((&cut["content"], &cut["line_cut"]), (&json!("one\nt"), &json!(true)));
    assert_eq!((&cut["truncated"], &cut["next_offset"]), (&json!(true), &json!(2)));
    let whole = read(json!({ "path": "a", "max_bytes": 4 }));
    assert_eq!(
        (&whole["content"], &whole["line_cut"], &whole["truncated"]),
        (&json!("one\n"), &json!(false), &json!(true))
    );
}

#[test]
fn what_is_not_text_is_said_and_read_as_base64() {
    let scene = Scene::new().with(&[("letters", "aé")]);
    std::fs::write(scene.base.join("bin"), [1, 2, 0, 255]).unwrap();
    std::fs::write(scene.base.join("latin"), b"caf\xe9\n").unwrap();
    let read = |args: Value| scene.call(tools::FsRead, READ, args);
    let text = said(read(json!({ "path": "bin" })));
    assert!(text.contains("`bin` is not text (byte 2 is NUL)") && text.contains("base64"), "{text}");
    let bytes = read(json!({ "path": "bin", "encoding": "base64", "offset": 1, "limit": 2 })).unwrap();
    assert_eq!((&bytes["content"], &bytes["next_offset"]), (&json!("AgA="), &json!(3)));
    let rest = read(json!({ "path": "bin", "encoding": "base64", "offset": 3 })).unwrap();
    assert_eq!((&rest["content"], &rest["truncated"]), (&json!("/w=="), &json!(false)));
    let latin = read(json!({ "path": "latin" })).unwrap();
    assert_eq!((&latin["content"], &latin["lossy"]), (&json!("caf\u{fffd}\n"), &json!(true)));
    let half = read(json!({ "path": "letters", "max_bytes": 2 })).unwrap();
    assert_eq!((&half["content"], &half["lossy"]), (&json!("a"), &json!(false)), "no half letter");
}

#[test]
fn huge_files_cost_what_is_returned() {
    let scene = Scene::new();
    let sparse = std::fs::File::create(scene.base.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let many = "0123456789abcdef\n".repeat(500_000);
    std::fs::write(scene.base.join("many"), &many).unwrap();
    std::fs::write(scene.base.join("one-line"), "x".repeat(3_000_000)).unwrap();
    let read = |args: Value| scene.call(tools::FsRead, READ, args);
    assert!(said(read(json!({ "path": "sparse" }))).contains("not text"));
    let end = read(json!({ "path": "sparse", "encoding": "base64", "offset": (1_u64 << 40) - 3 })).unwrap();
    assert_eq!((&end["content"], &end["truncated"]), (&json!("AAAA"), &json!(false)));
    let first = read(json!({ "path": "many" })).unwrap();
    assert_eq!(first["content"].as_str().unwrap().len(), 1024 * 1024);
    assert_eq!((&first["truncated"], &first["size"]), (&json!(true), &json!(many.len())));
    let far = read(json!({ "path": "many", "offset": 499_999 })).unwrap();
    assert_eq!((&far["count"], &far["truncated"]), (&json!(2), &json!(false)));
    let line = read(json!({ "path": "one-line" })).unwrap();
    assert_eq!((&line["line_cut"], &line["truncated"]), (&json!(true), &json!(true)));
}

#[test]
fn arguments_are_read_strictly() {
    let scene = Scene::new().with(&[("a", "x")]);
    let read = |args: Value| said(scene.call(tools::FsRead, READ, args));
    assert!(read(json!({ "path": "a", "lines": 3 })).contains("there is no argument `lines`"));
    assert!(read(json!({ "path": "a", "offset": 0 })).contains("lines count from 1"));
    assert!(
        read(json!({ "path": "a", "max_bytes": 1_u64 << 40 }))
            .contains("`max_bytes` is a whole number from 1")
    );
    assert!(read(json!({ "path": "a", "encoding": "utf-16" })).contains("`encoding` is one of text, base64"));
    assert!(read(json!({})).contains("`path` is missing"));
    assert!(read(json!({ "path": "." })).contains("is a directory; `fs_list`"));
    assert!(read(json!({ "path": "none" })).contains("cannot open `none`"));
}

#[test]
fn what_is_not_granted_is_denied_with_the_smallest_grant() {
    let scene = Scene::new().with(&[("in/a", "x"), ("out/secret", "SECRET")]);
    symlink(scene.at("out/secret"), scene.base.join("in/link")).unwrap();
    let secret = scene.at("out/secret");
    let only_in = &["fs:read,write:{}/in"];
    let grant = |verb: &str| format!("granting `fs:{verb}:{secret}`");
    for path in [&*secret, "in/link", "in/../out/secret"] {
        let text = said(scene.call(tools::FsRead, only_in, json!({ "path": path })));
        assert!(text.starts_with("denied: read of") && text.contains(&grant("read")), "{text}");
        let text = said(scene.call(tools::FsWrite, only_in, json!({ "path": path, "content": "x" })));
        assert!(text.starts_with("denied: write of") && text.contains(&grant("write")), "{text}");
        let edits = json!([{ "old": "SECRET", "new": "x" }]);
        let text = said(scene.call(tools::FsEdit, only_in, json!({ "path": path, "edits": edits })));
        assert!(text.starts_with("denied: read of"), "{text}");
        let text = said(scene.call(tools::FsSearch, only_in, json!({ "path": path, "pattern": "S" })));
        assert!(text.starts_with("denied: read of"), "{text}");
    }
    let text = said(scene.call(tools::FsList, only_in, json!({ "path": "out" })));
    assert!(text.contains(&format!("granting `fs:read:{}`", scene.at("out"))), "{text}");
    assert_eq!(scene.text("out/secret"), "SECRET");
}

#[test]
fn pipes_and_devices_are_not_files() {
    let scene = Scene::new();
    let mode = rustix::fs::Mode::from_bits_retain(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.base.join("pipe"), mode).unwrap();
    let codes = |path: &str, lines: &[&str]| {
        let content = json!({ "path": path, "content": "x" });
        let append = json!({ "path": path, "content": "x", "mode": "append" });
        [
            scene.call(tools::FsRead, lines, json!({ "path": path })).unwrap_err().code(),
            scene.call(tools::FsWrite, lines, content).unwrap_err().code(),
            scene.call(tools::FsWrite, lines, append).unwrap_err().code(),
            scene.call(tools::FsSearch, lines, json!({ "path": path, "pattern": "x" })).unwrap_err().code(),
        ]
    };
    assert_eq!(codes("pipe", BOTH), ["path-not-a-file"; 4]);
    let [reads, writes] = ["read-not-granted", "write-not-granted"];
    assert_eq!(codes("/dev/null", &["fs:read,write:/dev/null"]), [reads, writes, writes, reads]);
    let found = scene.call(tools::FsSearch, BOTH, json!({ "path": ".", "pattern": "x" })).unwrap();
    assert_eq!(found["files"], 0, "a walk opens no pipe");
}

#[test]
fn a_file_is_replaced_in_one_step_and_keeps_its_mode() {
    let scene = Scene::new().with(&[("a", "old")]);
    std::fs::set_permissions(scene.base.join("a"), std::fs::Permissions::from_mode(0o4640)).unwrap();
    let before = std::fs::metadata(scene.base.join("a")).unwrap();
    let open = std::fs::File::open(scene.base.join("a")).unwrap();
    let done = scene.call(tools::FsWrite, BOTH, json!({ "path": "a", "content": "new" })).unwrap();
    assert_eq!(done, json!({ "path": "a", "bytes": 3, "created": false, "atomic": true }));
    let after = std::fs::metadata(scene.base.join("a")).unwrap();
    assert_ne!(before.ino(), after.ino(), "a reader that had it open still reads the old one");
    assert_eq!(std::io::read_to_string(open).unwrap(), "old");
    assert_eq!(after.mode() & 0o7777, 0o640, "the mode stays, but no rights are passed on");
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_eq!((scene.text("a"), scene.names()), ("new".to_owned(), vec!["a".to_owned()]));
}

#[test]
fn files_are_created_once_and_appended() {
    let scene = Scene::new();
    let write = |args: Value| scene.call(tools::FsWrite, BOTH, args);
    let made = write(json!({ "path": "n", "content": "1", "mode": "create" })).unwrap();
    assert_eq!((&made["created"], &made["atomic"]), (&json!(true), &json!(true)));
    let text = said(write(json!({ "path": "n", "content": "2", "mode": "create" })));
    assert!(text.contains("exists"), "{text}");
    let more =
        write(json!({ "path": "n", "content": "Mg==", "encoding": "base64", "mode": "append" })).unwrap();
    assert_eq!((&more["created"], &more["bytes"]), (&json!(false), &json!(1)));
    assert_eq!(write(json!({ "path": "m", "content": "", "mode": "append" })).unwrap()["created"], true);
    assert_eq!((scene.text("n"), scene.names()), ("12".to_owned(), vec!["m".to_owned(), "n".to_owned()]));
    assert!(said(write(json!({ "path": "n", "content": "!", "encoding": "base64" }))).contains("not base64"));
    assert!(said(write(json!({ "path": "no/such", "content": "" }))).contains("cannot"));
    assert!(said(write(json!({ "path": ".", "content": "" }))).contains("directory"));
    let mode = std::fs::metadata(scene.base.join("n")).unwrap().mode() & 0o777;
    assert_eq!(mode & !0o644, 0, "{mode:o}");
}

#[test]
fn without_leave_beside_it_a_file_is_written_in_place() {
    let scene = Scene::new().with(&[("a.txt", "old and long")]);
    let ino = std::fs::metadata(scene.base.join("a.txt")).unwrap().ino();
    let write = |lines: &[&str], args: Value| scene.call(tools::FsWrite, lines, args);
    let done = write(&["fs:write:{}/*.txt"], json!({ "path": "a.txt", "content": "new" })).unwrap();
    assert_eq!((&done["atomic"], &done["created"]), (&json!(false), &json!(false)));
    assert_eq!(
        (scene.text("a.txt"), ino),
        ("new".to_owned(), std::fs::metadata(scene.base.join("a.txt")).unwrap().ino())
    );
    let made = write(&["fs:create:{}"], json!({ "path": "b", "content": "1" })).unwrap();
    assert_eq!((&made["atomic"], &made["created"]), (&json!(false), &json!(true)));
    let again = write(&["fs:create:{}"], json!({ "path": "b", "content": "2" })).unwrap_err();
    assert_eq!((again.code(), scene.text("b")), ("write-not-granted", "1".to_owned()));
    assert_eq!(scene.names(), ["a.txt", "b"]);
}

#[test]
fn the_journal_is_written_by_no_tool() {
    let scene = Scene::new();
    drop(scene.call(tools::FsRead, READ, json!({ "path": "none" })));
    let dir = scene.journal.path();
    let file =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_file());
    let file = file.unwrap().to_str().unwrap().to_owned();
    symlink(&file, scene.base.join("link")).unwrap();
    let all = &["fs:read,write:/"];
    for path in [&*file, "link"] {
        for mode in ["replace", "append"] {
            let args = json!({ "path": path, "content": "x", "mode": mode });
            assert_eq!(scene.call(tools::FsWrite, all, args).unwrap_err().code(), "write-not-granted");
        }
    }
    assert!(scene.journal.verify().problems().next().is_none());
}

#[test]
fn a_granted_repository_opens_neither_its_hooks_nor_its_configuration() {
    let config = "[core]\n\tbare = false\n";
    let scene = || {
        Scene::new().with(&[
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", config),
            (".git/hooks/pre-commit", "#!/bin/sh\n"),
            (".git/objects/x", "x"),
            (".git/refs/x", "x"),
            (".git/description", "notes\n"),
        ])
    };
    let write = |scene: &Scene, line: &str, path: &str| {
        let args = json!({ "path": scene.at(path), "content": "changed" });
        scene.call(tools::FsWrite, &["fs:read:{}", line], args).map_err(|error| error.code())
    };
    let edit = |scene: &Scene, line: &str, path: &str, old: &str| {
        let args = json!({ "path": scene.at(path), "edits": [{ "old": old, "new": "changed" }] });
        scene.call(tools::FsEdit, &["fs:read:{}", line], args).map_err(|error| error.to_string())
    };
    for line in ["fs:write:{}/.git", "fs:write:{}/.git/**", "fs:write:{}", "fs:write:{}/**"] {
        let scene = scene();
        for path in [".git/config", ".git/hooks/pre-commit", ".git/hooks/post-merge"] {
            assert_eq!(write(&scene, line, path).unwrap_err(), "write-not-granted", "{line} {path}");
        }
        for (path, old) in [(".git/config", "bare"), (".git/hooks/pre-commit", "/bin/sh")] {
            let said = edit(&scene, line, path, old).unwrap_err();
            assert!(said.contains("must be granted by name"), "{line} {path}: {said}");
        }
        assert_eq!(scene.text(".git/config"), config, "{line}");
        assert_eq!(scene.text(".git/hooks/pre-commit"), "#!/bin/sh\n", "{line}");
    }
    // The same calls work where the file itself is named, so it was the name that held them.
    let scene = scene();
    assert!(
        write(&scene, "fs:write:{}/.git", ".git/description").is_ok(),
        "a name that runs nothing is open"
    );
    assert!(edit(&scene, "fs:write:{}/.git/config", ".git/config", "bare").is_ok());
    assert!(write(&scene, "fs:write:{}/.git/hooks", ".git/hooks/pre-commit").is_ok());
}

#[test]
fn edits_apply_all_or_none() {
    let scene = Scene::new().with(&[("a", "fn one() {}\nfn two() {}\n")]);
    let edit = |args: Value| scene.call(tools::FsEdit, BOTH, args);
    let two = json!([{ "old": "one", "new": "uno" }, { "old": "two", "new": "due" }]);
    let dry = edit(json!({ "path": "a", "edits": two, "dry_run": true })).unwrap();
    assert_eq!((&dry["written"], &dry["replaced"]), (&json!(false), &json!(2)));
    assert_eq!(scene.text("a"), "fn one() {}\nfn two() {}\n");
    let done = edit(json!({ "path": "a", "edits": two })).unwrap();
    assert_eq!(
        (&done["written"], &done["atomic"], &done["diff"]),
        (&json!(true), &json!(true), &dry["diff"])
    );
    let diff = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-fn one() {}\n-fn two() {}\n+fn uno() {}\n+fn due() {}\n";
    assert_eq!((done["diff"].as_str().unwrap(), &*scene.text("a")), (diff, "fn uno() {}\nfn due() {}\n"));
    let half = json!([{ "old": "uno", "new": "x" }, { "old": "none", "new": "y" }]);
    let text = said(edit(json!({ "path": "a", "edits": half })));
    assert!(
        text.contains("edit 2: `old` is not in the file") && text.contains("nothing was written"),
        "{text}"
    );
    let text = said(edit(json!({ "path": "a", "edits": [{ "old": "fn", "new": "x" }] })));
    assert!(text.contains("2 times"), "{text}");
    assert_eq!(scene.text("a"), "fn uno() {}\nfn due() {}\n");
    let all = edit(json!({ "path": "a", "edits": [{ "old": "fn", "new": "pub fn", "all": true }] })).unwrap();
    assert_eq!(all["replaced"], 2);
    for wrong in [json!([]), json!([{ "old": "", "new": "" }]), json!([{ "old": "x" }]), json!([{ "x": 1 }])]
    {
        assert!(edit(json!({ "path": "a", "edits": wrong })).is_err());
    }
    let read_only =
        scene.call(tools::FsEdit, READ, json!({ "path": "a", "edits": [{ "old": "uno", "new": "x" }] }));
    assert_eq!(read_only.unwrap_err().code(), "write-not-granted");
}

#[test]
fn a_directory_is_listed_in_order_with_links_as_links() {
    let scene = Scene::new().with(&[("b/inner/deep", "x"), (".hidden", "12"), ("a", "")]);
    symlink("/etc", scene.base.join("link")).unwrap();
    let list = |args: Value| scene.call(tools::FsList, READ, args).unwrap();
    let entries = json!([
        { "path": ".hidden", "kind": "file", "size": 2 },
        { "path": "a", "kind": "file", "size": 0 },
        { "path": "b", "kind": "folder" },
        { "path": "link", "kind": "link", "target": "/etc" },
    ]);
    let one = list(json!({ "path": "." }));
    assert_eq!((&one["entries"], &one["truncated"]), (&entries, &json!(false)));
    let deep = list(json!({ "path": ".", "depth": 9 }));
    let paths: Vec<_> =
        deep["entries"].as_array().unwrap().iter().map(|entry| entry["path"].clone()).collect();
    assert_eq!(json!(paths), json!([".hidden", "a", "b", "b/inner", "b/inner/deep", "link"]));
    let few = list(json!({ "path": ".", "depth": 9, "limit": 2 }));
    assert_eq!((few["entries"].as_array().unwrap().len(), &few["truncated"]), (2, &json!(true)));
    assert_eq!(few["entries"][1]["path"], "a", "the first by name");
    let exact = list(json!({ "path": ".", "depth": 9, "limit": 6 }));
    assert_eq!((exact["entries"].as_array().unwrap().len(), &exact["truncated"]), (6, &json!(false)));
    assert!(said(scene.call(tools::FsList, READ, json!({ "path": "a" }))).contains("is a file"));
}

#[test]
fn only_what_is_granted_in_a_directory_is_listed_and_searched() {
    let scene = Scene::new().with(&[
        ("a.txt", "needle"),
        ("a.key", "needle"),
        ("sub/b.txt", "needle"),
        ("sub/b.key", "needle"),
        ("shut/c.key", "needle"),
    ]);
    let lines = &["fs:read:{}/*.txt", "fs:read:{}/sub/*.txt"];
    let list = scene.call(tools::FsList, lines, json!({ "path": ".", "depth": 5 })).unwrap();
    let paths: Vec<_> =
        list["entries"].as_array().unwrap().iter().map(|entry| entry["path"].clone()).collect();
    assert_eq!(json!(paths), json!(["a.txt", "sub", "sub/b.txt"]));
    let found = scene.call(tools::FsSearch, lines, json!({ "path": ".", "pattern": "needle" })).unwrap();
    let paths: Vec<_> = found["results"].as_array().unwrap().iter().map(|hit| hit["path"].clone()).collect();
    assert_eq!(json!(paths), json!(["a.txt", "sub/b.txt"]));
    let read: Vec<_> = scene
        .records(RecordKind::CapabilityGranted)
        .into_iter()
        .filter(|what| what.starts_with("read "))
        .collect();
    assert_eq!(read, [format!("read {}", scene.at("a.txt")), format!("read {}", scene.at("sub/b.txt"))]);
    let denied = scene.call(tools::FsList, lines, json!({ "path": "shut" })).unwrap_err();
    assert_eq!(denied.code(), "read-not-granted");
    let names = scene.call(tools::FsList, &["fs:write:{}/sub"], json!({ "path": "sub" })).unwrap();
    assert_eq!(names["entries"].as_array().unwrap().len(), 2, "a grant to write shows names");
    let contents =
        scene.call(tools::FsSearch, &["fs:write:{}/sub"], json!({ "path": "sub", "pattern": "n" }));
    assert_eq!(contents.unwrap_err().code(), "read-not-granted", "but no content");
}

#[test]
fn lines_are_found_with_what_stands_around_them() {
    let scene = Scene::new().with(&[
        ("a.rs", "one\ntwo fn\nthree\nfour fn\nfive\n"),
        ("b.md", "fn\r\n"),
        ("d/c.rs", "FN\n"),
        (".git/x.rs", "fn\n"),
    ]);
    std::fs::write(scene.base.join("bin"), b"fn\0").unwrap();
    symlink(scene.base.join("a.rs"), scene.base.join("link.rs")).unwrap();
    let search = |args: Value| scene.call(tools::FsSearch, READ, args);
    let found = search(json!({ "path": ".", "pattern": r"\bfn\b", "context": 1 })).unwrap();
    let hit = |path: &str, line: u64, text: &str, before: Value, after: Value| json!({ "path": path, "line": line, "text": text, "cut": false, "before": before, "after": after });
    let expected = json!([
        hit(".git/x.rs", 1, "fn", json!([]), json!([])),
        hit("a.rs", 2, "two fn", json!(["one"]), json!(["three"])),
        hit("a.rs", 4, "four fn", json!(["three"]), json!(["five"])),
        hit("b.md", 1, "fn", json!([]), json!([])),
    ]);
    assert_eq!(found["results"], expected, "links are not followed, ignored directories are searched");
    assert_eq!(
        (&found["skipped_binary"], &found["files"], &found["truncated"]),
        (&json!(1), &json!(4), &json!(false))
    );
    let paths = |args: Value| -> Vec<String> {
        let found = search(args).unwrap();
        let hits = found["results"].as_array().unwrap().iter();
        hits.map(|hit| hit["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        paths(json!({ "path": ".", "pattern": "(?i)fn", "glob": "*.rs" })),
        [".git/x.rs", "a.rs", "a.rs", "d/c.rs"]
    );
    assert_eq!(paths(json!({ "path": ".", "pattern": "(?i)fn", "glob": "d/*.rs" })), ["d/c.rs"]);
    assert_eq!(
        paths(json!({ "path": "b.md", "pattern": "^fn$" })),
        ["b.md"],
        "one file, and a line without its end"
    );
    let one = search(json!({ "path": ".", "pattern": "fn", "max_results": 1 })).unwrap();
    assert_eq!((&one["truncated"], &one["stopped_by"]), (&json!(true), &json!("results")));
    assert!(said(search(json!({ "path": ".", "pattern": "(" }))).contains("unclosed group"));
    assert!(said(search(json!({ "path": ".", "pattern": r"(\w{1000}){1000}" }))).contains("size limit"));
    assert!(
        said(search(json!({ "path": ".", "pattern": "x", "glob": "[" }))).contains("`glob` cannot be read")
    );
}

#[test]
fn a_search_is_bounded_and_recorded_once() {
    let scene = Scene::new();
    for index in 0..200 {
        std::fs::write(scene.base.join(format!("f{index}")), "x".repeat(5000) + "\n").unwrap();
    }
    let huge = std::fs::File::create(scene.base.join("huge")).unwrap();
    huge.set_len(65 * 1024 * 1024).unwrap();
    let found = scene
        .call(tools::FsSearch, READ, json!({ "path": ".", "pattern": "x", "max_results": 150 }))
        .unwrap();
    assert_eq!(found["results"].as_array().unwrap().len(), 150);
    let text = found["results"][0]["text"].as_str().unwrap();
    assert_eq!((text.len(), &found["results"][0]["cut"]), (400, &json!(true)));
    assert_eq!(
        scene.records(RecordKind::CapabilityGranted).len(),
        1,
        "one record for the directory, none a file"
    );
    let none = scene.call(tools::FsSearch, READ, json!({ "path": ".", "pattern": "y" })).unwrap();
    assert_eq!(
        (&none["files"], &none["skipped_large"], &none["truncated"]),
        (&json!(200), &json!(1), &json!(false))
    );
}

#[test]
fn every_tool_says_what_it_takes_and_gives() {
    let scene = Scene::new();
    let journal = scene.journal.open("all", Options::default());
    let registry = tools::all(Registry::builder(journal, Session::new("/"))).build().unwrap();
    let mut names = Vec::new();
    for tool in registry.definitions() {
        names.push(tool.name.to_owned());
        if tool.name == "shell" {
            continue;
        }
        assert!(tool.description.len() > 60, "{}", tool.name);
        assert_eq!(tool.schema["additionalProperties"], false, "{}", tool.name);
        let output = tool.output.unwrap();
        let required = output["required"].as_array().unwrap();
        assert!(required.iter().all(|key| output["properties"].get(key.as_str().unwrap()).is_some()));
    }
    let files = ["shell", "fs_read", "fs_write", "fs_edit", "fs_list", "fs_search"];
    let fetch: &[&str] = if cfg!(feature = "fetch") { &["web_fetch"] } else { &[] };
    assert_eq!(names, [&files, fetch].concat());
}
