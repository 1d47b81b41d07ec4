//! Source of tools in any language: never a panic, every place inside the text, facts survive the cache.
#![no_main]

use bailiwick_scan::fuzzing::scan_text;
use bailiwick_scan::{Deeds, CodeSpan};
use libfuzzer_sys::fuzz_target;

const ENDINGS: [&str; 6] = ["js", "kt", "py", "rs", "ts", "tsx"];

fuzz_target!(|input: (u8, &str)| {
    let (pick, text) = input;
    let report = scan_text(ENDINGS[usize::from(pick) % ENDINGS.len()], text).expect("facts are kept and read back");
    assert_eq!(report.lines(), text.split_inclusive('\n').count());
    let inside = |place: &CodeSpan| {
        assert!(place.start <= place.end && place.end <= text.len(), "{place:?}");
        assert!(text.is_char_boundary(place.start) && text.is_char_boundary(place.end), "{place:?}");
        assert!(place.line >= 1 && place.line <= report.lines().max(1), "{place:?}");
    };
    let deeds = |deeds: &Deeds| {
        deeds.uses().iter().for_each(|one| inside(one.place()));
        deeds.unknowns().iter().for_each(|one| inside(one.place()));
    };
    for tool in report.tools() {
        inside(tool.place());
        deeds(tool.deeds());
    }
    deeds(report.server());
});
