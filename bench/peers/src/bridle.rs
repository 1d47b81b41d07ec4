//! agent-bridle: a context minted by its gate, then the check.

use std::hint::black_box;

use agent_bridle_core::{Caveats, CountBound, Gate, Registry, Scope, Tool, ToolContext, ToolResult};

struct Shell;

#[async_trait::async_trait]
impl Tool for Shell {
    fn name(&self) -> &str {
        "shell"
    }

    fn schema(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    async fn invoke(&self, _: serde_json::Value, _: &ToolContext) -> ToolResult<serde_json::Value> {
        Ok(serde_json::Value::Null)
    }
}

fn session() -> Caveats {
    Caveats {
        exec: Scope::only(["git".to_owned(), "cargo".to_owned()]),
        net: Scope::only(["api.github.com".to_owned()]),
        fs_write: Scope::only(["/workspace".to_owned()]),
        fs_read: Scope::only(["/workspace".to_owned()]),
        max_calls: CountBound::Unlimited,
        valid_for_generation: Scope::All,
    }
}

pub fn spawn(name: &'static str) -> impl FnMut() -> bool {
    let (gate, caveats) = (Gate::new(0), session());
    move || gate.authorize(&Shell, black_box(&caveats)).expect("a context").check_exec(black_box(name)).is_ok()
}

pub fn reach(host: &'static str) -> impl FnMut() -> bool {
    let (gate, caveats) = (Gate::new(0), session());
    move || gate.authorize(&Shell, black_box(&caveats)).expect("a context").check_net(black_box(host)).is_ok()
}

/// Whole calls through its registry; nothing is recorded.
pub fn dispatch() -> impl FnMut() -> bool {
    let registry = Registry::builder().tool(std::sync::Arc::new(Shell)).build();
    let grant = registry.mint_grant(Caveats::top());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    move || runtime.block_on(registry.dispatch("shell", serde_json::Value::Null, &grant)).is_ok()
}
