//! Capabilities: what parses prints and parses back; meets are within both sides; findings stay in the text.
#![no_main]

use bailiwick_policy::authority::Authority;
use bailiwick_policy::capability::Capability;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut read = Vec::new();
    for line in text.lines().take(16) {
        match line.parse::<Capability>() {
            Ok(capability) => {
                let printed = capability.to_string();
                assert_eq!(printed.parse::<Capability>().as_ref(), Ok(&capability), "{line:?} prints as {printed:?}");
                read.push(capability);
            }
            Err(finding) => {
                let span = finding.span().expect("a finding has a place");
                assert!(span.start <= span.end && span.end <= line.len(), "{line:?}: {span:?}");
                assert!(finding.help_text().is_some(), "{line:?}: {finding}");
            }
        }
    }
    let (front, back) = read.split_at(read.len() / 2);
    let (a, b) = (Authority::from_capabilities(front).expect("no variables"), Authority::from_capabilities(back).expect("no variables"));
    let met = a.meet(&b);
    // Undecided is an answer; a witness against these would be a bug.
    for (low, high) in [(&met, &a), (&met, &b), (&a, &a)] {
        if let bailiwick_policy::lattice::Containment::Exceeds(excess) = low.within(high) {
            panic!("exceeds: {excess}");
        }
    }
    if let bailiwick_policy::lattice::Containment::Exceeds(excess) = a.within(&b)
        && let Some(request) = excess.request()
    {
        assert!(a.allows(request) && !b.allows(request), "{request}");
    }
});
