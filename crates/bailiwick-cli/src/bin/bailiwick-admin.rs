//! Every command of `bailiwick` that is awaited by nothing but a person; `bailiwick` starts it.

use bailiwick_admin::Watchers;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    bailiwick_admin::bailiwick_admin(&Watchers {
        learn: bailiwick_cli::learn,
        replay: bailiwick_cli::replay,
        audit: bailiwick_cli::audit,
    })
}
