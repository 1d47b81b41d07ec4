//! `shell`: starts one program with arguments.
//!
//! The program is checked against the call's authority before it starts, found on a fixed search path, and given
//! a fixed environment; it is killed with its whole group when its time is over. What it then does is held by
//! nothing here: every axis is reported as `advisory`, and `sandbox` as `none`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::gate::ToolContext;
use crate::tool::{Tool, ToolError};

/// Where bare names are looked for, whatever the caller's own search path is.
const TRUSTED_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const MAX_OUTPUT: usize = 1024 * 1024;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// The `shell` tool: `{program, args?, cwd?, stdin?, timeout_ms?}`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shell;

/// The arguments, read strictly.
struct Args {
    program: String,
    args: Vec<String>,
    cwd: Option<String>,
    stdin: Option<String>,
    timeout: Duration,
}

impl Tool for Shell {
    fn name(&self) -> &str {
        "shell"
    }

    fn description(&self) -> &str {
        "Start one program with arguments and return what it printed."
    }

    fn schema(&self) -> Value {
        let text = json!({ "type": "string" });
        json!({
            "type": "object",
            "properties": {
                "program": { "type": "string", "description": "A bare name, or an absolute path." },
                "args": { "type": "array", "items": text },
                "cwd": { "type": "string", "description": "Where to run; the session's directory if absent." },
                "stdin": text,
                "timeout_ms": { "type": "integer", "minimum": 1, "maximum": 3_600_000 },
            },
            "required": ["program"],
            "additionalProperties": false,
        })
    }

    async fn invoke(&self, args: Value, context: &ToolContext) -> Result<Value, ToolError> {
        let args = read_args(&args)?;
        context.check_exec(&args.program)?;
        let cwd = match &args.cwd {
            Some(cwd) => PathBuf::from(context.check_path_read(cwd)?.to_string()),
            None => context.session().cwd().to_owned(),
        };
        let file = find(&args.program).ok_or_else(|| ToolError::Exec {
            program: args.program.clone(),
            source: std::io::Error::new(std::io::ErrorKind::NotFound, "it is not on the trusted search path"),
        })?;
        run(&file, &cwd, args).await
    }
}

fn read_args(args: &Value) -> Result<Args, ToolError> {
    let bad = |what: &str| ToolError::Other(format!("shell: {what}"));
    let fields = args.as_object().ok_or_else(|| bad("the arguments are an object"))?;
    let known = ["program", "args", "cwd", "stdin", "timeout_ms"];
    if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(bad(&format!("there is no argument `{}`", key.escape_debug())));
    }
    let text = |key: &str| match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.contains('\0') || key == "stdin" => Ok(Some(text.clone())),
        Some(_) => Err(bad(&format!("`{key}` is a string"))),
    };
    let list = match fields.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => {
            let texts =
                items.iter().map(|item| item.as_str().filter(|text| !text.contains('\0')).map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(|| bad("`args` is a list of strings"))?
        }
        Some(_) => return Err(bad("`args` is a list of strings")),
    };
    let timeout = match fields.get("timeout_ms") {
        None | Some(Value::Null) => DEFAULT_TIMEOUT,
        Some(value) => {
            value.as_u64().map(Duration::from_millis).ok_or_else(|| bad("`timeout_ms` is a number"))?
        }
    };
    Ok(Args {
        program: text("program")?.ok_or_else(|| bad("`program` is missing"))?,
        args: list,
        cwd: text("cwd")?,
        stdin: text("stdin")?,
        timeout: timeout.min(MAX_TIMEOUT),
    })
}

/// The file a granted program is: a bare name only on the trusted search path.
fn find(program: &str) -> Option<PathBuf> {
    if program.starts_with('/') {
        return Some(PathBuf::from(program));
    }
    let candidates = TRUSTED_PATH.split(':').map(|folder| Path::new(folder).join(program));
    candidates.into_iter().find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

async fn run(file: &Path, cwd: &Path, args: Args) -> Result<Value, ToolError> {
    let failed = |source| ToolError::Exec { program: args.program.clone(), source };
    let mut command = Command::new(file);
    command.args(&args.args).current_dir(cwd).env_clear().env("PATH", TRUSTED_PATH).env("LANG", "C.UTF-8");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(failed)?;
    let group = child.id();
    let guard = KillGroup(group);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let fed = feed(&mut child, args.stdin.clone().unwrap_or_default());
    let work = async {
        let (out, err, ()) = tokio::join!(collect(stdout), collect(stderr), fed);
        (out, err)
    };
    tokio::pin!(work);
    let mut timed_out = false;
    let (out, err) = tokio::select! {
        both = &mut work => both,
        () = tokio::time::sleep(args.timeout) => {
            timed_out = true;
            guard.kill();
            work.await
        }
    };
    let status = child.wait().await.map_err(failed)?;
    drop(guard);
    Ok(json!({
        "exit_code": status.code(),
        "stdout": out.0,
        "stderr": err.0,
        "timed_out": timed_out,
        "stdout_truncated": out.1,
        "stderr_truncated": err.1,
        "sandbox": "none",
        "enforcement": { "exec": "advisory", "fs": "unsupported", "net": "unsupported" },
    }))
}

/// Writes the input and closes it.
fn feed(child: &mut Child, input: String) -> impl Future<Output = ()> + use<> {
    let stdin = child.stdin.take();
    async move {
        if let Some(mut stdin) = stdin {
            drop(stdin.write_all(input.as_bytes()).await);
        }
    }
}

/// What the stream says, up to the cap; the rest is read and dropped, and that is said.
async fn collect(stream: Option<impl AsyncRead + Unpin>) -> (String, bool) {
    let Some(mut stream) = stream else { return (String::new(), false) };
    let (mut kept, mut truncated) = (Vec::new(), false);
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = stream.read(&mut buffer).await {
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else { break };
        let room = MAX_OUTPUT - kept.len();
        truncated |= read.len() > room;
        kept.extend_from_slice(read.get(..room.min(read.len())).unwrap_or_default());
    }
    (String::from_utf8_lossy(&kept).into_owned(), truncated)
}

/// Ends the program's whole group when the call ends, however it ends.
struct KillGroup(Option<u32>);

impl KillGroup {
    fn kill(&self) {
        let pid = self.0.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // It may be gone already: then there is nothing to end.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for KillGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
