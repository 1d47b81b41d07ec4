//! Every template is a manifest that passes, and every file of the directory is offered.

use std::collections::BTreeSet;
use std::path::Path;

use super::{run, run_with};

fn offered() -> BTreeSet<String> {
    let list = run(&["init", "--list"]).out;
    list.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_list_is_the_directory() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bailiwick-admin/templates");
    let files = std::fs::read_dir(directory).unwrap();
    let stems = files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned());
    assert_eq!(stems.collect::<BTreeSet<_>>(), offered());
    for server in [
        "filesystem",
        "fetch",
        "git",
        "memory",
        "time",
        "github",
        "postgres",
        "sqlite",
        "brave-search",
        "puppeteer",
    ] {
        assert!(offered().contains(server), "{server}");
    }
}

#[test]
fn templates_pass_under_any_name() {
    for template in offered() {
        for name in [None, Some("@scope/my-server")] {
            let name: Vec<&str> = name.iter().flat_map(|name| ["--name", name]).collect();
            let text = run(&[&["init", "--template", &template, "-"][..], &name].concat()).out;
            let checked = run_with(&["check", "-"], text.clone());
            assert_eq!(checked.exit, 0, "{template}\n{}", checked.out);
            let expected = name.last().unwrap_or(&"");
            assert!(checked.out.contains(expected), "{template}\n{}", checked.out);
            assert!(text.starts_with("# ") && text.matches("name = \"@scope").count() <= 1, "{template}");
        }
    }
}

#[test]
fn databases_speak_a_protocol_of_their_own() {
    for (database, port) in [("postgres", 5432), ("mysql", 3306), ("redis", 6379), ("mongodb", 27017)] {
        let text = run(&["init", "--template", database, "-"]).out;
        let granted = format!("net:connect:db.example.com:{port}?protocol=raw");
        assert!(text.contains(&format!("\"{granted}\"")), "{database}\n{text}");
        let allowed = |line: &str| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("m.toml");
            std::fs::write(&path, &text).unwrap();
            run(&["allows", path.to_str().unwrap(), line]).exit
        };
        assert_eq!((allowed(&granted), allowed("net:connect:other.example.com:443")), (0, 1), "{database}");
    }
}
