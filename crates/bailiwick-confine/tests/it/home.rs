//! The home and the user's name: the caller's own path, empty and private, with granted paths in their places.

use std::path::{Path, PathBuf};

use bailiwick_confine::{Command, Options};

use crate::support::{Said, run_with, script};

/// A home on the host, outside of `/tmp`, with a few files in it.
fn host_home() -> (tempfile::TempDir, PathBuf) {
    let own = tempfile::tempdir_in("/var/tmp").unwrap();
    let home = own.path().canonicalize().unwrap();
    std::fs::create_dir_all(home.join("project")).unwrap();
    for (name, text) in [
        (".gitconfig", "[user]\n\tname = Anna\n\temail = a@example.com\n"),
        (".secret", "key"),
        ("project/a", "a"),
    ] {
        std::fs::write(home.join(name), text).unwrap();
    }
    (own, home)
}

fn at_home(capabilities: &[&str], text: &str, home: &Path) -> Said {
    let all: Vec<&str> =
        capabilities.iter().copied().chain(["exec:spawn:cat", "exec:spawn:ls", "exec:spawn:id"]).collect();
    let options = Options { home: Some(home.to_owned()), ..Options::default() };
    run_with(&all, script(text, Path::new("/")), options)
}

#[test]
fn the_home_is_at_its_path_empty_and_private() {
    let (_own, home) = host_home();
    let text = "echo $HOME; ls -A $HOME; echo x > ~/new && cat ~/new";
    assert_eq!(at_home(&[], text, &home).ok(), format!("{}\nx\n", home.display()));
    assert!(!home.join("new").exists(), "nothing reaches the host");
    at_home(&[], "cat ~/.secret", &home).refused();
}

#[test]
fn what_is_granted_in_a_home_is_found_there() {
    let (_own, home) = host_home();
    let (config, project) = (
        format!("fs:read:{}/.gitconfig", home.display()),
        format!("fs:read,write:{}/project", home.display()),
    );
    let caps = [config.as_str(), project.as_str()];
    assert!(at_home(&caps, "cat ~/.gitconfig", &home).ok().contains("Anna"));
    assert_eq!(at_home(&caps, "ls -A ~", &home).ok(), ".gitconfig\nproject\n");
    at_home(&caps, "echo x > ~/.gitconfig", &home).refused();
    at_home(&caps, "cat ~/.secret", &home).refused();
    at_home(&caps, "echo b > ~/project/b && echo c > ~/own && cat ~/own", &home).ok();
    assert!(home.join("project/b").exists() && !home.join("own").exists());
}

#[test]
fn a_home_that_is_granted_is_the_hosts() {
    let (_own, home) = host_home();
    let whole = format!("fs:read:{}", home.display());
    assert_eq!(at_home(&[&whole], "cat ~/.secret", &home).ok(), "key");
    at_home(&[&whole], "echo x > ~/new", &home).refused();
}

#[test]
fn a_home_for_less_than_everything_stays_as_narrow_as_it_was_granted() {
    let (_own, home) = host_home();
    let narrow = format!("fs:write:{}/project", home.display());
    at_home(&[&narrow], "echo x > ~/own && cat ~/own", &home).ok();
    at_home(&[&narrow], &format!("cat {}/project/a", home.display()), &home).refused();
}

#[test]
fn a_home_that_has_another_use_is_in_the_temporary_directory() {
    for home in ["/", "/etc", "/usr/share/x", "/dev", "/var", "/run/user/1", "relative", "/proc/1"] {
        let said = at_home(&[], "echo $HOME; echo x > ~/new && cat ~/new", Path::new(home)).ok();
        assert_eq!(said, "/tmp/home\nx\n", "{home}");
        at_home(&[], "echo x > /etc/passwd", Path::new(home)).refused();
        at_home(&[], "echo x > /new", Path::new(home)).refused();
    }
    assert_eq!(at_home(&[], "echo $HOME", Path::new("/tmp/a/b")).ok(), "/tmp/a/b\n");
}

#[test]
fn the_user_alone_has_a_name() {
    let (_own, home) = host_home();
    let expected = std::process::Command::new("id").args(["-un"]).output().unwrap();
    let name = at_home(&[], "id -un; id -gn > /dev/null", &home).ok();
    assert_eq!(name.as_bytes(), expected.stdout);
    let text = at_home(&[], "echo $USER; cat /etc/passwd", &home).ok();
    assert_eq!(text.lines().next(), Some(name.trim()));
    assert!(text.contains(&format!(":{}:/bin/sh", home.display())), "{text}");
    assert!(text.lines().count() <= 4, "{text}");
    for tool in ["ssh-keygen", "git"].iter().filter(|tool| Path::new("/usr/bin").join(tool).exists()) {
        let mut command = Command::new(tool);
        command.args = match *tool {
            "git" => vec!["var".into(), "GIT_AUTHOR_IDENT".into()],
            _ => ["-q", "-t", "ed25519", "-N", "", "-f", "/tmp/key"].map(Into::into).to_vec(),
        };
        let config = format!("fs:read:{}/.gitconfig", home.display());
        let options = Options { home: Some(home.clone()), ..Options::default() };
        let said = run_with(&[&config], command, options);
        assert!(!said.text.contains("No user exists"), "{}", said.text);
        assert!(*tool != "git" || said.text.contains("Anna"), "{}", said.text);
    }
}
