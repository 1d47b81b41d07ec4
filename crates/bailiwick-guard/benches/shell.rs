//! What a call of the shell costs: denied, one program, a script of two; beside the same sandbox alone.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use bailiwick_guard::tools::Shell;
use bailiwick_guard::{Grant, Registry, Session};
use bailiwick_journal::{Journal, Options};
use bailiwick_launch::{Command, Launch, Recorder, Stdio};
use bailiwick_manifest::caveats::{Caveats, Scope};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;
use divan::{Bencher, black_box};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

struct Bench {
    _dir: tempfile::TempDir,
    registry: Registry,
    grant: Grant,
    runtime: tokio::runtime::Runtime,
}

fn caveats() -> Caveats {
    let work = || Scope::only(["/usr/share".to_owned()]);
    let exec = Scope::only(["echo".to_owned(), "cat".to_owned()]);
    Caveats { exec, fs_read: work(), fs_write: Scope::none(), net: Scope::none(), ..Caveats::top() }
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { queue: 1 << 20, ..Options::default() };
    let journal = Journal::open(&dir.path().join("journal"), "bench".parse().unwrap(), options).unwrap();
    let registry = Registry::builder(journal, Session::new("/")).tool(Shell).build().unwrap();
    let grant = registry.mint_grant(&caveats()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    Bench { _dir: dir, registry, grant, runtime }
}

impl Bench {
    fn call(&self, args: Value) -> bool {
        self.runtime.block_on(self.registry.dispatch("shell", black_box(args), &self.grant)).is_ok()
    }
}

#[divan::bench(sample_count = 2_000, sample_size = 1)]
fn denied_program(bencher: Bencher<'_, '_>) {
    let bench = bench();
    bencher
        .with_inputs(|| json!({ "program": "rm", "args": ["-rf", "/"] }))
        .bench_local_values(|args| bench.call(args));
}

#[divan::bench(sample_count = 2_000, sample_size = 1)]
fn denied_script(bencher: Bencher<'_, '_>) {
    let bench = bench();
    bencher
        .with_inputs(|| json!({ "cmd": "echo a | cat > /usr/share/x && rm -rf /" }))
        .bench_local_values(|args| bench.call(args));
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn echo(bencher: Bencher<'_, '_>) {
    let bench = bench();
    bencher
        .with_inputs(|| json!({ "program": "echo", "args": ["hi"] }))
        .bench_local_values(|args| bench.call(args));
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn echo_script(bencher: Bencher<'_, '_>) {
    let bench = bench();
    bencher.with_inputs(|| json!({ "cmd": "echo hi" })).bench_local_values(|args| bench.call(args));
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn pipe_of_two(bencher: Bencher<'_, '_>) {
    let bench = bench();
    bencher.with_inputs(|| json!({ "cmd": "echo hi | cat" })).bench_local_values(|args| bench.call(args));
}

/// The floor: the sandbox of the same authority, started and waited for.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn sandbox_alone(bencher: Bencher<'_, '_>) {
    let plan = Plan::for_authority("bench", &caveats().authority().unwrap(), &HostFacts::unknown()).unwrap();
    bencher.bench_local(|| {
        let null = || {
            std::os::fd::OwnedFd::from(
                std::fs::File::options().read(true).write(true).open("/dev/null").unwrap(),
            )
        };
        let stdio = Stdio::Descriptors { stdin: null(), stdout: null(), stderr: null() };
        let command = Command { args: vec!["hi".into()], stdio, ..Command::new("echo") };
        let launch = Launch::new(&plan, command, Recorder::unrecorded("bench"));
        launch.prepare().unwrap().start().unwrap().wait().unwrap()
    });
}
