//! A case of the corpus: look alikes.
use rmcp::tool;

mod fs {
    pub fn read_to_string(name: &str) -> String {
        format!("pretend {name}")
    }
}

struct Command;

impl Command {
    fn new(_name: &str) -> Self {
        Self
    }
}

pub struct Calm;

impl Calm {
    #[tool]
    fn calm(&self) -> String {
        let _pretend = Command::new("rm");
        let text = r#"std::fs::read("/etc/shadow")"#;
        fs::read_to_string("/etc/shadow") + text
    }
}
