//! What a program wrote to a layer, as the kernel's overlay writes it, listed and carried over.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bailiwick_layer::{LayerError, WrittenTree, changes, commit};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};

/// A host's directory and a layer over it, made by hand.
struct World {
    dir: tempfile::TempDir,
    since: SystemTime,
    is_copy: bool,
}

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let world = Self { dir, since: SystemTime::now(), is_copy: false };
        for place in ["host", "layer", "elsewhere"] {
            fs::create_dir(world.dir.path().join(place)).unwrap();
        }
        for (name, text) in files {
            world.write(&format!("host/{name}"), text);
        }
        // What was there before was there well before.
        Self { since: SystemTime::now() + Duration::from_millis(20), ..world }.settled()
    }

    fn settled(self) -> Self {
        while SystemTime::now() < self.since {
            std::thread::yield_now();
        }
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn whiteout(&self, name: &str) {
        mknodat(CWD, self.path(name), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }

    fn tree(&self) -> WrittenTree {
        let open = |name: &str| File::open(self.path(name)).unwrap().into();
        WrittenTree {
            path: self.path("host"),
            lower: open("host"),
            upper: open("layer"),
            is_copy: self.is_copy,
            since: self.since,
        }
    }

    /// `A name`, in order.
    fn listed(&self) -> Vec<String> {
        let host = self.path("host");
        let line = |change: &bailiwick_layer::Change| {
            let name = change.path.strip_prefix(&host).unwrap().display().to_string();
            format!("{} {name}{}", change.kind.letter(), if change.is_conflict { " !" } else { "" })
        };
        changes(&self.tree()).unwrap().iter().map(line).collect()
    }

    fn commit(&self) -> Result<usize, LayerError> {
        commit(&[self.tree()], None, |_| false)
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }
}

#[test]
fn everything_that_was_written_is_listed_and_carried_over() {
    let world = World::new(&[
        ("same", "1"),
        ("changed", "1"),
        ("gone", "1"),
        ("anew/old", "1"),
        ("anew/sub/old", "1"),
    ]);
    for (name, text) in [("same", "1"), ("changed", "2"), ("new/deep/file", "3"), ("anew/sub/new", "4")] {
        world.write(&format!("layer/{name}"), text);
    }
    world.whiteout("layer/gone");
    world.whiteout("layer/never");
    symlink("/nowhere", world.path("layer/link")).unwrap();
    setxattr(world.path("layer/anew"), "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
    let listed = [
        "D anew/old",
        "D anew/sub/old",
        "A anew/sub/new",
        "M changed",
        "D gone",
        "A link",
        "A new",
        "A new/deep",
        "A new/deep/file",
    ];
    assert_eq!(world.listed(), listed, "what was only opened for writing is no change");
    assert_eq!(world.text("host/changed").as_deref(), Some("1"), "listing changes nothing");
    assert_eq!(world.commit().unwrap(), listed.len());
    assert_eq!(world.text("host/changed").as_deref(), Some("2"));
    assert_eq!(world.text("host/new/deep/file").as_deref(), Some("3"));
    assert_eq!(fs::read_link(world.path("host/link")).unwrap(), Path::new("/nowhere"));
    assert!(!world.path("host/gone").exists() && !world.path("host/anew/sub/old").exists());
    assert_eq!(world.text("host/anew/sub/new").as_deref(), Some("4"));
}

#[test]
fn what_the_host_changed_meanwhile_stops_everything() {
    let world = World::new(&[("both", "1"), ("dir/inner", "1"), ("mine", "1")]);
    world.write("layer/both", "2");
    world.write("layer/mine", "2");
    assert_eq!(world.listed(), ["M both", "M mine"], "no conflict yet");
    world.write("host/both", "other");
    assert_eq!(world.listed(), ["M both !", "M mine"]);
    assert!(matches!(world.commit(), Err(LayerError::Conflict { .. })));
    assert_eq!(world.text("host/mine").as_deref(), Some("1"), "nothing was carried over");

    let world = World::new(&[("dir/inner", "1")]);
    world.whiteout("layer/dir");
    assert_eq!(world.listed(), ["D dir"]);
    world.write("host/dir/inner", "other");
    assert_eq!(world.listed(), ["D dir !"], "a change below a removed directory counts");
    assert!(matches!(world.commit(), Err(LayerError::Conflict { .. })));
}

#[test]
fn no_link_is_followed() {
    let world = World::new(&[("dir/file", "1")]);
    world.write("elsewhere/file", "theirs");
    // On the host the directory becomes a link, after the program wrote to it.
    world.write("layer/dir/file", "2");
    fs::remove_dir_all(world.path("host/dir")).unwrap();
    symlink(world.path("elsewhere"), world.path("host/dir")).unwrap();
    assert!(world.commit().is_err());
    assert_eq!(world.text("elsewhere/file").as_deref(), Some("theirs"));

    // A link of the program's is carried over as a link, and what it leads to stays as it is.
    let world = World::new(&[("file", "1")]);
    world.write("elsewhere/file", "theirs");
    symlink(world.path("elsewhere/file"), world.path("layer/file")).unwrap();
    assert_eq!(world.commit().unwrap(), 1);
    assert!(world.path("host/file").symlink_metadata().unwrap().is_symlink());
    assert_eq!(world.text("elsewhere/file").as_deref(), Some("theirs"));
}

#[test]
fn names_that_run_code_and_special_files_stop_everything() {
    let world = World::new(&[("a", "1")]);
    world.write("layer/a", "2");
    world.write("layer/.mcp.json", "{}");
    assert!(matches!(world.commit(), Err(LayerError::RunsCode { .. })));
    assert_eq!(world.text("host/a").as_deref(), Some("1"));
    let named = world.path("host/.mcp.json");
    assert_eq!(commit(&[world.tree()], None, |path| path == named).unwrap(), 2, "granted by name");

    let world = World::new(&[("a", "1")]);
    world.write("layer/a", "2");
    mknodat(CWD, world.path("layer/fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert!(matches!(world.commit(), Err(LayerError::Special { .. })));
    assert_eq!(world.text("host/a").as_deref(), Some("1"));
}

#[test]
fn no_file_gets_a_setuid_bit_and_holes_stay_holes() {
    use std::os::unix::fs::MetadataExt as _;
    let world = World::new(&[]);
    world.write("layer/tool", "x");
    fs::set_permissions(world.path("layer/tool"), fs::Permissions::from_mode(0o6755)).unwrap();
    File::create(world.path("layer/large")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(world.commit().unwrap(), 2);
    assert_eq!(fs::metadata(world.path("host/tool")).unwrap().mode() & 0o7777, 0o755);
    let large = fs::metadata(world.path("host/large")).unwrap();
    assert!(large.len() == 1 << 40 && large.blocks() < 1_000);
}

#[test]
fn a_tree_without_end_is_refused() {
    let world = World::new(&[]);
    let mut at = world.path("layer");
    for _ in 0..210 {
        at.push("d");
    }
    fs::create_dir_all(&at).unwrap();
    assert!(matches!(changes(&world.tree()), Err(LayerError::TooDeep { .. })));
}

#[test]
fn a_copy_is_compared_as_a_whole() {
    let mut world =
        World::new(&[("same", "1"), ("changed", "1"), ("gone", "1"), ("dir/kept", "1"), ("dir/gone", "1")]);
    mknodat(CWD, world.path("host/fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    world.is_copy = true;
    for (name, text) in [("same", "1"), ("changed", "2"), ("dir/kept", "1"), ("dir/new", "3")] {
        world.write(&format!("layer/{name}"), text);
    }
    assert_eq!(
        world.listed(),
        ["D gone", "M changed", "D dir/gone", "A dir/new"],
        "a FIFO is never in a copy"
    );
    assert_eq!(world.commit().unwrap(), 4);
    assert!(!world.path("host/gone").exists() && !world.path("host/dir/gone").exists());
    assert_eq!(world.text("host/changed").as_deref(), Some("2"));
    assert!(world.path("host/fifo").symlink_metadata().is_ok());
}
