//! The canonical form, and what is not in it.

use super::*;
use proptest::prelude::*;

fn entries() -> Vec<Entry> {
    let package = Package {
        registry: "npm".to_owned(),
        name: "@acme/files".to_owned(),
        version: Some("1.2.3".to_owned()),
    };
    let targets = [
        Target::Grant { grant: "g1".to_owned() },
        Target::Token { sha256: Hash::sha256(b"t") },
        Target::Machine { machine: "m1".to_owned() },
        Target::Package(package.clone()),
        Target::Pin { surface: Hash::sha256(b"s") },
        Target::Server { server: "files".to_owned() },
        Target::Everything,
    ];
    let revocation = |target| {
        EntryBody::Revocation(Revocation { id: "r1".to_owned(), target, reason: "leaked".to_owned() })
    };
    let mut bodies: Vec<EntryBody> = targets.into_iter().map(revocation).collect();
    let rule = Rule {
        format: RuleFormat::Manifest,
        name: "files".to_owned(),
        text: "tool = \"files\"\n".to_owned(),
    };
    let scopes = [
        Scope::Every,
        Scope::Machines(["m1".to_owned()].into()),
        Scope::Labels(["dev".to_owned(), "ci".to_owned()].into()),
    ];
    for scope in scopes {
        bodies.push(EntryBody::Bundle(Bundle {
            name: "base".to_owned(),
            scope: scope.clone(),
            rules: vec![rule.clone()],
        }));
        bodies.push(EntryBody::Grant(Grant {
            id: "g1".to_owned(),
            scope,
            server: "files".to_owned(),
            grant: String::new(),
            expires_ms: Some(1),
            max_stale_s: None,
        }));
    }
    bodies.push(EntryBody::Pin(Pin {
        server: "files".to_owned(),
        package: Some(package),
        surface: Hash::sha256(b"s"),
    }));
    bodies.push(EntryBody::Lift(Lift { revocation: "r1".to_owned(), reason: String::new() }));
    bodies.push(EntryBody::MemberKey(MemberKey {
        member: "m1".to_owned(),
        role: Role::Machine,
        key: Hash::sha256(b"k"),
        labels: ["dev".to_owned()].into(),
        removed: true,
    }));
    bodies.push(EntryBody::Heads(HeadBatch { sha256: Hash::sha256(b""), count: 0, bytes: 0 }));
    bodies.into_iter().map(|body| Entry::new(1_700_000_000_000, "alice", body)).collect()
}

#[test]
fn every_kind_is_read_back_from_its_canonical_bytes() {
    for entry in entries() {
        let bytes = entry.to_bytes().unwrap();
        assert_eq!(Entry::parse(&bytes), Ok(entry), "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn the_bytes_are_sorted_and_have_a_version() {
    let everything = &entries()[6];
    let expected = "{\"body\":{\"id\":\"r1\",\"kind\":\"revocation\",\"reason\":\"leaked\",\"target\":{\"what\":\"everything\"}},\
                    \"by\":\"alice\",\"time_ms\":1700000000000,\"version\":1}";
    assert_eq!(String::from_utf8(everything.to_bytes().unwrap()).unwrap(), expected);
}

#[test]
fn other_spellings_and_unknown_versions_are_refused() {
    let text = String::from_utf8(entries()[6].to_bytes().unwrap()).unwrap();
    let parse = |text: &str| Entry::parse(text.as_bytes());
    assert!(parse(&text).is_ok());
    assert_eq!(parse(&text.replace("\"version\":1", "\"version\":2")), Err(EntryError::Version(2)));
    for wrong in [
        text.replace(":1}", ": 1}"),
        text.replace("alice", "\\u0061lice"),
        text.replace("\"by\"", "\"extra\":1,\"by\""),
        text.replace("\"reason\"", "\"extra\":1,\"reason\""),
        text.replace("\"by\":\"alice\"", "\"by\":\"alice\",\"by\":\"bob\""),
        text.replace("\"id\":\"r1\"", "\"id\":\"r1\",\"id\":\"r2\""),
        text.replace("revocation", "Revocation"),
        text.replace("everything", "nothing"),
        text.replace("\"version\":1", "\"version\":1.0"),
        text.replace("1700000000000", "1.7e12"),
        text.replace("1700000000000", "9007199254740993"),
        format!("{text} "),
        text.replace('}', ""),
        String::new(),
    ] {
        assert!(parse(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_entry_that_does_not_fit_is_refused() {
    let mut entry = entries().remove(6);
    entry.by = "a".repeat(MAX_ENTRY);
    assert!(matches!(entry.to_bytes(), Err(EntryError::TooLarge(_))));
    entry.by = "alice".to_owned();
    entry.time_ms = MAX_NUMBER + 1;
    assert_eq!(entry.to_bytes(), Err(EntryError::Number));
}

#[test]
fn a_file_of_heads_is_the_one_that_was_named() {
    let head = |machine: &str| JournalHead {
        machine: machine.to_owned(),
        session: "s".to_owned(),
        seq: 7,
        hash: Hash::sha256(b"line"),
        key: Hash::sha256(b"key"),
        time_ms: 1,
    };
    let heads: BTreeSet<JournalHead> = [head("b"), head("a")].into();
    let bytes = encode_heads(&heads).unwrap();
    let batch =
        |bytes: &[u8], count| HeadBatch { sha256: Hash::sha256(bytes), count, bytes: bytes.len() as u64 };
    assert_eq!(decode_heads(&batch(&bytes, 2), &bytes), Ok(heads));
    assert!(decode_heads(&batch(&bytes, 3), &bytes).is_err());
    assert!(decode_heads(&batch(b"", 2), &bytes).is_err());
    let reversed: Vec<u8> = bytes.split_inclusive(|byte| *byte == b'\n').rev().flatten().copied().collect();
    assert_eq!(decode_heads(&batch(&reversed, 2), &reversed), Err(EntryError::NotCanonical));
}

#[test]
fn a_package_without_a_version_is_every_version() {
    let package = |version: Option<&str>| Package {
        registry: "npm".to_owned(),
        name: "x".to_owned(),
        version: version.map(str::to_owned),
    };
    assert!(package(None).covers(&package(Some("1"))));
    assert!(package(Some("1")).covers(&package(Some("1"))));
    assert!(!package(Some("1")).covers(&package(Some("1.0"))));
    assert!(!package(Some("1")).covers(&package(None)));
}

proptest! {
    #[test]
    fn one_other_byte_is_another_entry_or_none(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let entries = entries();
        let entry = &entries[which.index(entries.len())];
        let mut bytes = entry.to_bytes().unwrap();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        if let Ok(other) = Entry::parse(&bytes) {
            prop_assert_ne!(&other, entry);
            prop_assert_eq!(other.to_bytes().unwrap(), bytes);
        }
    }
}
