//! A case of the corpus: dependency.
use rmcp::tool;

pub struct Mail;

impl Mail {
    #[tool]
    fn send(&self) -> bool {
        lettre::SmtpTransport::relay("mail.example.com").is_ok()
    }

    #[tool]
    async fn start(&self, program: String) -> bool {
        tokio::process::Command::new(program).status().await.is_ok()
    }
}
