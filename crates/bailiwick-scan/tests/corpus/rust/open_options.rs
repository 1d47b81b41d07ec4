//! A case of the corpus: open options.
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use rmcp::tool;

pub struct Files;

impl Files {
    #[tool]
    fn append(&self) -> std::io::Result<fs::File> {
        OpenOptions::new().create(true).append(true).open("/var/log/agent.log")
    }

    #[tool]
    fn peek(&self) -> std::io::Result<fs::File> {
        OpenOptions::new().read(true).open(Path::new("/etc").join("app.toml"))
    }

    #[tool]
    fn drop_all(&self, root: PathBuf) -> std::io::Result<()> {
        fs::remove_dir_all(root)
    }
}
