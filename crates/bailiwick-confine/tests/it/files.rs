//! Which files are there, and what can be done to them.

use bailiwick_confine::{Options, Refusal};

use crate::support::{directory, prepare, script, sh};

#[test]
fn a_readable_tree_can_be_read_and_not_changed() {
    let (_own, w) = directory();
    std::fs::write(w.join("a"), "content").unwrap();
    let cap = format!("fs:read:{}", w.display());
    assert_eq!(sh(&[&cap], "cat a", &w).ok(), "content");
    for attempt in
        ["echo x > a", "echo x > b", "rm a", "mv a b", "chmod 777 a", "ln a c", "mkdir d", "touch a"]
    {
        sh(&[&cap], attempt, &w).refused();
    }
    assert_eq!(std::fs::read_to_string(w.join("a")).unwrap(), "content");
    assert_eq!(std::fs::read_dir(&w).unwrap().count(), 1);
}

#[test]
fn a_writable_tree_can_be_changed_and_its_surroundings_are_absent() {
    let (_own, w) = directory();
    let (_other, outside) = directory();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    let cap = format!("fs:read,write:{}", w.display());
    sh(&[&cap], "echo one > a && mkdir -p d/e && mv a d/e/b && cat d/e/b", &w).ok();
    assert_eq!(std::fs::read_to_string(w.join("d/e/b")).unwrap(), "one\n");
    let try_out = format!("cat {}/secret", outside.display());
    assert!(sh(&[&cap], &try_out, &w).refused().contains("No such file"));
    sh(&[&cap], &format!("echo x > {}/new", outside.display()), &w).refused();
    for hidden in ["/etc/shadow", "/root", "/home", "/var/lib", "/sys/kernel", "/boot"] {
        assert!(sh(&[], &format!("ls {hidden}"), &w).refused().contains("No such file"), "{hidden}");
    }
}

#[test]
fn a_link_leads_to_nothing_that_is_not_granted() {
    let (_own, w) = directory();
    let (_other, outside) = directory();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.join("secret"), w.join("link")).unwrap();
    let cap = format!("fs:read,write:{}", w.display());
    assert!(!sh(&[&cap], "cat link", &w).refused().contains("secret\n"));
}

#[test]
fn an_inner_writable_tree_opens_only_itself() {
    let (_own, w) = directory();
    std::fs::create_dir_all(w.join("in/deep")).unwrap();
    let caps = [format!("fs:read:{}", w.display()), format!("fs:read,write:{}/in/deep", w.display())];
    let caps: Vec<&str> = caps.iter().map(String::as_str).collect();
    sh(&caps, "echo x > in/deep/a", &w).ok();
    sh(&caps, "echo x > in/a", &w).refused();
    sh(&caps, "echo x > a", &w).refused();
    sh(&caps, "mv in/deep in/other", &w).refused();
}

#[test]
fn a_glob_shows_what_it_matches_and_nothing_wider() {
    let (_own, w) = directory();
    for name in ["a.txt", "b.txt", "c.key"] {
        std::fs::write(w.join(name), name).unwrap();
    }
    let cap = format!("fs:read:{}/*.txt", w.display());
    assert_eq!(sh(&[&cap], "ls", &w).ok(), "a.txt\nb.txt\n");
    assert_eq!(sh(&[&cap], "cat a.txt b.txt", &w).ok(), "a.txtb.txt");
    assert!(sh(&[&cap], "cat c.key", &w).refused().contains("No such file"));
}

#[test]
fn what_may_only_be_written_cannot_be_read() {
    let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
    only_written(&elsewhere.path().canonicalize().unwrap());
    // Below the sandbox's own `/tmp`, where it may do anything.
    let (_own, w) = directory();
    only_written(&w);
}

fn only_written(w: &std::path::Path) {
    std::fs::write(w.join("a"), "secret").unwrap();
    let cap = format!("fs:write:{}", w.display());
    sh(&[&cap], &format!("echo new > {}/b", w.display()), w).ok();
    assert!(!sh(&[&cap], &format!("cat {}/a", w.display()), w).refused().contains("secret"));
    let create = format!("fs:create,read:{}", w.display());
    sh(&[&create], "echo new > c && cat a", w).ok();
    sh(&[&create], "rm a", w).refused();
}

#[test]
fn a_missing_path_is_said() {
    let (_own, w) = directory();
    let missing = w.join("missing");
    let writable = format!("fs:write:{}", missing.display());
    let refusal = prepare(&[&writable], script("true", &w), Options::default()).err().unwrap();
    assert!(matches!(&refusal, Refusal::MissingPath { .. }), "{refusal}");
    assert!(refusal.to_string().contains(&format!("mkdir -p {}", missing.display())), "{refusal}");
    let readable = format!("fs:read:{}", missing.display());
    let (prepared, _reader) = prepare(&[&readable], script("true", &w), Options::default()).unwrap();
    let mut confined = prepared.spawn().unwrap();
    assert!(confined.status().details.iter().any(|line| line.contains("does not exist")));
    confined.wait().unwrap();
}

#[test]
fn everything_still_leaves_the_sandboxs_own_places_its_own() {
    let (_own, w) = directory();
    std::fs::write(w.join("a"), "content").unwrap();
    let text = sh(&["fs:read:/"], &format!("cat {}/a; ls /sys /run; cat /etc/resolv.conf", w.display()), &w);
    let text = text.text;
    assert!(text.contains("content") && text.contains("nameserver 127.0.0.53"), "{text}");
    assert!(!text.contains("kernel"), "{text}");
}

#[test]
fn tmp_is_private_and_gone_afterwards() {
    let (_own, w) = directory();
    let name = format!("bailiwick-{}", std::process::id());
    let text =
        sh(&[], &format!("echo x > /tmp/{name} && cat /tmp/{name} && cd && echo y > z && ls /tmp"), &w).ok();
    assert!(text.contains(&name) && text.contains("home"), "{text}");
    assert!(!std::path::Path::new("/tmp").join(&name).exists());
    sh(&[], "echo x > /etc/passwd", &w).refused();
    sh(&[], "mkdir /new", &w).refused();
}
