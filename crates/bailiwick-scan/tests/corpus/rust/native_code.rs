//! A case of the corpus: native code.
use rmcp::tool;

extern "C" {
    fn getuid() -> u32;
}

pub struct Native;

impl Native {
    #[tool]
    fn load(&self, path: String) -> bool {
        libloading::Library::new(path).is_ok()
    }

    #[tool]
    fn user(&self) -> u32 {
        whoami()
    }
}

fn whoami() -> u32 {
    getuid()
}
