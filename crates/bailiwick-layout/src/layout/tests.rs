//! How paths are resolved and compared.

use super::*;

#[test]
fn the_short_way_to_resolve_a_path_leads_where_the_long_one_does() {
    let mut layout = Layout::default();
    for (path, target) in [("/bin", "usr/bin"), ("/usr/lib64", "lib"), ("/var/tmp", "/tmp"), ("/a", "../b")] {
        layout.put(Path::new(path), Node::Link(PathBuf::from(target)));
    }
    layout.put(Path::new("/usr/lib"), Node::Directory { mode: 0o755 });
    let paths = [
        "/",
        "/bin",
        "/bin/sh",
        "/binary",
        "/usr/bin/sh",
        "/usr/lib64",
        "/usr/lib64/x",
        "/var/tmp/../x",
        "/var/tmp/x/",
        "/a/c",
        "/bin/./sh",
        "//bin//sh",
        "/usr/lib64x/y",
    ];
    for path in paths.map(Path::new) {
        assert_eq!(layout.resolve(path), layout.walk(path.iter()), "{}", path.display());
    }
    assert_eq!(layout.resolve(Path::new("/bin/sh")), Path::new("/usr/bin/sh"));
}

#[test]
fn keys_are_ordered_as_the_parts_of_paths_are() {
    let paths = ["/", "/usr", "/usr/lib", "/usr/lib/x", "/usr-local", "/usr.d/x", "/us", "/a/b", "/a-b"];
    for (one, other) in paths.iter().flat_map(|one| paths.iter().map(move |other| (one, other))) {
        let (one, other) = (Path::new(one), Path::new(other));
        assert_eq!(key(one).cmp(&key(other)), one.cmp(other), "{} {}", one.display(), other.display());
    }
    for path in paths.map(Path::new) {
        let above: Vec<_> = path.ancestors().map(key).collect();
        assert_eq!(upwards(&key(path)).map(<[u8]>::to_vec).collect::<Vec<_>>(), above, "{}", path.display());
    }
}

#[test]
fn a_path_lies_in_a_tree_as_parts_say_not_as_letters_do() {
    let cases =
        [("/usr", "/"), ("/", "/"), ("/usr/lib", "/usr"), ("/usr", "/usr"), ("/usr2", "/usr"), ("/", "/usr")];
    for (path, tree) in cases {
        assert_eq!(
            lies_in(Path::new(path), Path::new(tree)),
            Path::new(path).starts_with(tree),
            "{path} {tree}"
        );
    }
}
