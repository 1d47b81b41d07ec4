//! `bailiwick serve` and `bailiwick demo`; `bailiwick` starts it.

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    bailiwick_cli::bailiwick_serve()
}
