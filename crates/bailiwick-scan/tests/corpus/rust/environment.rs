//! A case of the corpus: environment.
use std::env::{self, var_os};

use rmcp::tool;

pub struct Settings;

impl Settings {
    #[tool]
    fn settings(&self) -> Option<String> {
        let _region = var_os("REGION");
        env::var("API_KEY").ok()
    }

    #[tool]
    fn show(&self, name: String) -> Option<String> {
        env::var(&name).ok()
    }
}
