//! Links what unwinds the stack into the command: one shared library less to load at every `run` and every `hook`.

#[expect(clippy::disallowed_methods, reason = "what cargo tells build scripts is no fact of the host")]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let is_static = target("FEATURE").split(',').any(|feature| feature == "crt-static");
    if target("OS") == "linux" && target("ENV") == "gnu" && !is_static {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}
