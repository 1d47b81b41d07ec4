//! Reads source for `bailiwick scan`, which starts it: the grammars of five languages are larger than all the rest.

fn main() -> std::process::ExitCode {
    bailiwick_admin::bailiwick_scan()
}
