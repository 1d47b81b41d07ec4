//! What this host can hold, tried live, and how to get what is missing.
//!
//! Nothing is taken from version numbers: each ability was used, and a sandbox was started whose program tried to get
//! out.

use std::fmt::Write as _;
use std::io::Read as _;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::AnswerFormat;
use bailiwick_command::render::{escape, json, style};
use bailiwick_confine::host::Abilities;
use bailiwick_launch::{Backend, Command, Exit as Ended, Launch, LaunchError, Recorder, Status, Stdio};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::enforcement::{Coverage, Level};
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;
use serde_json::{Value, json};

/// One thing that a confined program tried.
struct Tried {
    what: &'static str,
    held: bool,
}

/// What became of a sandbox that was really started.
enum Live {
    Started(Box<Status>, Vec<Tried>),
    Refused(String),
}

pub(super) fn run(format: AnswerFormat) -> anyhow::Result<Answer> {
    let abilities = Abilities::probe().with(Backend::abilities());
    let live = live()?;
    let fine = match &live {
        Live::Started(status, tried) => reaches_floor(&status.coverage) && tried.iter().all(|one| one.held),
        Live::Refused(_) => false,
    };
    let text = match format {
        AnswerFormat::Text => text(&abilities, &live),
        AnswerFormat::Json => json::document(&document(&abilities, &live)),
    };
    Ok(Answer::result(if fine { Exit::Fine } else { Exit::Found }, text))
}

fn reaches_floor(coverage: &Coverage) -> bool {
    Plan::for_authority("doctor", &Authority::bottom(), &HostFacts::unknown())
        .is_ok_and(|plan| coverage.below(&plan.floor()).is_empty())
}

/// Starts a shell with no grants at all, which tries to get out by what a shell has.
fn live() -> anyhow::Result<Live> {
    let canary =
        tempfile::Builder::new().prefix("bailiwick-doctor").tempdir().context("no temporary directory")?;
    let secret = canary.path().join("secret");
    std::fs::write(&secret, "secret")?;
    let script = format!(
        "[ -e '{path}' ]; echo file $?; echo x 2>&- > '{path}.new'; echo write $?; \
         kill -0 {pid} 2>&-; echo process $?; [ -d /proc/{pid} ]; echo seen $?; \
         set -- $(while read a b; do case $a in *:) echo $a;; esac; done < /proc/net/dev); \
         [ \"$*\" != lo: ] && [ -n \"$*\" ]; echo network $?; [ -n \"$BAILIWICK_DOCTOR\" ]; echo variable $?; \
         /usr/bin/id > /dev/null 2>&1; echo program $?",
        path = secret.display(),
        pid = std::process::id(),
    );
    let plan = Plan::for_authority("doctor", &Authority::bottom(), &HostFacts::unknown())?;
    let (from, into) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let null = || std::fs::File::options().read(true).write(true).open("/dev/null").map(Into::into);
    let command = Command {
        args: vec!["-c".into(), script.into()],
        stdio: Stdio::Descriptors { stdin: null()?, stdout: into, stderr: null()? },
        ..Command::new("sh")
    };
    // The trial of the sandbox belongs to no tool call.
    let launch = Launch::new(&plan, command, Recorder::unrecorded("doctor"));
    let mut launched = match launch.prepare().map_err(LaunchError::from).and_then(|ready| ready.start()) {
        Ok(launched) => launched,
        Err(error) => return Ok(Live::Refused(error.to_string())),
    };
    let status = launched.status().clone();
    let ended = launched.wait()?;
    let mut said = String::new();
    std::fs::File::from(from).read_to_string(&mut said)?;
    Ok(Live::Started(Box::new(status), tried(&said, ended)))
}

/// What the shell said: each line a word and what the attempt ended with; zero is a leak.
fn tried(said: &str, ended: Ended) -> Vec<Tried> {
    let attempts = [
        ("file", "a file outside cannot be seen"),
        ("write", "a file outside cannot be written"),
        ("process", "a process outside cannot be signalled"),
        ("seen", "a process outside cannot be seen"),
        ("network", "the host's network is not there"),
        ("variable", "the caller's variables are not there"),
        ("program", "a program that was not granted does not start"),
    ];
    let held = |word: &str| {
        let mut lines = said.lines().filter_map(|line| line.split_once(' '));
        // An attempt that was never made proves nothing.
        lines.any(|(own, code)| own == word && code != "0") && ended == Ended::Code(0)
    };
    attempts.into_iter().map(|(word, what)| Tried { what, held: held(word) }).collect()
}

fn text(abilities: &Abilities, live: &Live) -> String {
    let mut text = format!("{}\n", style::strong("What this host has"));
    for ability in abilities.iter() {
        let line = match &ability.result {
            Ok(how) => format!("  {} {:<12} {}\n", style::good("✓"), ability.name, escape::line(how)),
            Err(lack) => format!(
                "  {} {:<12} {}\n      {}\n",
                style::faint("-"),
                ability.name,
                escape::line(&lack.why),
                escape::line(&lack.fix)
            ),
        };
        text += &line;
    }
    match live {
        Live::Refused(why) => {
            let _ =
                write!(text, "\n{}: no sandbox starts here: {}\n", style::error("error"), escape::line(why));
        }
        Live::Started(status, tried) => {
            let _ = writeln!(text, "\n{}", style::strong("What a sandbox without grants holds here"));
            for (aspect, held) in status.coverage.iter() {
                let level = if held.level >= Level::Mediated {
                    style::good(held.level.as_str())
                } else {
                    style::faint(held.level.as_str())
                };
                let _ = writeln!(
                    text,
                    "  {:<8} {level} ({}): {}",
                    aspect.as_str(),
                    held.precision.as_str(),
                    escape::line(&held.why)
                );
            }
            let _ = writeln!(text, "\n{}", style::strong("What was tried from inside just now"));
            for one in tried {
                let mark = if one.held { style::good("✓") } else { style::error("LEAK") };
                let _ = writeln!(text, "  {mark} {}", one.what);
            }
        }
    }
    text
}

fn document(abilities: &Abilities, live: &Live) -> Value {
    let sandbox = match live {
        Live::Refused(why) => json!({ "starts": false, "why": why }),
        Live::Started(status, tried) => {
            let tried: Vec<Value> =
                tried.iter().map(|one| json!({ "property": one.what, "held": one.held })).collect();
            json!({ "starts": true, "status": status.to_json(), "tried": tried })
        }
    };
    json!({ "format": "bailiwick.doctor/1", "abilities": abilities.to_json(), "sandbox": sandbox })
}
