//! How the command is linked, for a quick start of every `run` and every `hook`.
//!
//! What unwinds the stack is linked in: one shared library less to load. And those that are started often have a fixed
//! address: their 24,000 pointers in constants need not be written anew at each start, which is a tenth of what `run -- true` takes. The price is
//! that the addresses of its own code are known; heap, stacks and shared libraries stay where the kernel puts them.

#[expect(clippy::disallowed_methods, reason = "what cargo tells build scripts is no fact of the host")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_static = target("FEATURE").split(',').any(|feature| feature == "crt-static");
    if target("OS") == "linux" && target("ENV") == "gnu" && !is_static {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
        for program in ["bailiwick", "bailiwick-admin", "bailiwick-serve"] {
            println!("cargo::rustc-link-arg-bin={program}=-no-pie");
        }
    }
}
