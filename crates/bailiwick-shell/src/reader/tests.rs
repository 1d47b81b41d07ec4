//! What texts become.

use super::*;

fn lines(text: &str) -> Vec<String> {
    let reading = read(text);
    assert_eq!(reading.opaque, None, "{text}");
    reading.commands.into_iter().map(|command| command.plain).collect()
}

fn has(text: &str, line: &str) {
    let reading = read(text);
    let found = reading
        .commands
        .iter()
        .any(|command| command.plain == line || command.variants.iter().any(|one| one == line));
    assert!(found, "{text}: no `{line}` in {reading:#?}");
}

#[test]
fn every_place_that_runs_a_command_is_found() {
    assert_eq!(lines("a; b && c || d | e & f"), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(
        lines("if a; then b; else c; fi; while d; do e; done; for x in y; do f; done"),
        ["a", "b", "c", "d", "e", "f"]
    );
    assert_eq!(lines("(a; { b; })\nf() { c; }; case x in y) d;; esac"), ["a", "b", "d", "c"]);
    assert_eq!(lines("echo \"$(a `b`)\" <(c)"), ["b", "a $…", "c", "echo $… /dev/fd/substituted"]);
    assert_eq!(lines("true # rm -rf /"), ["true"]);
    assert_eq!(lines("cat <<'E'\nrm -rf /\nE"), ["cat"]);
    assert_eq!(lines("cat <<E\n$(rm x)\nE"), ["rm x", "cat"]);
    assert_eq!(lines("a > out 2>&1"), ["a > out"]);
}

#[test]
fn wrappers_are_stripped() {
    for text in [
        "sudo rm -rf /",
        "sudo -u root -- rm -rf /",
        "env A=1 -u B /bin/rm -rf /",
        "nohup timeout -s KILL 5 nice -n 3 rm -rf /",
        "bash -c 'rm -rf /'",
        "bash -lc \"rm -rf /\"",
        "sh -c 'sh -c \"rm -rf /\"'",
        "eval 'rm -rf /'",
        "eval rm -rf /",
        "command exec rm -rf /",
        "A=1 rm -rf /",
        "X=rm; $X -rf /",
        "a=r b=m; ${a}$b -rf /",
        "rm${IFS}-rf${IFS}/",
        "{rm,-rf,/}",
        "r''m -r\"f\" \\/",
        "$'\\x72m' -rf /",
        "bash <<E\nrm -rf /\nE",
        "bash <<< 'rm -rf /'",
        "busybox rm -rf /",
        "trap 'rm -rf /' EXIT",
        "ssh -p 22 host rm -rf /",
        "env -S 'rm -rf /'",
        "watch -n 1 rm -rf /",
        "su root -c 'rm -rf /'",
        "\\rm -rf /",
        "r$@m -r${IFS}-f /",
        "f() { rm -rf /; }; f",
        "rm \\\n-rf /",
    ] {
        has(text, "rm -rf /");
    }
    has("ls | xargs -n 1 rm -rf", "rm -rf $ARGS");
    has("find . -exec rm -rf {} +", "rm -rf $ARGS");
    has("git -C /x -c a=b push -f", "git push -f");
}

#[test]
fn flags_are_tried_in_every_order() {
    for text in [
        "rm -fr /",
        "rm -r -f /",
        "rm --recursive --force /",
        "rm --rec --fo /",
        "rm / -rf",
        "rm -rf -- /",
        "rm -Rf /",
        "rm -fvr /",
        "rm -rfvdI /",
    ] {
        has(text, "rm -rf /");
    }
    has("git push origin main --force", "git push -f origin main");
    has("chmod --recursive 777 /", "chmod -R 777 /");
    assert!(!read("rm -f a").commands[0].variants.iter().any(|one| one.contains('r') && one.contains("-r")));
}

#[test]
fn what_hides_is_said() {
    for text in [
        "$X -rf /",
        "`ls | head -1` -rf /",
        "$(cat name) -rf /",
        "curl x | base64 -d | sh",
        "curl x | sudo bash",
        "bash <(curl x)",
        ". <(curl x)",
        "source /dev/stdin",
        "eval \"$X\"",
        "bash -c \"$X\"",
        "/bin/r? -rf /",
        "echo 'unclosed",
        "a && ",
        "sh < script",
    ] {
        assert!(read(text).opaque.is_some(), "{text}");
    }
    for text in
        ["$HOME/bin/tool x", "echo $X", "bash script.sh", "[ -f x ] && a", "make -j$(nproc)", ". ./env.sh"]
    {
        assert_eq!(read(text).opaque, None, "{text}");
    }
}

#[test]
fn hostile_texts_end() {
    let started = std::time::Instant::now();
    for opener in [
        "(",
        "$(",
        "${a:-",
        "\"$(",
        "`",
        "{a,",
        "{ ",
        "if ",
        "$((",
        "<(",
        "[[ ( ",
        "bash -c '",
        "a=(",
        "((",
        "case x in ",
        "\"${x:-",
        "$'",
    ] {
        for count in [1, 7, 20, 300, 5_000] {
            let text = opener.repeat(count);
            let _ = read(&text);
            let _ = read(&format!("{text}a{}", ")".repeat(count)));
            let _ = read(&format!("{text}a{}", "}".repeat(count)));
        }
    }
    let nested = (0..12).fold("rm -rf /".to_owned(), |text, _| quoted(["bash", "-c", &text]));
    assert!(read(&nested).opaque.is_some(), "too deep");
    assert!(read(&"a;".repeat(600)).opaque.is_some(), "too many");
    assert!(read(&"a".repeat(MAX_TEXT + 1)).opaque.is_some(), "too long");
    assert!(read("a\0b").opaque.is_some());
    eprintln!("{:?}", started.elapsed());
}

#[test]
fn arguments_are_words_whatever_is_in_them() {
    for word in ["#", "$HOME", "a\\b", "*", "{a,b}", "~", "`ls`", "a=b", "!", "it's", "a\nb", ""] {
        let reading = read(&quoted(["find", word, "-delete"]));
        assert_eq!(reading.opaque, None, "{word:?}");
        assert_eq!(reading.commands[0].words, ["find", word, "-delete"], "{word:?}");
    }
}
