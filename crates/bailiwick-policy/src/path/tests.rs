//! Path patterns against examples and against a brute-force model on a small universe.

use proptest::prelude::*;

use super::*;
use crate::lattice::Containment;

fn pattern(text: &str) -> PathPattern {
    parse_pattern(text, true).unwrap()
}

fn scope(texts: &[&str]) -> PathScope {
    let patterns: Vec<_> = texts.iter().map(|text| pattern(text)).collect();
    PathScope::union(&patterns)
}

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

#[test]
fn coverage_goes_by_components() {
    for (text, inside, outside) in [
        ("/tmp", &["/tmp", "/tmp/a", "/tmp/a/b"][..], &["/tmpfoo", "/", "/a"][..]),
        ("/d/**", &["/d", "/d/x", "/d/x/y"], &["/dx"]),
        ("/a/*", &["/a/b", "/a/.hidden"], &["/a", "/a/b/c"]),
        ("/a/*/b", &["/a/x/b"], &["/a/x/b/c", "/a/b", "/a/x/y/b"]),
        ("/a/**/b", &["/a/b", "/a/x/b", "/a/x/y/b"], &["/a/b/c", "/a"]),
        ("/**/*.txt", &["/x.txt", "/a/b/.txt"], &["/a.txt/b"]),
        ("/a/?[b-d]*", &["/a/xb", "/a/xdzz"], &["/a/b", "/a/xa"]),
        ("/a/[!x]", &["/a/y"], &["/a/x", "/a/yy"]),
        ("/a/[*]", &["/a/*", "/a/*/below"], &["/a/b"]),
        ("/", &["/", "/a"], &[]),
        ("/**", &["/", "/a/b"], &[]),
    ] {
        let set = scope(&[text]);
        for inner in inside {
            assert!(pattern(text).covers(&path(inner)) && set.covers(&path(inner)), "{text} covers {inner}");
            assert!(!set.deciding(&path(inner)).is_empty());
        }
        for outer in outside {
            assert!(!pattern(text).covers(&path(outer)) && !set.covers(&path(outer)), "{text} not {outer}");
        }
    }
}

#[test]
fn containment_is_decided() {
    for (a, b) in [
        (&["/a/*"][..], &["/a/[a-m]*", "/a/[!a-m]*"][..]),
        (&["/a/b/c"], &["/a/*/**"]),
        (&["/a/*.txt"], &["/a/*"]),
        (&["/a/**/b"], &["/a"]),
        (&["/a/?"], &["/a/[!.]"]),
        (&["/a/**"], &["/a"]),
        (&["/a"], &["/a/**"]),
        (&["/a/**/x/**/y"], &["/a/**/y"]),
        (&["/a"], &["/a/*/**", "/a"]),
        (&["/"], &["/*/**", "/", "/x"]),
    ] {
        assert_eq!(scope(a).within(&scope(b)), Containment::Contained, "{a:?} within {b:?}");
    }
    for (a, b, witness) in [
        (&["/tmp"][..], &["/tmp/a"][..], "/tmp"),
        (&["/a/*"], &["/a/[a-m]*", "/a/[o-z]*", "/a/[!a-z]*"], "/a/n"),
        (&["/a"], &["/a/*/**"], "/a"),
        (&["/a/**/y"], &["/a/**/x/**/y"], "/a/y"),
        (&["/**"], &[], "/"),
    ] {
        assert_eq!(scope(a).within(&scope(b)), Containment::Exceeds(path(witness)), "{a:?} not within {b:?}");
    }
}

#[test]
fn a_hard_question_is_undecided_and_not_guessed() {
    // The joint automaton must remember the last forty letters: two to the forty states.
    let stars: Vec<String> = (0..14).map(|n| format!("/*a{}", "?".repeat(n))).collect();
    let texts: Vec<&str> = stars.iter().map(String::as_str).collect();
    let longer = format!("/*a{}", "?".repeat(40));
    assert_eq!(scope(&[&longer]).within(&scope(&texts)), Containment::Undecided);
}

#[test]
fn meets_are_explicit_where_they_can_be() {
    for (a, b, met) in [
        (&["/a", "/b/c"][..], &["/a/x", "/b"][..], "/a/x/** /b/c/**"),
        (&["/a/*.txt"], &["/a"], "/a/*.txt"),
        (&["/a/*"], &["/a/b"], ""),
        (&["/a/x*"], &["/a/y*"], "none"),
        (&["/a/*"], &["/a/**"], "/a/*"),
    ] {
        let PathScope::Only(clauses) = scope(a).meet(&scope(b)) else {
            assert_eq!(met, "none", "{a:?} {b:?}");
            continue;
        };
        let text: Vec<String> = match clauses.sets().len() {
            1 => clauses
                .sets()
                .flat_map(|set| set.patterns().collect::<Vec<_>>())
                .map(|p| p.to_string())
                .collect(),
            _ => vec![],
        };
        assert_eq!(text.join(" "), met, "{a:?} {b:?}");
    }
}

/// Every component shape that the generated globs can tell apart, three deep.
fn universe() -> Vec<AbsPath> {
    let names = ["a", "b", "c", "ab", "ba", "cc", "aab", ".a"];
    let mut all = vec![String::new()];
    let mut layer = vec![String::new()];
    for _ in 0..3 {
        layer =
            layer.iter().flat_map(|base| names.iter().map(move |name| format!("{base}/{name}"))).collect();
        all.extend(layer.iter().cloned());
    }
    all.iter().map(|text| path(if text.is_empty() { "/" } else { text })).collect()
}

fn any_pattern() -> impl Strategy<Value = String> {
    let part =
        prop::sample::select(vec!["a", "b", "ab", "*", "**", "?", "a*", "*b", "[ab]", "[!a]", "?b", "a?*"]);
    prop::collection::vec(part, 0..4).prop_map(|parts| format!("/{}", parts.join("/")))
}

fn any_scope() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(any_pattern(), 0..4)
}

fn build(texts: &[String]) -> PathScope {
    scope(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn union_matches_each_pattern(texts in any_scope(), at in 0_usize..585) {
        let path = universe().swap_remove(at);
        let expected = texts.iter().any(|text| pattern(text).covers(&path));
        prop_assert_eq!(build(&texts).covers(&path), expected);
        prop_assert_eq!(!build(&texts).deciding(&path).is_empty(), expected);
    }

    #[test]
    fn patterns_print_and_read_back(text in "/([a-c*?.!^\\-\\]~$ é]|\\[!?[\\]\\-!^a-c][a-f]-[g-z]?[\\-!^]?\\]){1,6}(/[a*]{1,2}){0,2}") {
        if let Ok(read) = parse_pattern(&text, false) {
            prop_assert_eq!(parse_pattern(&read.to_string(), false), Ok(read));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn meet_and_containment_agree_with_the_model(a in any_scope(), b in any_scope(), c in any_scope()) {
        let (x, y, z) = (build(&a), build(&b), build(&c));
        let met = x.meet(&y);
        let all = universe();
        for path in &all {
            prop_assert_eq!(met.covers(path), x.covers(path) && y.covers(path), "{} {:?} {:?}", path, a, b);
        }
        for (low, high) in [(&x, &y), (&met, &x), (&met, &y), (&met, &z), (&x, &met), (&z, &met)] {
            match low.within(high) {
                Containment::Contained => prop_assert!(all.iter().all(|p| !low.covers(p) || high.covers(p)), "{:?} {:?}", low, high),
                Containment::Exceeds(witness) => prop_assert!(low.covers(&witness) && !high.covers(&witness), "{}", witness),
                Containment::Undecided => prop_assert!(false, "undecided"),
            }
        }
        prop_assert!(met.within(&x).holds() && met.within(&y).holds());
        prop_assert_eq!(x.within(&y).holds(), x.within(&met).holds());
        prop_assert!(x.meet(&y).within(&y.meet(&x)).holds() && y.meet(&x).within(&x.meet(&y)).holds());
        let (left, right) = (x.meet(&y).meet(&z), x.meet(&y.meet(&z)));
        prop_assert!(left.within(&right).holds() && right.within(&left).holds());
        prop_assert_eq!(x.meet(&x), x);
    }
}
