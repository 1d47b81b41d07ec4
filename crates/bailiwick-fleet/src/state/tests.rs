//! What a sequence of entries means.

use super::*;
use crate::entry::{Lift, Scope};

const NOW: u64 = 10_000_000;

fn grant(id: &str, server: &str) -> EntryBody {
    EntryBody::Grant(Grant {
        id: id.to_owned(),
        scope: Scope::Every,
        server: server.to_owned(),
        grant: "x".to_owned(),
        expires_ms: None,
        max_stale_s: None,
    })
}

fn revocation(id: &str, target: Target) -> EntryBody {
    EntryBody::Revocation(Revocation { id: id.to_owned(), target, reason: "leaked".to_owned() })
}

fn lift(id: &str) -> EntryBody {
    EntryBody::Lift(Lift { revocation: id.to_owned(), reason: String::new() })
}

fn machine(id: &str, labels: &[&str], removed: bool) -> EntryBody {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    EntryBody::MemberKey(MemberKey {
        member: id.to_owned(),
        role: Role::Machine,
        key: Hash::sha256(b"k"),
        labels,
        removed,
    })
}

fn state(bodies: impl IntoIterator<Item = EntryBody>) -> FleetState {
    let mut state = FleetState::default();
    bodies.into_iter().for_each(|body| state.apply(&Entry::new(0, "alice", body)));
    state
}

fn files() -> Subject<'static> {
    Subject { machine: "m1", server: "files", ..Subject::default() }
}

#[test]
fn a_revoked_grant_stays_revoked() {
    let target = Target::Grant { grant: "g1".to_owned() };
    let live = state([grant("g1", "files"), grant("g2", "files")]).view(&files(), NOW, NOW);
    assert_eq!(live.grants.len(), 2);
    let after = state([grant("g1", "files"), revocation("r1", target), lift("r1"), grant("g1", "files")]);
    let view = after.view(&files(), NOW, NOW);
    assert_eq!(view.grants, []);
    assert_eq!(view.ended, [("g1".to_owned(), GrantEnd::Revoked("leaked".to_owned()))]);
}

#[test]
fn a_grant_ends_with_its_time_and_with_a_stale_copy() {
    let granted = state([grant("g1", "files")]);
    let view = |now| granted.view(&files(), now, NOW);
    let last = NOW + DEFAULT_MAX_STALE_S * 1000;
    assert_eq!(view(last).valid_until_ms, Some(last));
    assert_eq!(view(last + 1).grants, []);
    assert!(matches!(view(last + 1).ended[..], [(_, GrantEnd::Stale { age_s: 900, max_stale_s: 900 })]));
    let EntryBody::Grant(mut short) = grant("g1", "files") else { unreachable!() };
    (short.expires_ms, short.max_stale_s) = (Some(NOW + 5), Some(u64::MAX));
    let short = state([EntryBody::Grant(short)]);
    assert_eq!(short.view(&files(), NOW, 0).valid_until_ms, Some(NOW + 5));
    assert!(matches!(short.view(&files(), NOW + 5, 0).ended[..], [(_, GrantEnd::Expired)]));
}

#[test]
fn what_is_revoked_is_what_was_named() {
    let package = |version: &str| crate::entry::Package {
        registry: "npm".to_owned(),
        name: "x".to_owned(),
        version: Some(version.to_owned()),
    };
    let (own, other, surface) = (package("1"), package("2"), Hash::sha256(b"s"));
    let subject = Subject { package: Some(&own), surface: Some(&surface), ..files() };
    for (target, is_meant) in [
        (Target::Everything, true),
        (Target::Machine { machine: "m1".to_owned() }, true),
        (Target::Machine { machine: "m2".to_owned() }, false),
        (Target::Server { server: "files".to_owned() }, true),
        (Target::Server { server: "file".to_owned() }, false),
        (Target::Package(own.clone()), true),
        (Target::Package(other), false),
        (Target::Pin { surface }, true),
        (Target::Pin { surface: Hash::sha256(b"t") }, false),
        (Target::Token { sha256: surface }, false),
        (Target::Grant { grant: "files".to_owned() }, false),
    ] {
        let shown = format!("{target:?}");
        let revoked = state([revocation("r1", target)]);
        assert_eq!(revoked.server_revocation(&subject).is_some(), is_meant, "{shown}");
        assert_eq!(
            revoked.view(&subject, u64::MAX, 0).revoked.is_some(),
            is_meant,
            "however old the copy is: {shown}"
        );
    }
    assert!(
        state([revocation("r1", Target::Token { sha256: surface })]).token_revocation(&surface).is_some()
    );
}

#[test]
fn a_lift_ends_what_may_end() {
    let everything = state([revocation("r1", Target::Everything), lift("r1")]);
    assert_eq!(everything.server_revocation(&files()), None);
    let machine = state([revocation("r1", Target::Machine { machine: "m1".to_owned() }), lift("r1")]);
    assert!(machine.server_revocation(&files()).is_some());
    assert_eq!(machine.size(), 2);
}

#[test]
fn labels_are_those_of_the_log() {
    let EntryBody::Grant(mut labelled) = grant("g1", "files") else { unreachable!() };
    labelled.scope = Scope::Labels(["ci".to_owned()].into());
    let granted = |bodies: &[EntryBody]| {
        let all = bodies.iter().cloned().chain([EntryBody::Grant(labelled.clone())]);
        state(all).view(&files(), NOW, NOW).grants.len()
    };
    assert_eq!(granted(&[]), 0);
    assert_eq!(granted(&[machine("m1", &["ci"], false)]), 1);
    assert_eq!(granted(&[machine("m2", &["ci"], false)]), 0);
    assert_eq!(granted(&[machine("m1", &["ci"], false), machine("m1", &["ci"], true)]), 0);
}

#[test]
fn an_empty_bundle_ends_the_one_before() {
    let rule = Rule { format: RuleFormat::Manifest, name: "files".to_owned(), text: String::new() };
    let bundle = |rules| EntryBody::Bundle(Bundle { name: "base".to_owned(), scope: Scope::Every, rules });
    let one = [bundle(vec![rule.clone()])];
    assert_eq!(state(one.clone()).view(&files(), NOW, 0).ceilings, [rule]);
    let other = Subject { server: "other", ..files() };
    assert_eq!(state(one.clone()).view(&other, NOW, 0).ceilings, []);
    assert_eq!(state(one.into_iter().chain([bundle(Vec::new())])).view(&files(), NOW, 0).ceilings, []);
}
