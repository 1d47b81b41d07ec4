//! A case of the corpus: server.
use crate::fetch_list;
use rmcp::tool;

pub struct Lists;

impl Lists {
    #[tool]
    fn list(&self) -> bool {
        fetch_list("lists.example.org").is_ok()
    }
}
