//! A leash: `echo` may be started twice. `rm` is refused and costs nothing, and a third `echo` is one too many.
//!
//! The caveats are the grant: calls under equal caveats share one budget.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use bailiwick::{Caveats, CountBound, Scope, ToolError, registry};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry();
    let granted = Caveats {
        exec: Scope::only(["echo".to_owned()]),
        max_calls: CountBound::AtMost(2),
        ..Caveats::top()
    };
    let echo = json!({ "program": "echo", "args": ["hello"] });

    let out = registry.dispatch("shell", echo.clone(), &granted).await?;
    println!("echo ran: {out}");
    assert_eq!((&out["exit_code"], &out["stdout"]), (&json!(0), &json!("hello\n")));

    let denied = registry.dispatch("shell", json!({ "program": "rm", "args": ["-rf", "/"] }), &granted).await;
    let Err(ToolError::Denied { capability, reason, .. }) = denied else {
        return Err("rm must not run".into());
    };
    println!("rm did not: {reason}; it would take {capability}");
    assert_eq!(capability, "exec:spawn:rm");

    registry.dispatch("shell", echo.clone(), &granted).await?;
    let spent = registry.dispatch("shell", echo, &granted).await.err().ok_or("a third call must not run")?;
    println!("a third call did not: {spent}");
    assert_eq!(spent.code(), "budget-spent");
    Ok(())
}
