//! A case of the corpus: wrapped helper.
use rmcp::tool;

const API: &str = "https://api.github.com/zen";

pub struct Zen;

async fn get(url: &str) -> reqwest::Result<String> {
    reqwest::get(url).await?.text().await
}

async fn zen_of_the_day() -> reqwest::Result<String> {
    get(API).await
}

impl Zen {
    #[tool]
    async fn zen(&self) -> String {
        zen_of_the_day().await.unwrap_or_default()
    }
}
