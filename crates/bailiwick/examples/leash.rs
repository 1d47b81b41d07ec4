//! A leash: `echo` may be started twice. Then `rm` is refused and costs nothing, and a third `echo` is one too many.
#![expect(clippy::print_stdout, clippy::indexing_slicing, reason = "an example shows what happens")]

use bailiwick::{Caveats, CountBound, Scope, Session};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let state = tempfile::tempdir()?;
    let registry = bailiwick::registry_in(state.path(), Session::new("/"))?.build()?;
    let caveats = Caveats {
        exec: Scope::only(["echo".to_owned()]),
        max_calls: CountBound::AtMost(2),
        valid_for_generation: Scope::All,
        ..Caveats::bottom()
    };
    let grant = registry.mint_grant(&caveats)?;
    let echo = json!({ "program": "echo", "args": ["hello"] });

    let out = registry.dispatch("shell", echo.clone(), &grant).await?;
    println!("echo ran: {}", out["stdout"]);
    assert_eq!(out["stdout"], "hello\n");

    let denied = registry.dispatch("shell", json!({ "program": "rm", "args": ["-rf", "/"] }), &grant).await;
    let denied = denied.err().ok_or("rm must not run")?;
    println!("rm did not: {denied}");
    assert_eq!((denied.code(), grant.calls_left()), ("exec-not-granted", Some(1)));

    registry.dispatch("shell", echo.clone(), &grant).await?;
    let spent = registry.dispatch("shell", echo, &grant).await.err().ok_or("a third call must not run")?;
    println!("a third call did not: {spent}");
    assert_eq!(spent.code(), "budget-spent");
    Ok(())
}
