//! Directories that are swapped for links while a tool works in them.

use super::*;

/// Swaps `door` between a directory inside and a link to the secret, as fast as it can.
fn swapping(scene: &Scene, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let at = |name: &str| scene.base.join("in").join(name);
    let (door, aside, link) = (at("door"), at("aside"), at("link"));
    symlink(scene.base.join("out"), &link).unwrap();
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::fs::rename(&door, &aside).unwrap();
            std::fs::rename(&link, &door).unwrap();
            std::fs::rename(&door, &link).unwrap();
            std::fs::rename(&aside, &door).unwrap();
        }
    })
}

#[test]
fn swapped_directories_lead_no_tool_out() {
    let scene = Scene::new().with(&[
        ("in/door/file", "public"),
        ("out/file", "SECRET"),
        ("out/only-there", "SECRET"),
    ]);
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = swapping(&scene, Arc::clone(&stop));
    let lines = scene.lines(&["fs:read,write:{}/in"]);
    let registry = scene.builder().tool(Under(tools::FsRead, lines.clone()));
    let registry =
        registry.tool(Under(tools::FsWrite, lines.clone())).tool(Under(tools::FsList, lines.clone()));
    let registry = registry.tool(Under(tools::FsSearch, lines)).build().unwrap();
    let (mut read, mut wrote, mut walked) = (0, 0, 0);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(10) {
        if let Ok(got) = run(&registry, "fs_read", json!({ "path": "in/door/file" })) {
            assert_ne!(got["content"], "SECRET");
            read += 1;
        }
        let content = json!({ "path": "in/door/file", "content": "public" });
        wrote += usize::from(run(&registry, "fs_write", content).is_ok());
        let new = json!({ "path": format!("in/door/new-{}", wrote % 20), "content": "public" });
        drop(run(&registry, "fs_write", new));
        drop(std::fs::remove_file(scene.base.join(format!("in/door/new-{}", wrote % 20))));
        if let Ok(found) = run(&registry, "fs_search", json!({ "path": "in", "pattern": "SECRET" })) {
            assert_eq!(found["results"], json!([]));
            walked += found["files"].as_u64().unwrap();
        }
        if let Ok(list) = run(&registry, "fs_list", json!({ "path": "in", "depth": 3 })) {
            assert!(!list.to_string().contains("only-there"), "{list}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(scene.text("out/file"), "SECRET");
    let out: Vec<_> =
        std::fs::read_dir(scene.base.join("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(out.len(), 2, "nothing was left outside: {out:?}");
    assert!(read > 10 && wrote > 10 && walked > 10, "the race was run: {read} {wrote} {walked}");
}
