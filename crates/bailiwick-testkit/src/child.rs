//! Children that are this test binary again.

use std::process::{Child, Command, Stdio};

/// Set for children only: their tests do nothing in an ordinary run.
const CHILD: &str = "BAILIWICK_TEST_CHILD";

/// Starts this binary again with only the test `name`; it reads its arguments from standard input.
pub fn child(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Starts a child and tells it its arguments.
pub fn start(mut command: Command, input: &str) -> Child {
    use std::io::Write;
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child
}

/// The lines that a parent wrote; none in an ordinary run.
pub fn input() -> Vec<String> {
    let is_child = std::env::var_os(CHILD).is_some();
    let text = if is_child { std::io::read_to_string(std::io::stdin()).unwrap() } else { String::new() };
    text.lines().map(Into::into).collect()
}
