//! Streams of events: however one is cut, the events are the same, and none holds more than was sent.
#![no_main]

use bailiwick_mcp::relay::remote::EventReader;
use libfuzzer_sys::fuzz_target;

/// The data of all events, and by what the stream is taken up again.
fn read(bytes: &[u8], size: usize) -> (Vec<Vec<u8>>, Option<String>, Option<u64>) {
    let mut reader = EventReader::default();
    let mut all = Vec::new();
    for piece in bytes.chunks(size) {
        let Ok(events) = reader.read(piece) else { break };
        all.extend(events.into_iter().map(|event| event.data));
    }
    (all, reader.last_id, reader.retry)
}

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes, usize::MAX);
    for size in [1, 7] {
        assert_eq!(read(bytes, size), whole, "in pieces of {size}");
    }
    let (events, id, _) = whole;
    assert!(events.iter().map(Vec::len).sum::<usize>() <= bytes.len());
    assert!(id.is_none_or(|id| id.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) && !id.is_empty()));
});
