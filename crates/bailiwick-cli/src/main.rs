//! The `bailiwick` command.

fn main() -> std::process::ExitCode {
    bailiwick_cli::bailiwick()
}
