//! A case of the corpus: class state.
use std::path::PathBuf;

use rmcp::tool;

struct Store {
    file: PathBuf,
}

impl Store {
    fn new() -> Self {
        Self { file: PathBuf::from("/srv/store/data.json") }
    }

    fn load(&self) -> Vec<u8> {
        std::fs::read(&self.file).unwrap_or_default()
    }

    fn clear() {
        let _gone = std::fs::remove_file("/srv/store/data.json");
    }
}

pub struct Server {
    store: Store,
}

impl Server {
    #[tool]
    fn load(&self) -> Vec<u8> {
        self.store.load()
    }

    #[tool]
    fn clear(&self) {
        Store::clear();
    }
}
