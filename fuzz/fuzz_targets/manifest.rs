//! Manifests: never a panic, findings inside the text, canonical form is a fixed point.
#![no_main]

use bailiwick_policy::facts::HostFacts;
use bailiwick_manifest::Manifest;
use bailiwick_manifest::snapshot::Snapshot;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Manifest::parse(text) {
        Ok(manifest) => {
            let canonical = manifest.canonical();
            let again = Manifest::parse(&canonical.to_string()).expect("the canonical form is a manifest");
            assert_eq!(again.canonical(), canonical);
            let snapshot = Snapshot::from_manifest(manifest.clone()).expect("canonical JSON");
            let read = Snapshot::parse(&snapshot.to_text().expect("canonical JSON")).expect("reads back");
            assert_eq!(read.hash(), snapshot.hash());
            let facts = HostFacts::unknown().with_variable("HOME", "/home/a").expect("a path");
            drop(manifest.check(&facts));
        }
        Err(findings) => {
            assert!(!findings.as_slice().is_empty());
            for finding in findings.as_slice() {
                let span = finding.span().unwrap_or(bailiwick_policy::finding::Span::new(0, 0));
                assert!(span.start <= span.end && span.end <= text.len() + 1, "{finding} {span:?}");
            }
        }
    }
});
