//! Caveats: what parses has a meaning, and written as JSON it reads back the same.
#![no_main]

use bailiwick_manifest::caveats::Caveats;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Caveats::parse(text) {
        Ok(caveats) => {
            let authority = caveats.authority().expect("read entries have a meaning");
            assert!(authority.within(&authority).holds());
            let json = serde_json::to_string(&caveats).expect("serialisable");
            assert_eq!(Caveats::parse(&json).as_ref(), Ok(&caveats));
        }
        Err(findings) => {
            for finding in findings.as_slice() {
                let span = finding.span().expect("a finding has a place");
                assert!(span.start <= span.end && span.end <= text.len() + 1, "{finding} {span:?}");
            }
        }
    }
});
