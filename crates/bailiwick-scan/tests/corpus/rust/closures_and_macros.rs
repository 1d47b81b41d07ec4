//! A case of the corpus: closures and macros.
use rmcp::tool;

pub struct Batch;

fn remove(name: &str) {
    let _done = std::fs::remove_file(name);
}

impl Batch {
    #[tool]
    fn remove_all(&self, names: Vec<String>) {
        names.iter().for_each(|name| remove(name));
    }

    #[tool]
    fn print(&self) -> String {
        format!("{}", std::fs::read_to_string("/etc/motd").unwrap())
    }
}
