//! A tool that is one program, held to its policy by the sandbox: it reads one directory, writes another, and reaches no
//! host. Paths in its arguments are judged before it starts, and denials are heard.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::sync::{Arc, Mutex, PoisonError};

use bailiwick::{Caveats, Risk, ToolPolicy, builder, process_tool};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temp = tempfile::tempdir()?;
    let base = temp.path().canonicalize()?;
    let (data, out) = (base.join("data"), base.join("out"));
    std::fs::create_dir(&data)?;
    std::fs::create_dir(&out)?;
    std::fs::write(data.join("notes.txt"), "water the plants\n")?;
    let (read, write) = (format!("{}/**", data.display()), format!("{}/**", out.display()));

    let policy =
        ToolPolicy::builder().risk(Risk::Medium).read([&*read]).write([&*write]).no_network().build()?;
    let copy = process_tool("copy", policy, |args| {
        let argument = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
        vec!["cp".to_owned(), argument("from"), argument("to")]
    });
    let denied = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&denied);
    let registry = builder()?
        .tool(copy)
        .on_denied(move |tool, _, denial| {
            heard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(format!("{tool}: {}", denial.message()));
        })
        .build()?;

    let granted = Caveats::top();
    let inside = json!({ "from": data.join("notes.txt"), "to": out.join("copy.txt") });
    let ran = registry.dispatch("copy", inside, &granted).await?;
    println!("it ran in the {} sandbox: {}", ran["sandbox"], ran["enforcement"]);
    assert_eq!(ran["exit_code"], 0, "{ran}");
    assert_eq!(std::fs::read_to_string(out.join("copy.txt"))?, "water the plants\n");

    let outside = json!({ "from": "/etc/passwd", "to": out.join("users.txt") });
    assert!(registry.dispatch("copy", outside, &granted).await.is_err());
    let denied = denied.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{}", denied.join("\n"));
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert!(!out.join("users.txt").exists());
    Ok(())
}
