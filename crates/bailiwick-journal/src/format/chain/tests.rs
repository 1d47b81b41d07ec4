//! Every way to damage a chain is named and located; a whole one is accepted, across texts too.
use super::*;
use crate::format::{RecordKind, SealKind};

fn session(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn lines(name: &str, count: u64) -> Vec<Vec<u8>> {
    let mut chain = Chain::genesis(session(name));
    (0..count)
        .map(|time| {
            let mut out = Vec::new();
            chain.push_event(&Event::new(RecordKind::ToolCalled).at(time).with_tool("t"), &mut out);
            out
        })
        .collect()
}

fn verdict(lines: &[Vec<u8>]) -> Option<(usize, Tamper)> {
    verify_lines(&mut Chain::genesis(session("a")), &lines.concat(), |_, _| Ok(()))
        .err()
        .map(|located| (located.line, located.tamper))
}

/// The line with `change` applied to its body and its hash made right again.
fn rehashed(line: &[u8], change: impl Fn(String) -> String) -> Vec<u8> {
    let text = String::from_utf8(line.to_vec()).unwrap();
    let (body, _) = text.split_once(",\"hash\"").unwrap();
    let mut out = change(format!("{body}}}")).into_bytes();
    encode::finish(0, &mut out);
    out
}

#[test]
fn a_whole_chain_is_accepted_in_one_text_or_several() {
    let lines = lines("a", 6);
    assert_eq!(verdict(&lines), None);
    let mut chain = Chain::genesis(session("a"));
    for line in &lines {
        assert_eq!(verify_lines(&mut chain, line, |_, _| Ok(())), Ok(1));
    }
    assert_eq!(chain.next_seq(), 6);
    let point = chain.last().unwrap();
    assert_eq!(Chain::genesis(session("a")).after(point).next_seq(), 6);
    assert_eq!(Chain::genesis(session("a")).last(), None);
}

#[test]
fn every_damage_is_named_and_located() {
    let whole = lines("a", 6);
    let with = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut lines = whole.clone();
        change(&mut lines);
        verdict(&lines)
    };
    let edit = |line: &[u8]| String::from_utf8(line.to_vec()).unwrap().replace("\"t\"", "\"u\"").into_bytes();
    assert_eq!(with(&|l| l[2] = edit(&l[2])), Some((3, Tamper::Edited)));
    assert_eq!(with(&|l| l[2] = b"what\n".to_vec()), Some((3, Tamper::Edited)));
    assert_eq!(with(&|l| l[2] = b"\n".to_vec()), Some((3, Tamper::Edited)));
    let rehash = |l: &mut Vec<Vec<u8>>| l[2] = rehashed(&l[2], |body| body.replace("\"t\"", "\"u\""));
    assert_eq!(with(&rehash), Some((4, Tamper::Edited)));
    assert_eq!(with(&|l| drop(l.remove(2))), Some((3, Tamper::Dropped)));
    assert_eq!(with(&|l| drop(l.remove(0))), Some((1, Tamper::Dropped)));
    assert_eq!(with(&|l| l.swap(2, 3)), Some((3, Tamper::Reordered)));
    assert_eq!(with(&|l| l.swap(0, 5)), Some((1, Tamper::Reordered)));
    assert_eq!(with(&|l| l.insert(3, l[2].clone())), Some((4, Tamper::Duplicated)));
    assert_eq!(with(&|l| l.push(l[0].clone())), Some((7, Tamper::Duplicated)));
    assert_eq!(with(&|l| l[3] = lines("b", 6)[3].clone()), Some((4, Tamper::Spliced)));
    assert_eq!(with(&|l| *l = lines("b", 6)), Some((1, Tamper::Spliced)));
    let renamed = |l: &mut Vec<Vec<u8>>| {
        l[3] = rehashed(&lines("b", 6)[3], |body| body.replace("\"session\":\"b\"", "\"session\":\"a\""));
    };
    assert_eq!(with(&renamed), Some((4, Tamper::Edited)));
    let one = Digest::sha256(b"").to_string();
    let genesis = |l: &mut Vec<Vec<u8>>| {
        l[0] = rehashed(&l[0], |body| body.replace(&Digest::ZERO.to_string(), &one));
    };
    assert_eq!(with(&genesis), Some((1, Tamper::BadGenesis)));
    assert_eq!(with(&|l| assert_eq!(l[5].pop(), Some(b'\n'))), Some((6, Tamper::TornTail)));
}

#[test]
fn a_refusal_of_the_caller_is_located_too() {
    let text = lines("a", 3).concat();
    let mut chain = Chain::genesis(session("a"));
    let refuse = |number: usize, _: &Line<'_>| {
        if number == 2 { Err((Tamper::ForgedHead, "no".into())) } else { Ok(()) }
    };
    let located = verify_lines(&mut chain, &text, refuse).unwrap_err();
    assert_eq!((located.line, located.seq, located.tamper), (2, 1, Tamper::ForgedHead));
}

#[test]
fn a_seal_signs_all_it_says_and_comes_back() {
    let mut chain = Chain::genesis(session("a"));
    let mut out = Vec::new();
    chain.push_event(&Event::new(RecordKind::Fault), &mut out);
    let start = out.len();
    let seal = Seal {
        kind: SealKind::Head,
        session: session("a"),
        point: chain.last(),
        time: 7,
        key: Digest::sha256(b"key"),
    };
    let mut signed = Vec::new();
    let sign = |bytes: &[u8]| {
        signed = bytes.to_vec();
        Signature::from_bytes([9; 64])
    };
    chain.push_seal(&seal, sign, &mut out);
    let line = Line::parse(&out[start..out.len() - 1]).unwrap();
    assert!(line.hash_holds());
    assert_eq!(line.seal_kind(), Some(SealKind::Head));
    let (key, signature, bytes) = line.signed_bytes().unwrap();
    assert_eq!(
        (key, signature, bytes),
        (Digest::sha256(b"key"), Signature::from_bytes([9; 64]), signed.clone())
    );
    let body = signed.strip_prefix(SEAL_DOMAIN).unwrap();
    let value: serde_json::Value = serde_json::from_slice(body).unwrap();
    assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), body);
    assert!(matches!(line.record().unwrap().entry, crate::format::RecordBody::Seal(back, _) if back == seal));
    assert_eq!(verify_lines(&mut Chain::genesis(session("a")), &out, |_, _| Ok(())), Ok(2));
}

#[test]
fn codes_are_distinct() {
    let codes: std::collections::BTreeSet<_> = Tamper::ALL.iter().map(|tamper| tamper.code()).collect();
    assert_eq!(codes.len(), Tamper::ALL.len());
}
