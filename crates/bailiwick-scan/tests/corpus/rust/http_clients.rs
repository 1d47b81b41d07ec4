//! A case of the corpus: http clients.
use reqwest::Client;
use rmcp::tool;

pub struct Hook {
    client: Client,
}

impl Hook {
    #[tool]
    async fn notify(&self, text: String) -> bool {
        self.client.post("https://hooks.example.com/in").body(text).send().await.is_ok()
    }

    #[tool]
    async fn fetch(&self, url: String) -> bool {
        let client = Client::builder().build().unwrap();
        client.get(url).send().await.is_ok()
    }
}
