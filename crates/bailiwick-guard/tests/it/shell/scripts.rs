//! Scripts: what runs and what it prints, what is refused by name, and that a refused script has done nothing.

use bailiwick_journal::Filter;
use bailiwick_policy::lattice::CountBound;
use serde_json::json;

use super::desk::{Desk, call};
use bailiwick_testkit::journal::all_records;

const PROGRAMS: &[&str] = &[
    "cat", "echo", "env", "false", "grep", "head", "ln", "ls", "mkdir", "printf", "sort", "test", "touch",
    "tr", "wc", "yes",
];

/// Scripts and all that they print.
const ACCEPTED: &[(&str, &str)] = &[
    ("", ""),
    ("# only a comment", ""),
    ("echo one two", "one two\n"),
    ("echo 'a  b' \"c  d\" e\\ f", "a  b c  d e f\n"),
    ("echo a'b'\"c\"\\d", "abcd\n"),
    ("echo '' \"\" | wc -c", "2\n"),
    ("echo '$HOME' \\$HOME \"\\$HOME\"", "$HOME $HOME $HOME\n"),
    ("echo a # comment\necho b", "a\nb\n"),
    ("echo a; echo b", "a\nb\n"),
    ("echo a && echo b || echo c", "a\nb\n"),
    ("false || echo rescued", "rescued\n"),
    ("false && echo never; echo after", "after\n"),
    ("! false && echo turned", "turned\n"),
    ("test -f a.txt && echo there", "there\n"),
    ("printf 'b\\na\\n' | sort", "a\nb\n"),
    ("printf 'b\\na\\nab\\n' | grep a | sort | head -n 1", "a\n"),
    ("yes | head -n 2", "y\ny\n"),
    ("yes | true; echo done", "done\n"),
    ("echo new > f; cat f", "new\n"),
    ("echo 1 > f; echo 2 >> f; cat < f", "1\n2\n"),
    ("echo longer > f; echo s > f; cat f", "s\n"),
    ("ls nothing 2> f; wc -l < f", "1\n"),
    ("ls nothing 2>> f; ls nothing 2>> f; wc -l < f", "2\n"),
    ("ls nothing 2>&1 | wc -l", "1\n"),
    ("ls nothing |& wc -l", "1\n"),
    ("ls a.txt nothing > f 2>&1; wc -l < f", "2\n"),
    ("ls a.txt nothing &> f; wc -l < f", "2\n"),
    ("ls a.txt nothing >& f; ls nothing &>> f; wc -l < f", "3\n"),
    ("echo lost > /dev/null; cat < /dev/null; echo kept", "kept\n"),
    ("echo x > /dev/stdout", "x\n"),
    ("> empty; wc -c < empty", "0\n"),
    ("cat <<< 'a string'", "a string\n"),
    ("cat <<EOF\nat $HOME \"x\" \\$Y\nEOF\necho after", "at {home} \"x\" $Y\nafter\n"),
    ("cat > f <<'EOF'\n$( ) `x` $HOME\nEOF\ncat f", "$( ) `x` $HOME\n"),
    ("cat <<-EOF\n\ttabs\n\tEOF", "tabs\n"),
    ("echo *.txt", "a.txt b.txt\n"),
    ("echo '*'.txt \"*.txt\" \\*.txt", "*.txt *.txt *.txt\n"),
    ("echo ?.txt [ab].txt [!a].txt", "a.txt b.txt a.txt b.txt b.txt\n"),
    ("echo */*.txt", "sub/c.txt\n"),
    ("echo {work}/*.txt", "{work}/a.txt {work}/b.txt\n"),
    ("echo *.none .h*", "*.none .hidden\n"),
    ("touch made.rs && echo *.rs", "made.rs\n"),
    ("X=1; echo $X ${X}2", "1 12\n"),
    ("X='a  b'; echo $X \"$X\"", "a b a  b\n"),
    ("X=; echo a $X b", "a b\n"),
    ("X=*.txt; echo $X \"$X\"", "a.txt b.txt *.txt\n"),
    ("X=echo; $X hello", "hello\n"),
    ("X=1 env | grep X=", "X=1\n"),
    ("X=1; env | grep X= || echo hidden", "hidden\n"),
    ("export X=1 Y='a b'; env | grep '[XY]=' | sort", "X=1\nY=a b\n"),
    ("X=1; export X; env | grep X=", "X=1\n"),
    ("echo $PWD; cd sub; echo $PWD; echo *.txt", "{work}\n{work}/sub\nc.txt\n"),
    ("cd sub && cat c.txt && cd .. && cat a.txt", "work/sub/c.txt\nwork/a.txt\n"),
    ("cd sub; echo x > here; cd ..; cat sub/here", "x\n"),
    ("mkdir new && cd new && echo x > f && cd .. && cat new/f", "x\n"),
    ("cd; echo $PWD ~ ~/x", "{home} {home} {home}/x\n"),
    ("cd nowhere 2> /dev/null || echo stayed", "stayed\n"),
    ("echo {} {a} a,b", "{} {a} a,b\n"),
    ("echo a; exit 0; echo never", "a\n"),
    ("echo a \\\n  b", "a b\n"),
    (": nothing; true && echo ok", "ok\n"),
];

#[test]
fn the_subset_runs_as_in_a_shell() {
    for (script, expected) in ACCEPTED {
        let desk = Desk::new(PROGRAMS);
        let work = desk.work().display().to_string();
        let filled = |text: &str| text.replace("{home}", &format!("{work}/sub")).replace("{work}", &work);
        assert_eq!(desk.says(&filled(script)), filled(expected), "{script}");
    }
}

/// Every script without places in it prints the same in a real bash.
#[test]
fn a_real_bash_agrees() {
    for (script, expected) in ACCEPTED.iter().filter(|(script, _)| !script.contains("{work}")) {
        let desk = Desk::new(&[]);
        let work = desk.work().display().to_string();
        let bash = std::process::Command::new("bash")
            .args(["--norc", "-c", script])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", format!("{work}/sub"))
            .env("LC_ALL", "C")
            .current_dir(desk.work())
            .output()
            .unwrap();
        let filled = expected.replace("{home}", &format!("{work}/sub")).replace("{work}", &work);
        assert_eq!(String::from_utf8_lossy(&bash.stdout), filled, "{script}");
    }
}

#[test]
fn a_script_ends_with_the_code_of_its_last_pipeline() {
    let desk = Desk::new(&["sh", "echo", "cat", "false"]);
    for (script, code) in [
        ("false", 1),
        ("false; echo", 0),
        ("false | cat", 0),
        ("echo | false", 1),
        ("sh -c 'exit 7'", 7),
        ("exit 9", 9),
        ("false; exit", 1),
        ("! echo", 1),
        ("cat nothing", 1),
        ("cat < nothing", 1),
        ("cat < sub", 1),
    ] {
        assert_eq!(desk.script(script).unwrap()["exit_code"], code, "{script}");
    }
    let out = desk.script("sh -c 'kill -TERM $$'").unwrap();
    assert_eq!((&out["exit_code"], &out["signal"]), (&json!(143), &json!(15)));
}

#[test]
fn a_program_that_is_not_there_is_said_as_in_a_shell() {
    let desk = Desk::new(&["no-such-program", "echo"]);
    let out = desk.script("no-such-program x; echo after").unwrap();
    assert_eq!((&out["exit_code"], &out["stdout"]), (&json!(0), &json!("after\n")));
    assert!(out["stderr"].as_str().unwrap().starts_with("no-such-program: "), "{out}");
    assert_eq!(desk.script("no-such-program").unwrap()["exit_code"], 127);
    assert!(desk.call(json!({ "program": "no-such-program" })).is_err());
}

/// Scripts that lie outside the subset, and what the refusal names.
const REFUSED: &[(&str, &str)] = &[
    ("echo $(id)", "`$( )`"),
    ("echo \"$(id)\"", "`$( )`"),
    ("echo `id`", "command substitution"),
    ("cat <<EOF\n$(id)\nEOF", "`$( )`"),
    ("X=$(id)", "`$( )`"),
    ("echo > $(id)", "`$( )`"),
    ("eval 'echo x'", "`eval`"),
    ("X=eval; $X 'echo x'", "`eval`"),
    ("source a.txt", "`source`"),
    (". a.txt", "`.`"),
    ("exec echo x", "`exec`"),
    ("f() { echo x; }; f", "a function"),
    ("echo x &", "`&`"),
    ("echo x & echo y", "`&`"),
    ("for x in a; do echo $x; done", "`for`"),
    ("while true; do echo; done", "`while`"),
    ("until false; do echo; done", "`until`"),
    ("if true; then echo; fi", "`if`"),
    ("case x in x) echo;; esac", "`case`"),
    ("(echo x)", "a subshell"),
    ("{ echo x; }", "a group"),
    ("[[ -f a.txt ]]", "`[[ ]]`"),
    ("[ -f a.txt ]", "`[`"),
    ("((1))", "arithmetic"),
    ("echo $((1+1))", "arithmetic"),
    ("cat <(echo x)", "process substitution"),
    ("echo ${X:-y}", "`${X:-y}`"),
    ("echo $1", "`$1`"),
    ("echo $?", "`$?`"),
    ("echo $'a'", "`$'…'`"),
    ("echo {a,b}", "brace expansion"),
    ("echo {1..3}", "brace expansion"),
    ("echo ~root", "another user"),
    ("echo x 3> f", "descriptor `3`"),
    ("echo x 2>&3", "descriptor `3`"),
    ("echo x >&-", "descriptor `-`"),
    ("cat <> f", "`<>`"),
    ("cat <&2", "`<&`"),
    ("echo x > *.txt", "name one file"),
    ("X='a b'; echo x > $X", "name one file"),
    ("*.txt", "a pattern as the program"),
    ("time echo x", "`time`"),
    ("set -e; echo x", "`set`"),
    ("X+=1", "`+=`"),
    ("X=(a b)", "an array"),
    ("cd sub | echo x", "in a pipeline"),
    ("cd -", "`cd`"),
    ("export -p", "`export`"),
    ("read X", "`read`"),
    ("echo 'unclosed", "does not parse"),
    ("echo $UNKNOWN", "the variable UNKNOWN"),
    ("exit; eval x", "`eval`"),
    ("false && cd -", "`cd`"),
];

#[test]
fn what_is_outside_is_refused_by_its_name_and_nothing_has_run() {
    for (script, word) in REFUSED {
        let desk = Desk::new(PROGRAMS);
        let error = desk.refuses(&format!("echo first > made\n{script}"));
        assert!(error.contains(word), "{script}: {error}");
        assert!(!desk.has("made"), "{script}");
    }
    let error = Desk::new(&[]).refuses("eval x");
    assert!(error.contains("engine: \"bash\""), "there is a hint: {error}");
}

#[test]
fn a_script_with_one_denied_part_does_nothing_at_all() {
    let desk = Desk::new(PROGRAMS);
    let outside = desk.outside().display().to_string();
    std::os::unix::fs::symlink(desk.outside(), desk.work().join("link")).unwrap();
    std::os::unix::fs::symlink(desk.outside().join("new"), desk.work().join("file-link")).unwrap();
    let made = "echo first > made; touch made2; ";
    for (script, word) in [
        ("rm a.txt", "exec of \"rm\" is not within the granted authority"),
        ("false && rm a.txt", "exec of \"rm\""),
        ("exit 0; rm a.txt", "exec of \"rm\""),
        ("exit 0; cd sub; echo x > ../../outside/new", "write of "),
        ("echo x | rm a.txt", "exec of \"rm\""),
        ("X=rm; $X a.txt", "exec of \"rm\""),
        ("./a.txt", "a.txt\" is not within"),
        ("/bin/echo x", "exec of \"/bin/echo\""),
        ("echo x > {out}/new", "write of "),
        ("echo x >> {out}/new", "write of "),
        ("echo x > ../outside/new", "write of "),
        ("cd sub; echo x > ../../outside/new", "write of "),
        ("echo x > link/new", "write of "),
        ("echo x > file-link", "write of "),
        ("cat < {out}/secret", "read of "),
        ("cat < link/secret", "read of "),
        ("cd {out}", "read of "),
        ("cd link && echo x", "read of "),
        ("false && cd sub; false || cd {out}", "read of "),
    ] {
        let error = desk.refuses(&format!("{made}{}", script.replace("{out}", &outside)));
        assert!(error.contains(word), "{script}: {error}");
        assert!(error.contains("a person can allow it by granting"), "{script}: {error}");
        assert!(!desk.has("made") && !desk.has("made2"), "{script}");
        assert!(!desk.outside().join("new").exists(), "{script}");
    }
}

#[test]
fn a_denied_script_costs_nothing_and_starts_nothing() {
    let mut desk = Desk::new(&["echo"]);
    desk.caveats.max_calls = CountBound::AtMost(1);
    let registry = desk.registry();
    let grant = registry.mint_grant(&desk.caveats).unwrap();
    let denied = call(&registry, &grant, json!({ "cmd": "echo a; rm b" })).unwrap_err();
    assert!(denied.denial().is_some(), "{denied}");
    let out = call(&registry, &grant, json!({ "cmd": "echo a" })).unwrap();
    assert_eq!(out["stdout"], "a\n");
    drop((grant, registry));
    let granted = all_records(&desk.journal(), Filter::default());
    let starts = granted.iter().filter(|record| format!("{record:?}").contains("start echo")).count();
    assert_eq!(starts, 2, "asked for when admitted and when started, in the second call alone");
}

#[test]
fn a_directory_is_what_it_was_when_the_command_runs() {
    let desk = Desk::new(&["echo", "mkdir", "rm", "cat"]);
    let refused = desk.refuses("cd nowhere; echo x > ../../outside/new");
    assert!(refused.contains("write of"), "{refused}");
    // Only where `cd` fails is the file outside; that way is asked for too.
    let error = desk.refuses("cd maybe || echo x > ../outside/new");
    assert!(error.contains("write of"), "{error}");
    assert_eq!(desk.says("mkdir maybe; cd maybe || exit 3; echo x > f; cat f"), "x\n");
    let too_many: String = (0..9).map(|n| format!("X{n}=1 && cd n{n}; ")).collect();
    assert!(desk.refuses(&too_many).contains("so many ways"));
}
