//! HTTP: a head ends where an empty line ends it, and bodies are as long however they are cut.
#![no_main]

use bailiwick_egress::fuzzing::{Body, Framing, Parsed, http_head};
use libfuzzer_sys::fuzz_target;

fn body(kind: Body, bytes: &[u8], size: usize) -> Option<usize> {
    let mut framing = Framing::new(kind);
    let (mut said, mut total) = (Vec::new(), 0);
    for piece in bytes.chunks(size) {
        said.extend_from_slice(piece);
        let taken = framing.advance(&said).ok()?;
        said.drain(..taken);
        total += taken;
        if framing.is_done() {
            return Some(total);
        }
        assert!(said.len() < 64, "what cannot be placed yet is short");
    }
    None
}

fuzz_target!(|bytes: &[u8]| {
    if let Parsed::Head(head) = http_head(bytes) {
        let (front, rest) = bytes.split_at(head.length);
        assert!(front.ends_with(b"\r\n\r\n"));
        let lines = front.split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(lines, front.windows(2).filter(|pair| pair == b"\r\n").count());
        let named = |line: &&[u8]| line.len() > 5 && line[..5].eq_ignore_ascii_case(b"host:");
        assert_eq!(front.split(|byte| *byte == b'\n').filter(named).count(), 1);
        assert_eq!(body(head.body, rest, 1), body(head.body, rest, 64 * 1024));
    }
    assert_eq!(body(Body::Chunked, bytes, 1), body(Body::Chunked, bytes, 64 * 1024));
});
