//! Notes that were changed, keys of other names, and the example of the text of signed-note.

use super::*;
use proptest::prelude::*;

fn signer() -> NoteSigner {
    NoteSigner::new("log.example/fleet", &[1; 32]).unwrap()
}

fn note() -> Note {
    let text = "log.example/fleet\n1\nroot\n";
    Note::new(text.to_owned(), vec![signer().sign(text, 0)]).unwrap()
}

/// A note that another implementation signed: the example of the `golang.org/x/mod/sumdb/note` documentation.
#[test]
fn a_note_of_another_implementation_verifies() {
    let key = NoteKey::parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW").unwrap();
    let text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n\
                \u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
    let note = Note::parse(text.as_bytes()).unwrap();
    assert_eq!(note.vouched_by(&key), Ok(Some(Vouched { time_s: None })));
    assert_eq!(note.to_string(), text);
    let changed = Note::parse(text.replace("answer", "Answer").as_bytes()).unwrap();
    assert_eq!(changed.vouched_by(&key), Err(NoteError::Signature("PeterNeumann".to_owned())));
}

#[test]
fn a_signature_holds_for_its_key_and_text_alone() {
    let (note, key) = (note(), signer().verifier());
    assert_eq!(note.vouched_by(&key), Ok(Some(Vouched { time_s: None })));
    let renamed = NoteKey::new("log.example/other", KeyUse::Note, *key.public()).unwrap();
    assert_eq!(note.vouched_by(&renamed), Ok(None));
    let other = NoteSigner::new("log.example/fleet", &[2; 32]).unwrap().verifier();
    assert_eq!(note.vouched_by(&other), Ok(None));
    let mut twice = note.clone();
    twice.push(signer().sign(note.text(), 0));
    assert_eq!(twice.vouched_by(&key), Err(NoteError::Twice("log.example/fleet".to_owned())));
}

#[test]
fn a_witness_vouches_for_a_time() {
    let witness = NoteSigner::witness("witness.example/one", &[3; 32]).unwrap();
    let text = "log.example/fleet\n1\nroot\n";
    let signature = witness.sign(text, 1_700_000_000);
    let note = Note::new(text.to_owned(), vec![signature.clone()]).unwrap();
    assert_eq!(note.vouched_by(&witness.verifier()), Ok(Some(Vouched { time_s: Some(1_700_000_000) })));
    let mut later = signature;
    later.bytes[7] ^= 1;
    let note = Note::new(text.to_owned(), vec![later]).unwrap();
    assert!(note.vouched_by(&witness.verifier()).is_err());
}

#[test]
fn keys_are_read_back() {
    let key = signer().verifier();
    assert_eq!(NoteKey::parse(&key.to_string()), Ok(key.clone()));
    let witness = NoteSigner::witness("w", &[1; 32]).unwrap().verifier();
    assert_eq!(NoteKey::parse(&witness.to_string()), Ok(witness));
    let text = key.to_string();
    for wrong in [
        "",
        "a",
        "a+b",
        "a+00000000+",
        &text.replace("fleet", "other"),
        &text.replace("+A", "+B"),
        "a b+1+AA==",
    ] {
        assert!(NoteKey::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_not_a_note_is_refused() {
    let good = note().to_string();
    assert!(Note::parse(good.as_bytes()).is_ok());
    for wrong in [
        String::new(),
        "\n\n".to_owned(),
        good.trim_end().to_owned(),
        good.replace("\n\n", "\n"),
        good.replace('\u{2014}', "-"),
        good.replace("root", "ro\tot"),
        good.replace("1\nroot", "1\r\nroot"),
        format!("{good}\n"),
        good.replace("root\n", "root\n\nmore\n"),
        format!("{good}{}", "\u{2014} a AAAAAAAA\n".repeat(MAX_LINES)),
    ] {
        assert!(Note::parse(wrong.as_bytes()).is_err(), "{wrong:?}");
    }
    assert!(Note::parse(&[good.as_bytes(), &[0xff]].concat()).is_err());
}

proptest! {
    #[test]
    fn a_note_with_one_other_byte_does_not_verify(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = note().to_string().into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        let verified = Note::parse(&bytes).and_then(|note| note.vouched_by(&signer().verifier()));
        prop_assert!(!matches!(verified, Ok(Some(_))), "{:?}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(note) = Note::parse(&bytes) {
            prop_assert_eq!(Note::parse(note.to_string().as_bytes()), Ok(note));
        }
    }
}
