//! The hub of a fleet; see `bailiwick-hub --help`.

fn main() -> std::process::ExitCode {
    bailiwick_hub::run_command()
}
