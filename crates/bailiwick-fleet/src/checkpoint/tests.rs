//! Checkpoints of other logs, other keys and other times, and which may follow which.

use super::*;
use crate::merkle::leaf_hash;
use crate::note::NoteSigner;

const ORIGIN: &str = "fleet.example/log";

fn hub() -> NoteSigner {
    NoteSigner::new(ORIGIN, &[1; 32]).unwrap()
}

fn witness(number: u8) -> NoteSigner {
    NoteSigner::witness(&format!("witness.example/{number}"), &[number; 32]).unwrap()
}

fn trust() -> Trust {
    Trust::hub(ORIGIN, vec![hub().verifier()])
}

fn checkpoint(size: u64, root: &str, time_ms: u64) -> Checkpoint {
    Checkpoint { origin: ORIGIN.to_owned(), size, root: leaf_hash(root.as_bytes()), time_ms }
}

fn head(size: u64, root: &str, time_ms: u64) -> SignedHead {
    trust().open(&checkpoint(size, root, time_ms).sign(&hub()).unwrap()).unwrap()
}

#[test]
fn a_checkpoint_is_opened_by_the_key_that_signed_it() {
    let signed = checkpoint(3, "a", 5_000).sign(&hub()).unwrap();
    assert_eq!(trust().open(&signed).unwrap().checkpoint, checkpoint(3, "a", 5_000));
    let other = NoteSigner::new(ORIGIN, &[9; 32]).unwrap();
    assert_eq!(Trust::hub(ORIGIN, vec![other.verifier()]).open(&signed), Err(CheckpointError::Unsigned));
    assert_eq!(Trust::hub(ORIGIN, Vec::new()).open(&signed), Err(CheckpointError::Unsigned));
    let elsewhere = Trust::hub("other.example/log", vec![hub().verifier()]).open(&signed);
    assert_eq!(elsewhere, Err(CheckpointError::Origin(ORIGIN.to_owned(), "other.example/log".to_owned())));
}

#[test]
fn a_text_with_anything_else_is_no_checkpoint() {
    let text = checkpoint(30, "a", 5_000).text();
    assert_eq!(Checkpoint::parse(&text), Ok(checkpoint(30, "a", 5_000)));
    for wrong in [
        String::new(),
        text.trim_end().to_owned(),
        text.replace("\n30\n", "\n030\n"),
        text.replace("\n30\n", "\n-30\n"),
        text.replace("\n30\n", "\n+30\n"),
        text.replace("\n30\n", "\n18446744073709551616\n"),
        text.replace("time 5000", "time 05000"),
        text.replace("time", "Time"),
        format!("{text}more\n"),
        text.replace("time 5000\n", ""),
        text.replacen('=', "", 1),
    ] {
        assert!(Checkpoint::parse(&wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn k_of_n_witnesses_sign() {
    let wanted = |quorum, numbers: &[u8]| Trust {
        witnesses: numbers.iter().map(|number| witness(*number).verifier()).collect(),
        quorum,
        ..trust()
    };
    let signed = checkpoint(3, "a", 90_000).sign(&hub()).unwrap();
    let signed = cosign(&signed, &witness(2), 60).unwrap();
    let signed = cosign(&signed, &witness(3), 70).unwrap();
    let fresh = |trust: Trust| trust.open(&signed).map(|head| head.fresh_ms);
    assert_eq!(fresh(wanted(0, &[2, 3, 4])), Ok(90_000));
    assert_eq!(fresh(wanted(1, &[2, 3, 4])), Ok(70_999), "one is enough, and the newest counts");
    assert_eq!(fresh(wanted(2, &[2, 3, 4])), Ok(60_999));
    assert_eq!(fresh(wanted(3, &[2, 3, 4])), Err(CheckpointError::Quorum(2, 3)));
    assert_eq!(fresh(wanted(1, &[4, 5])), Err(CheckpointError::Quorum(0, 1)));
    assert_eq!(fresh(wanted(2, &[2, 2, 4])), Err(CheckpointError::Quorum(1, 2)), "a key counts once");
    // The hub's own key does not count as a witness, whatever it is called.
    let named = NoteSigner::witness("witness.example/4", &[8; 32]).unwrap();
    let forged = cosign(&signed, &named, 80).unwrap();
    assert_eq!(wanted(3, &[2, 3, 4]).open(&forged), Err(CheckpointError::Quorum(2, 3)));
    // A witness from the future does not make a checkpoint fresher than the hub says.
    let later = cosign(&checkpoint(3, "a", 90_000).sign(&hub()).unwrap(), &witness(2), u64::MAX).unwrap();
    assert_eq!(wanted(1, &[2]).open(&later).unwrap().fresh_ms, 90_000);
}

#[test]
fn only_a_head_that_goes_on_follows() {
    let held = head(5, "a", 10_000);
    let judge = |size, root, time| judge_successor(Some(&held), &head(size, root, time), 20_000);
    assert_eq!(judge(5, "a", 10_000), Ok(Succession::Same));
    assert_eq!(judge(5, "a", 11_000), Ok(Succession::Same));
    assert_eq!(judge(6, "b", 9_000), Ok(Succession::Grown));
    let code = |size, root, time| judge(size, root, time).unwrap_err().code();
    assert_eq!(code(5, "b", 11_000), "fleet-log-forked");
    assert_eq!(code(4, "b", 11_000), "fleet-log-rolled-back");
    assert_eq!(code(4, "b", 9_000), "fleet-checkpoint-replayed");
    assert_eq!(code(5, "a", 9_000), "fleet-checkpoint-replayed");
    assert_eq!(code(6, "b", 20_001 + MAX_SKEW_MS), "fleet-checkpoint-future");
    assert_eq!(judge_successor(None, &head(0, "", 0), 20_000), Ok(Succession::Grown));
}

#[test]
fn a_refusal_names_both_roots() {
    let held = head(5, "a", 10_000);
    for offered in [head(5, "b", 11_000), head(4, "b", 11_000), head(4, "b", 9_000), head(6, "b", 900_000)] {
        let said = judge_successor(Some(&held), &offered, 20_000).unwrap_err().to_string();
        for root in ["a", "b"] {
            assert!(said.contains(&leaf_hash(root.as_bytes()).to_string()), "{said}");
        }
    }
}
