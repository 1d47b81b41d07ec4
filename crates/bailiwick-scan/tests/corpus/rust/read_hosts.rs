//! Reads one fixed file; `std::process::Command::new("rm")` here is no call.
use rmcp::tool;

pub struct Hosts;

impl Hosts {
    #[tool(description = "std::fs::write(\"/etc/passwd\")")]
    fn read_hosts(&self) -> String {
        // std::fs::remove_file("/etc/hosts")
        std::fs::read_to_string("/etc/hosts").unwrap_or_default()
    }
}
