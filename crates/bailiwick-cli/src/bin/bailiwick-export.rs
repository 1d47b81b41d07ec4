//! Exports the journal for `bailiwick export`, which starts it: what speaks OTLP is no part of `bailiwick`.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    bailiwick_admin::bailiwick_export()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(5) // the commands that confine, whose journal it reads, need Linux
}
