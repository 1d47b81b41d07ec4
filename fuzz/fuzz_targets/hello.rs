//! First words: however they are cut, the answer is the same, and no byte is lost or made up.
#![no_main]

use bailiwick_egress::{Hello, Listening};
use libfuzzer_sys::fuzz_target;

fn heard(bytes: &[u8], size: usize) -> (Option<Hello>, Vec<u8>) {
    let mut listening = Listening::default();
    let hello = bytes.chunks(size).find_map(|piece| listening.read_piece(piece));
    (hello, listening.into_bytes())
}

fuzz_target!(|bytes: &[u8]| {
    let (whole, kept) = heard(bytes, usize::MAX);
    assert_eq!(kept, bytes);
    for size in [1, 7] {
        let (hello, kept) = heard(bytes, size);
        assert!(bytes.starts_with(&kept));
        // A refusal may come for another reason when less was there; a name or a request may not differ.
        if let Some(Hello::Tls { .. } | Hello::Http(_)) = whole {
            assert_eq!(hello, whole, "in pieces of {size}");
        }
        if let Some(Hello::Tls { .. } | Hello::Http(_)) = hello {
            assert_eq!(hello, whole, "in pieces of {size}");
        }
    }
});
