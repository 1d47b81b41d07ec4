//! Every form, in every mixture, across every border.

use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;

use super::*;

const TEXT: &[u8] = b"s3cr+t/\"va lue\"~ABC";

fn finder() -> Finder {
    Finder::new([TEXT, b"another-one-0123".as_slice()], Case::Exact)
}

fn forms() -> Vec<Vec<u8>> {
    forms_of(TEXT)
}

fn forms_of(text: &[u8]) -> Vec<Vec<u8>> {
    let hexed: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = text.iter().map(|byte| format!("%{byte:02X}")).collect();
    let escaped: String = text.iter().map(|byte| format!("\\u{byte:04x}")).collect();
    let json = serde_json::to_string(std::str::from_utf8(text).unwrap()).unwrap();
    let mixed: String = text
        .iter()
        .enumerate()
        .map(|(index, byte)| match index % 3 {
            0 => format!("%{byte:02x}"),
            1 => format!("\\u{byte:04X}"),
            _ => char::from(*byte).to_string(),
        })
        .collect();
    let marks = |write: fn(u8) -> String| {
        let each = text.iter().map(|byte| match byte {
            byte if is_escaped(*byte) => write(*byte),
            byte => char::from(*byte).to_string(),
        });
        each.collect::<String>().into_bytes()
    };
    let html = |byte: u8| match byte {
        b'"' => "&quot;".to_owned(),
        b'/' => "&#x2F;".to_owned(),
        other => format!("&#{other};"),
    };
    let mut forms = vec![
        marks(html),
        marks(|byte| format!("&#{byte:03};")),
        marks(|byte| format!("\\x{byte:02x}")),
        marks(|byte| format!("\\{}", char::from(byte))),
        text.to_vec(),
        hexed.to_uppercase().into_bytes(),
        hexed.into_bytes(),
        percent.to_lowercase().into_bytes(),
        percent.into_bytes(),
        escaped.into_bytes(),
        json.trim_matches('"').as_bytes().to_vec(),
        mixed.into_bytes(),
    ];
    for before in ["", "u", "me", "abc"] {
        let whole = [before.as_bytes(), text, b":x"].concat();
        let plain = STANDARD.encode(&whole);
        forms.push(plain.replace('+', "%2B").replace('/', "\\/").into_bytes());
        forms.push(plain.into_bytes());
        forms.push(URL_SAFE.encode(&whole).into_bytes());
    }
    forms
}

#[test]
fn every_form_is_found_wherever_it_is_cut() {
    let finder = finder();
    for form in forms() {
        let stream = [b"before s3c s3cr+", form.as_slice(), b" after"].concat();
        for cut in 0..=stream.len() {
            let mut search = Search::default();
            let mut found = Vec::new();
            let (one, other) = stream.split_at(cut);
            search.feed(&finder, one, |one| found.push(one));
            search.feed(&finder, other, |one| found.push(one));
            assert!(found.iter().any(|one| one.text == 0), "{} at {cut}", String::from_utf8_lossy(&form));
            let from = found.iter().map(|one| one.start).min().unwrap();
            assert!(from >= 15, "nothing before it");
        }
    }
}

#[test]
fn other_texts_are_not_found() {
    for text in ["s3cr+t/\"va lue\"~AB", "S3CR+T/\"VA LUE\"~ABC", "", "another-one-012", "%73%33"] {
        assert!(!finder().is_in(text.as_bytes()), "{text}");
    }
    let ignoring = Finder::new([TEXT], Case::Ignored);
    assert!(ignoring.is_in(&TEXT.to_ascii_lowercase()) && ignoring.is_in(&TEXT.to_ascii_uppercase()));
}

proptest! {
    /// Whatever may still become a text is within what is held back of any text of its kind.
    #[test]
    fn no_beginning_is_longer_than_what_its_kind_shows(value in "[a-zA-Z0-9+/_=\" -]{1,40}", form in 0_usize..24, cut in 0_usize..400) {
        let finder = Finder::new([value.as_bytes()], Case::Exact);
        let forms = forms_of(value.as_bytes());
        let form = &forms[form % forms.len()];
        let stream = &form[..cut.min(form.len())];
        let mut search = Search::default();
        search.feed(&finder, stream, |_| ());
        let shown = stream.iter().rev().take(finder.longest()).take_while(|byte| finder.may_be_part(**byte)).count();
        let begun = search.earliest().map_or(0, |start| stream.len() - usize::try_from(start).unwrap());
        prop_assert!(begun <= shown, "{begun} {shown} {}", String::from_utf8_lossy(stream));
    }

    /// What stands around a value, and where the pieces end, changes nothing.
    #[test]
    fn a_value_is_found_in_anything(
        value in "[a-zA-Z0-9+/_=-]{16,40}",
        before in proptest::collection::vec(any::<u8>(), 0..64),
        after in proptest::collection::vec(any::<u8>(), 0..64),
        size in 1_usize..40,
    ) {
        let finder = Finder::new([value.as_bytes()], Case::Exact);
        for form in [value.as_bytes().to_vec(), STANDARD.encode([&before, value.as_bytes(), &after].concat()).into_bytes()] {
            let stream = [&before[..], &form, &after].concat();
            let mut search = Search::default();
            let mut any = false;
            for piece in stream.chunks(size) {
                search.feed(&finder, piece, |_| any = true);
            }
            prop_assert!(any);
        }
    }
}
