//! A case of the corpus: import aliases.
use std::fs as disk;
use std::process::Command as Cmd;

use rmcp::tool;
use tokio::{fs::File, process};

pub struct Git;

impl Git {
    #[tool(name = "git_status")]
    async fn status(&self) -> std::io::Result<()> {
        Cmd::new("git").arg("status").output()?;
        process::Command::new("ls").args(["-l"]).spawn()?;
        disk::write("/srv/out/status", "ok")?;
        File::open("/srv/in/wish").await?;
        Ok(())
    }
}
