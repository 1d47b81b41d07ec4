//! What was checked is what is opened, whatever happens to links meanwhile.

use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bailiwick_guard::{Output, Registry, Session, Tool, ToolContext, ToolError, WriteMode};
use bailiwick_journal::Options;
use bailiwick_manifest::caveats::{Caveats, Scope};
use serde_json::{Value, json};

use bailiwick_testkit::journal::Dir;

const TRIES: usize = 100_000;

/// Runs a closure with the context of its call.
struct With<F>(F);

impl<F: Fn(&ToolContext) -> Result<Value, ToolError> + Send + Sync + 'static> Tool for With<F> {
    fn name(&self) -> &str {
        "with"
    }

    fn schema(&self) -> Value {
        json!({})
    }

    async fn invoke(&self, _: Value, context: &ToolContext) -> Result<Output, ToolError> {
        (self.0)(context).map(Output::from)
    }
}

/// Runs `body` under a grant to read and write `root` only.
fn under(
    root: &str,
    body: impl Fn(&ToolContext) -> Result<Value, ToolError> + Send + Sync + 'static,
) -> Result<Value, ToolError> {
    let dir = Dir::new();
    let options = Options { queue: 1 << 18, ..Options::default() };
    let registry =
        Registry::builder(dir.open("o", options), Session::new("/")).tool(With(body)).build().unwrap();
    let scope = Scope::only([root.to_owned()]);
    let caveats = Caveats { fs_read: scope.clone(), fs_write: scope, ..Caveats::top() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(registry.dispatch("with", json!({}), &caveats)).map(Output::into_value)
}

/// A granted directory with a file, and a secret outside it.
struct Scene {
    _temp: tempfile::TempDir,
    granted: PathBuf,
    secret: PathBuf,
}

fn scene() -> Scene {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    let (granted, secret) = (base.join("granted"), base.join("secret"));
    for (directory, text) in [(&granted, "public"), (&secret, "SECRET")] {
        std::fs::create_dir_all(directory.join("sub")).unwrap();
        std::fs::write(directory.join("sub/file"), text).unwrap();
    }
    Scene { _temp: temp, granted, secret }
}

#[test]
fn opening_follows_links_only_as_far_as_is_granted() {
    let scene = scene();
    symlink("sub/file", scene.granted.join("inside")).unwrap();
    symlink(scene.secret.join("sub/file"), scene.granted.join("outside")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        scene.granted.join("pipe"),
        rustix::fs::Mode::from_bits_retain(0o600),
    )
    .unwrap();
    let granted = scene.granted.clone();
    let codes = under(granted.clone().to_str().unwrap(), move |context| {
        let at = |name: &str| granted.join(name).to_str().unwrap().to_owned();
        let read = |name: &str| context.open_read(&at(name)).map_or_else(|error| error.code(), |_| "ok");
        let write = |name: &str, mode| {
            context.open_write(&at(name), mode).map_or_else(|error| error.code(), |_| "ok")
        };
        Ok(json!([
            read("sub/file"),
            read("inside"),
            read("sub"),
            read("outside"),
            read("../secret/sub/file"),
            read("pipe"),
            read("none"),
            write("new", WriteMode::CreateNew),
            write("new", WriteMode::CreateNew),
            write("new", WriteMode::Append),
            write("outside", WriteMode::Replace),
            write("../secret/new", WriteMode::CreateNew),
            write("pipe", WriteMode::Modify),
            write("inside", WriteMode::Replace),
        ]))
    });
    let expected = json!([
        "ok",
        "ok",
        "ok",
        "read-not-granted",
        "read-not-granted",
        "path-not-a-file",
        "tool-failed",
        "ok",
        "tool-failed",
        "ok",
        "write-not-granted",
        "write-not-granted",
        "path-not-a-file",
        "ok",
    ]);
    assert_eq!(codes.unwrap(), expected);
    assert_eq!(std::fs::read_to_string(scene.secret.join("sub/file")).unwrap(), "SECRET");
    assert_eq!(
        std::fs::read_to_string(scene.granted.join("sub/file")).unwrap(),
        "",
        "emptied through the inner link"
    );
}

/// Swaps `granted/door` between a directory inside and a link to the secret, as fast as it can.
fn swapping(scene: &Scene, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let (door, aside, link) =
        (scene.granted.join("door"), scene.granted.join("aside"), scene.granted.join("link"));
    std::fs::create_dir(&door).unwrap();
    std::fs::write(door.join("file"), "public").unwrap();
    symlink(scene.secret.join("sub"), &link).unwrap();
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::fs::rename(&door, &aside).unwrap();
            std::fs::rename(&link, &door).unwrap();
            std::fs::rename(&door, &link).unwrap();
            std::fs::rename(&aside, &door).unwrap();
        }
    })
}

#[test]
fn swapping_links_never_leads_out() {
    let scene = scene();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = swapping(&scene, Arc::clone(&stop));
    let file = scene.granted.join("door/file").to_str().unwrap().to_owned();
    let opened = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&opened);
    let result = under(scene.granted.to_str().unwrap(), move |context| {
        for attempt in 0..TRIES {
            if attempt % 2 == 0 {
                let Ok(mut open) = context.open_read(&file) else { continue };
                let mut text = String::new();
                open.read_to_string(&mut text).unwrap();
                assert_ne!(text, "SECRET", "escaped at {attempt}");
            } else {
                let Ok(mut open) = context.open_write(&file, WriteMode::Modify) else { continue };
                open.write_all(b"public").unwrap();
            }
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Value::Null)
    });
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    result.unwrap();
    assert_eq!(std::fs::read_to_string(scene.secret.join("sub/file")).unwrap(), "SECRET");
    assert!(opened.load(Ordering::Relaxed) > 100, "the race was run: {opened:?} opens succeeded");
}
