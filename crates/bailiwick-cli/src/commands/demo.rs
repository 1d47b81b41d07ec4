//! `bailiwick demo`: a session of a tool that is held to a grant, on a bare machine, in a few seconds.
//!
//! Nothing is staged: the calls go through the same gate, sandbox and journal as any other, and each shows what was
//! really answered. Then an MCP server is held by `bailiwick wrap`. A call that ends otherwise than a held one must makes the demonstration fail.

mod server;
mod wrapped;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use bailiwick_command::answer::{Answer, Exit};
use bailiwick_command::args::run::Demo;
use bailiwick_command::render::{escape, style};
use bailiwick_guard::tools::Shell;
use bailiwick_guard::{Grant, Output, Registry, Session, ToolError};
use bailiwick_journal::{Expected, Filter, Journal, Options, new_session, records, verify};
use bailiwick_manifest::caveats::{Caveats, Scope};
use serde_json::json;

/// One call of the session.
struct Act {
    title: &'static str,
    program: &'static str,
    script: String,
    timeout_ms: u64,
    /// What a held call ends with.
    expected: fn(&Result<Output, ToolError>) -> bool,
}

pub(super) fn run(args: &Demo) -> anyhow::Result<Answer> {
    if let Some(secret) = &args.as_server {
        server::serve(secret)?;
        return Ok(Answer::result(Exit::Fine, String::new()));
    }
    let directory =
        tempfile::Builder::new().prefix("bailiwick-demo").tempdir().context("no temporary directory")?;
    let shown = play(directory.path());
    let kept = args.keep.then(|| directory.keep());
    let (mut text, held) = shown?;
    if let Some(kept) = kept {
        let _ = writeln!(text, "\nkept: {}", kept.display());
    }
    Ok(Answer::result(if held { Exit::Fine } else { Exit::Found }, text))
}

fn play(directory: &Path) -> anyhow::Result<(String, bool)> {
    let (work, secret, state) = (directory.join("work"), directory.join("secret"), directory.join("journal"));
    std::fs::create_dir(&work)?;
    std::fs::write(work.join("notes.txt"), "remember the milk\n")?;
    std::fs::write(&secret, "-----BEGIN PRIVATE KEY-----\n")?;
    let path =
        |path: &Path| path.to_str().map(str::to_owned).context("the temporary directory's name is not text");
    let (work, secret) = (path(&work)?, path(&secret)?);
    let caveats = Caveats {
        fs_read: Scope::only([work.clone()]),
        fs_write: Scope::only([work.clone()]),
        exec: Scope::only(["sh", "bash", "cat", "sleep"].map(str::to_owned)),
        net: Scope::only(["api.github.com".to_owned()]),
        max_calls: bailiwick_policy::lattice::CountBound::AtMost(10),
        valid_for_generation: Scope::All,
        ..Caveats::bottom()
    };
    let journal = Journal::open(&state, new_session()?, Options::default())?;
    let registry = Registry::builder(journal.clone(), Session::new(&work)).tool(Shell).build()?;
    let grant = registry.mint_grant(&caveats)?;
    let mut text = granted(&work);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut held = true;
    for act in acts(&work, &secret) {
        held &= runtime.block_on(perform(&act, &registry, &grant, &mut text));
    }
    drop((grant, registry));
    journal.close()?;
    held &= recorded(&state, &mut text)?;
    let (shown, was_held) = wrapped::play(directory, Path::new(&secret))?;
    text += &shown;
    held &= was_held;
    let end = if held { style::good("everything was held") } else { style::error("something was not held") };
    let _ = writeln!(text, "\n{end}");
    Ok((text, held))
}

fn granted(work: &str) -> String {
    let lines = [
        ("read and write", work),
        ("start", "sh, bash, cat, sleep"),
        ("reach", "api.github.com, and no other host"),
        ("calls", "at most 10"),
    ];
    let mut text = format!("{}\n", style::strong("A tool was granted"));
    for (what, which) in lines {
        let _ = writeln!(text, "  {what:<15} {which}");
    }
    text
}

fn acts(work: &str, secret: &str) -> Vec<Act> {
    let act = |title, program, script: String, expected| Act {
        title,
        program,
        script,
        timeout_ms: 10_000,
        expected,
    };
    vec![
        act("It reads what it was granted:", "cat", format!("{work}/notes.txt"), |answer| exits(answer, 0)),
        act(
            "It writes where it may:",
            "sh",
            format!("echo done > {work}/out.txt && cat {work}/out.txt"),
            |answer| exits(answer, 0),
        ),
        act("It reads a private key:", "sh", format!("cat {secret}"), fails),
        act(
            "It reads the host's passwords, and its own supervisor:",
            "sh",
            "cat /etc/shadow /proc/1/environ".to_owned(),
            fails,
        ),
        act(
            "It calls a host that was not granted:",
            "bash",
            "exec 3<>/dev/tcp/evil.example/443".to_owned(),
            fails,
        ),
        act("It starts a program that was not granted:", "rm", "-rf /".to_owned(), |answer| answer.is_err()),
        Act {
            title: "It runs away, with children that ignore signals:",
            program: "sh",
            script: "trap '' TERM; (trap '' TERM; sleep 600) & (sleep 600) & sleep 600".to_owned(),
            timeout_ms: 400,
            expected: |answer| answer.as_ref().is_ok_and(|out| out["timed_out"] == true),
        },
    ]
}

fn exits(answer: &Result<Output, ToolError>, code: i64) -> bool {
    answer.as_ref().is_ok_and(|out| out["exit_code"].as_i64() == Some(code))
}

fn fails(answer: &Result<Output, ToolError>) -> bool {
    answer.as_ref().is_ok_and(|out| out["exit_code"].as_i64().is_some_and(|code| code != 0))
}

async fn perform(act: &Act, registry: &Registry, grant: &Grant, text: &mut String) -> bool {
    let shell = act.program.ends_with("sh");
    let args =
        if shell { json!(["-c", act.script]) } else { json!(act.script.split(' ').collect::<Vec<_>>()) };
    let call = json!({ "program": act.program, "args": args, "timeout_ms": act.timeout_ms });
    let answer = registry.dispatch("shell", call, grant).await;
    let held = (act.expected)(&answer);
    let (mark, said) = told(&answer, held);
    let script = if shell { format!("-c '{}'", act.script) } else { act.script.clone() };
    let _ = writeln!(text, "\n{} {mark}", style::strong(act.title));
    let _ =
        writeln!(text, "    {} {}", style::faint("$"), escape::line(&format!("{} {script}", act.program)));
    for line in said.lines().filter(|line| !line.is_empty()).take(4) {
        let _ = writeln!(text, "    {}", escape::line(line));
    }
    held
}

/// The mark of a call and what it came to.
fn told(answer: &Result<Output, ToolError>, held: bool) -> (String, String) {
    let field = |out: &Output, name: &str| out[name].as_str().unwrap_or_default().to_owned();
    let (word, said) = match answer {
        Err(denied) => ("denied by the gate", denied.to_string()),
        Ok(out) if out["timed_out"] == true => {
            ("ended with all its children", "its time was over".to_owned())
        }
        Ok(out) if exits(answer, 0) => ("allowed", field(out, "stdout")),
        Ok(out) => ("did not work", field(out, "stderr") + &field(out, "stdout")),
    };
    let mark = match (held, word) {
        (false, _) => style::error("NOT HELD"),
        (true, "allowed") => style::good(word),
        (true, _) => style::warning(word),
    };
    (mark, said)
}

/// What the journal has of it, and whether it is whole.
fn recorded(state: &Path, text: &mut String) -> anyhow::Result<bool> {
    let all: Vec<_> = records(state, Filter::default())?.filter_map(Result::ok).collect();
    let count = all.len();
    let report = verify(state, &Expected::default())?;
    let intact = report.is_intact();
    let words = if intact { style::good("verified") } else { style::error("not intact") };
    let _ = writeln!(
        text,
        "\n{}: {count} events, hash-chained and signed: {words}",
        style::strong("The journal")
    );
    Ok(intact && count > 0)
}
