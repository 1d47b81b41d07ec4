//! What the file's language means, and what it refuses.

use super::*;
use bailiwick_policy::finding::Code;

fn target(text: &str) -> Target {
    Target::parse(text).unwrap_or_else(|finding| panic!("{text}: {finding}"))
}

#[test]
fn a_target_splits_at_the_first_parenthesis() {
    let parsed = target("shell(command=a (b|c) d)");
    assert_eq!(parsed.subject, Subject::Capability("shell".into()));
    assert_eq!(parsed.pattern, Pattern::Argument { name: "command".into(), regex: "a (b|c) d".into() });
    assert_eq!(target("shell").pattern, Pattern::None);
    assert_eq!(target("shell(rm)").pattern, Pattern::Whole("rm".into()));
    assert_eq!(target("*(a.b=c)").pattern, Pattern::Whole("a.b=c".into()), "`a.b` is no argument's name");
    assert_eq!(target("shell()").pattern, Pattern::Whole(String::new()));
    let tool = |tool: Option<&str>| Subject::Tool { server: "git".into(), tool: tool.map(Into::into) };
    assert_eq!(target("git:push").subject, tool(Some("push")));
    assert_eq!(target("git:*").subject, tool(None));
}

#[test]
fn a_class_is_a_verb_with_kinds() {
    let Subject::Classes(classes) = target("deletes(vital, outside)").subject else { panic!("no class") };
    let names: Vec<String> = classes.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["deletes(vital)", "deletes(outside)"]);
    assert_eq!(target("deletes(vital, outside)").to_string(), "deletes(vital, outside)");
    for (bad, why) in [
        ("reads", "`reads` is a class of calls and needs its kind in parentheses"),
        ("reads(secrets)", "`reads` has no kind `secrets`"),
        ("reads(", "`reads` is a class of calls and needs its kind in parentheses"),
    ] {
        let finding = Target::parse(bad).map(|_| ()).expect_err(bad);
        assert_eq!((finding.code(), finding.message()), (Code::GuardrailTarget, why));
        assert_eq!(finding.help_text(), Some("write `reads(secret)`, or several kinds with commas"));
    }
}

#[test]
fn targets_that_cannot_be_meant_are_refused() {
    for bad in ["", "shell(", "shell(a", "shell(a)b", "a b", "ok:shell", "git:", ":push", "git:a:b"] {
        assert_eq!(Target::parse(bad).map_err(|finding| finding.code()), Err(Code::GuardrailTarget), "{bad}");
    }
}

#[test]
fn a_condition_has_a_sign_and_may_say_ok() {
    let read = |text| Condition::parse(text).map(|one| (one.present, one.succeeded, one.target.to_string()));
    assert_eq!(read("+shell(command=cargo test)"), Ok((true, false, "shell(command=cargo test)".into())));
    assert_eq!(read("-ok:git:push"), Ok((false, true, "git:push".into())));
    assert!(read("shell").is_err());
}

#[test]
fn whatever_is_unknown_is_a_finding() {
    let cases = [
        ("[[guards]]\nmatch = \"a\"\nmessage = \"b\"", Code::GuardrailUnknownField),
        ("[[guard]]\nmatch = \"a\"\nmessage = \"b\"\nwhen_not = []", Code::GuardrailUnknownField),
        ("[[guard]]\nmatch = \"a\"\nmessage = \"b\"\nx-note = 1", Code::GuardrailUnknownField),
        ("[[guard]]\nmatch = \"a\"", Code::GuardrailShape),
        ("[[guard]]\nmessage = \"a\"", Code::GuardrailShape),
        ("[[guard]]\nmatch = \"a\"\nmessage = \" \"", Code::GuardrailShape),
        ("[guard]\nmatch = \"a\"\nmessage = \"b\"", Code::GuardrailShape),
        ("[[guard]]\nmatch = \"a\"\nmessage = \"b\"\naction = \"warn\"", Code::GuardrailShape),
        ("[[hook]]\non = \"sucess\"\nscript = \"a\"", Code::GuardrailShape),
        ("[[hook]]\nscript = \"../a\"", Code::GuardrailScript),
        ("[[hook]]\nscript = \"/bin/a\"", Code::GuardrailScript),
        ("[[hook]]\nscript = \"a//b\"", Code::GuardrailScript),
        ("[[validator]]\nscript = \"a\"", Code::GuardrailShape),
        (
            "[[validator]]\nname = \"a\"\nscript = \"a\"\n[[validator]]\nname = \"a\"\nscript = \"b\"",
            Code::GuardrailDuplicateName,
        ),
        ("[capabilities]\n\"ok:x\" = \"shell\"", Code::GuardrailTarget),
        ("[capabilities]\nshell = \"shell\"", Code::GuardrailTarget),
        ("[[guard]", Code::SourceSyntax),
    ];
    for (text, code) in cases {
        let findings = Guardrails::parse(text).map(|_| ()).expect_err(text);
        assert_eq!(findings.as_slice()[0].code(), code, "{text}: {findings}");
        assert!(findings.as_slice()[0].help_text().is_some(), "{text}");
    }
}

#[test]
fn a_role_covers_its_domain() {
    let text = "[[validator]]\nname = \"v\"\nroles = [\"developer\"]\nscript = \"./a.sh\"";
    let rails = Guardrails::parse(text).unwrap();
    let [validator] = &rails.validators[..] else { panic!("one validator") };
    for (role, covered) in
        [("developer", true), ("developer:general", true), ("developers", false), ("", false)]
    {
        assert_eq!(validator.covers(role), covered, "{role}");
    }
    assert_eq!(validator.script.value, "a.sh");
}

#[test]
fn a_finding_stands_where_its_text_does() {
    let text = "[[guard]]\nmatch = \"shell(rm\"\nmessage = \"b\"";
    let findings = Guardrails::parse(text).map(|_| ()).expect_err("unclosed");
    let span = findings.as_slice()[0].span().unwrap();
    assert_eq!(text.get(span.start..span.end), Some("shell(rm"));
}
