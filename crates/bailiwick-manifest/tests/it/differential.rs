//! Caveats against those of the peer protocol crate, on the fragment where both mean the same: plain names, hosts
//! and numbers, and trees of one component (the peer compares paths as text, here they are trees).

use std::collections::BTreeSet;

use agent_mesh_protocol::{
    Caveats as PeerCaveats, caveats::CountBound as PeerBound, caveats::Scope as PeerScope,
};
use bailiwick_manifest::caveats::{Caveats, Scope};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::lattice::{Containment, CountBound};
use proptest::prelude::*;

fn scope(universe: &'static [&'static str]) -> impl Strategy<Value = PeerScope<String>> {
    let some = proptest::sample::subsequence(universe, 0..=universe.len());
    prop_oneof![
        1 => Just(PeerScope::All),
        4 => some.prop_map(|names| PeerScope::only(names.into_iter().map(str::to_owned))),
    ]
}

fn generations() -> impl Strategy<Value = PeerScope<u64>> {
    let number = prop_oneof![0_u64..4, Just(u64::MAX)];
    prop_oneof![Just(PeerScope::All), proptest::collection::btree_set(number, 0..4).prop_map(PeerScope::Only)]
}

fn bound() -> impl Strategy<Value = PeerBound> {
    prop_oneof![
        Just(PeerBound::Unlimited),
        (0_u64..4).prop_map(PeerBound::AtMost),
        Just(PeerBound::AtMost(u64::MAX))
    ]
}

fn peer() -> impl Strategy<Value = PeerCaveats> {
    let paths = || scope(&["/a", "/b", "/ab", "/.c", "/été"]);
    let programs = scope(&["git", "cargo", "g++", "sh"]);
    let hosts = scope(&["a.test", "b.a.test", "test", "example.com"]);
    (paths(), paths(), programs, hosts, bound(), generations()).prop_map(
        |(fs_read, fs_write, exec, net, max_calls, valid_for_generation)| PeerCaveats {
            fs_read,
            fs_write,
            exec,
            net,
            max_calls,
            valid_for_generation,
        },
    )
}

/// The peer's JSON, read here.
fn ours(peer: &PeerCaveats) -> Caveats {
    Caveats::parse(&serde_json::to_string(peer).unwrap()).unwrap()
}

fn authority(peer: &PeerCaveats) -> Authority {
    ours(peer).authority().unwrap()
}

fn leq(a: &Authority, b: &Authority) -> bool {
    match a.within(b) {
        Containment::Contained => true,
        Containment::Exceeds(_) => false,
        Containment::Undecided => panic!("{a:?} within {b:?} is not decided"),
    }
}

fn same_scope<T: Ord + Clone>(ours: &Scope<T>, peers: &PeerScope<T>) -> bool {
    match (ours, peers) {
        (Scope::All, PeerScope::All) => true,
        (Scope::Only(a), PeerScope::Only(b)) => a == b,
        (Scope::All, PeerScope::Only(_)) | (Scope::Only(_), PeerScope::All) => false,
    }
}

proptest! {
    #[test]
    fn meet_agrees(a in peer(), b in peer()) {
        let (met, expected) = (authority(&a).meet(&authority(&b)), authority(&a.meet(&b)));
        prop_assert!(leq(&met, &expected) && leq(&expected, &met));
        prop_assert!(met == expected);
    }

    #[test]
    fn containment_agrees(a in peer(), b in peer()) {
        prop_assert_eq!(leq(&authority(&a), &authority(&b)), a.leq(&b));
        let met = a.meet(&b);
        prop_assert!(leq(&authority(&met), &authority(&a)) && leq(&authority(&met), &authority(&b)));
    }

    #[test]
    fn the_peers_text_is_read_with_its_meaning(peer in peer()) {
        let read = ours(&peer);
        prop_assert!(same_scope(&read.fs_read, &peer.fs_read));
        prop_assert!(same_scope(&read.fs_write, &peer.fs_write));
        prop_assert!(same_scope(&read.exec, &peer.exec));
        prop_assert!(same_scope(&read.net, &peer.net));
        prop_assert!(same_scope(&read.valid_for_generation, &peer.valid_for_generation));
        let calls = match peer.max_calls {
            PeerBound::Unlimited => CountBound::Unlimited,
            PeerBound::AtMost(calls) => CountBound::AtMost(calls),
        };
        prop_assert_eq!(read.max_calls, calls);
        prop_assert_eq!(&read.env, &Scope::none());
        prop_assert_eq!(&read.ipc, &Scope::none());
    }

    #[test]
    fn our_text_is_read_by_the_peer(peer in peer()) {
        let written = serde_json::to_string(&ours(&peer)).unwrap();
        let read: PeerCaveats = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(read, peer);
    }

    #[test]
    fn generations_agree(peer in peer(), generation in prop_oneof![0_u64..5, Just(u64::MAX)]) {
        let listed = match &peer.valid_for_generation {
            PeerScope::All => true,
            PeerScope::Only(numbers) => numbers.contains(&generation),
        };
        prop_assert_eq!(authority(&peer).allows_generation(generation), listed);
    }
}

#[test]
fn both_ends_are_the_same() {
    let bottom = PeerCaveats {
        fs_read: PeerScope::none(),
        fs_write: PeerScope::none(),
        exec: PeerScope::none(),
        net: PeerScope::none(),
        max_calls: PeerBound::AtMost(0),
        valid_for_generation: PeerScope::Only(BTreeSet::new()),
    };
    assert_eq!(ours(&bottom), Caveats::bottom());
    let top = Caveats { env: Scope::none(), ipc: Scope::none(), ..Caveats::top() };
    assert_eq!(ours(&PeerCaveats::top()), top);
}
