//! Serves the conformance fixture for `bailiwick serve --fixture conformance`, which starts it.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    bailiwick_cli::bailiwick_fixture()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(5) // `bailiwick serve`, which starts it, needs Linux
}
