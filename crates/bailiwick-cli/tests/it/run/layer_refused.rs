//! Where the kernel refuses a layer or its notifications: a scratch copy takes the layer's place, and without notifications nothing starts.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use bailiwick_testkit::{reachable_program, skip};

use super::{directory, err, out};

/// Runs a command where no overlay can be made: the kernel stacks two of them and no third.
const STACKED: &str = r#"
set -e
mount -t tmpfs none "$1"
cd "$1"
mkdir -p l/sub u1 w1 m1 u2 w2 m2
echo one >l/a; echo old >l/gone; echo deep >l/sub/deep; ln -s /nowhere l/link; mkfifo l/fifo
mount -t overlay -o lowerdir=l,upperdir=u1,workdir=w1,userxattr none m1
mount -t overlay -o lowerdir=m1,upperdir=u2,workdir=w2,userxattr none m2
cd m2
sleep 0.05
shift
set +e
"$@"
code=$?
echo "host: $(cat a) $(ls | tr '\n' ' ')"
exit $code
"#;

/// What a script does in a directory over which the kernel refuses an overlay.
fn stacked(options: &[&str], text: &str) -> Option<Output> {
    let held = directory();
    let is_root = rustix::process::getuid().is_root();
    let mut command = Command::new("unshare");
    command.args(if is_root { ["-m"].as_slice() } else { ["-Urm"].as_slice() });
    command.args(["--", "sh", "-c", STACKED, "sh"]).arg(held.path());
    command.arg(reachable_program(env!("CARGO_BIN_EXE_bailiwick")));
    let done = command.args(options).args(["--", "sh", "-c", text]).stdin(Stdio::null()).output().unwrap();
    if err(&done).contains("mount: ") {
        skip(&format!("no overlay can be made here at all: {}", err(&done)));
        return None;
    }
    Some(done)
}

const ACTS: &str = "echo two > a; rm gone; echo new > new; echo x > sub/x";

#[test]
fn a_copy_takes_the_place_of_a_layer_that_the_kernel_refuses() {
    let Some(done) = stacked(&["learn", "--no-journal", "--net", "deny"], ACTS) else { return };
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(err(&done).contains("so a scratch copy took its place"), "it is said: {}", err(&done));
    assert!(out(&done).contains("host: one a fifo gone link sub"), "{}{}", out(&done), err(&done));
    let listed: Vec<String> = err(&done)
        .lines()
        .filter(|line| ["A ", "M ", "D "].iter().any(|start| line.starts_with(start)))
        .map(|line| format!("{}{}", line.get(..2).unwrap_or(line), line.split("/m2/").nth(1).unwrap_or(line)))
        .collect();
    assert_eq!(listed, ["D gone", "M a", "A new", "A sub/x"], "{}", err(&done));
    assert!(
        out(&done).contains("\"fs:read,write:$WORKSPACE\"") || out(&done).contains("? "),
        "{}",
        out(&done)
    );
}

#[test]
fn a_copy_is_carried_over_and_bounded() {
    let Some(done) = stacked(&["learn", "--no-journal", "--net", "deny", "--commit"], ACTS) else { return };
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(out(&done).contains("host: two a fifo link new sub"), "{}{}", out(&done), err(&done));
    let cap = "fs:read,write:$PWD";
    let text = format!(
        "head -c 40000000 /dev/zero >large; exec \"$0\" run --no-journal --dry-run --memory 32M --cap {cap} -- sh -c 'echo started'"
    );
    let bailiwick = reachable_program(env!("CARGO_BIN_EXE_bailiwick"));
    let done = stacked_raw(&text, &bailiwick);
    let Some(done) = done else { return };
    assert_eq!(done.status.code(), Some(125), "{}{}", out(&done), err(&done));
    assert!(!out(&done).contains("started") && err(&done).contains("scratch copy"), "{}", err(&done));
}

/// The same for any script, outside of a sandbox.
fn stacked_raw(text: &str, argument: &Path) -> Option<Output> {
    let held = directory();
    let is_root = rustix::process::getuid().is_root();
    let mut command = Command::new("unshare");
    command.args(if is_root { ["-m"].as_slice() } else { ["-Urm"].as_slice() });
    command.args(["--", "sh", "-c", STACKED, "sh"]).arg(held.path()).args(["sh", "-c", text]).arg(argument);
    let done = command.stdin(Stdio::null()).output().unwrap();
    (!err(&done).contains("mount: ")).then_some(done)
}

#[test]
fn what_the_kernel_refuses_is_made_up_for_as_a_plain_user() {
    bailiwick_testkit::run_again_as_plain_user("run::layer_refused::", &[env!("CARGO_BIN_EXE_bailiwick")]);
}

/// Has the kernel refuse every filter with a listener, and becomes another program.
const WITHOUT_LISTENERS: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
# seccomp(2) with SECCOMP_FILTER_FLAG_NEW_LISTENER (8) in its flags: EINVAL, as of a kernel that has none.
numbers = {"x86_64": 317, "aarch64": 277}
code = [(0x20, 0, 0, 0), (0x15, 0, 3, numbers[os.uname().machine]), (0x20, 0, 0, 24), (0x45, 0, 1, 8), (0x06, 0, 0, 0x00050016), (0x06, 0, 0, 0x7fff0000)]
program = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(program)
class Fprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
fprog = Fprog(len(code), ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(fprog)) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn nothing_is_started_where_the_kernel_tells_of_no_call() {
    if !Path::new("/usr/bin/python3").exists() {
        return skip("no python3 here");
    }
    let held = directory();
    let bailiwick = reachable_program(env!("CARGO_BIN_EXE_bailiwick"));
    let run = |front: &[&str]| {
        let (first, rest) = front
            .split_first()
            .map_or((bailiwick.to_str().unwrap(), [].as_slice()), |both| (*both.0, both.1));
        let mut command = Command::new(first);
        command.args(rest);
        if !front.is_empty() {
            command.arg(&bailiwick);
        }
        command.args(["learn", "--no-journal", "--net", "deny", "--", "sh", "-c", "echo started >&2"]);
        command.current_dir(held.path()).stdin(Stdio::null()).output().unwrap()
    };
    let refused = run(&["/usr/bin/python3", "-c", WITHOUT_LISTENERS]);
    assert!(!refused.status.success() && !err(&refused).contains("started\n"), "{}", err(&refused));
    assert!(err(&refused).contains("filter of system calls"), "it says what is missing: {}", err(&refused));
    let control = run(&[]);
    assert!(control.status.success() && err(&control).contains("started\n"), "{}", err(&control));
}
