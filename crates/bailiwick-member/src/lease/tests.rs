//! What is spent of a lease that is held, without any hub.

use super::*;

const END_MS: u64 = 1_000_000;

fn purse(directory: &Path) -> Purse {
    Purse::new(directory, "m1", "calls-of-all", BudgetUnit::Calls)
}

fn hold(purse: &Purse, amount: u64) {
    let lease = Lease {
        id: "0".repeat(32),
        budget: purse.budget.clone(),
        unit: purse.unit,
        amount,
        spent: 0,
        expires_ms: END_MS,
        skew_ms: 5_000,
        returned: false,
    };
    purse.write(Stage::Held { lease, spent: 0 }).unwrap();
}

#[test]
fn a_slice_is_spent_once_by_all_that_share_it() {
    let dir = tempfile::tempdir().unwrap();
    hold(&purse(dir.path()), 40);
    let passed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let own = purse(dir.path());
                    (0..20).filter(|_| own.spend(1, 0).is_ok()).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 40);
    assert_eq!(held(dir.path()).unwrap()[0].spent, 40);
}

#[test]
fn nothing_is_spent_that_is_not_held() {
    let dir = tempfile::tempdir().unwrap();
    let own = purse(dir.path());
    assert!(matches!(own.spend(1, 0), Err(SpendError::Empty(_))));
    hold(&own, 3);
    assert!(own.spend(2, 0).is_ok());
    assert!(matches!(own.spend(2, 0), Err(SpendError::Empty(_))), "one is left");
    assert!(matches!(own.spend(u64::MAX, 0), Err(SpendError::Empty(_))), "a sum that overflows");
    assert!(own.spend(1, END_MS - 5_001).is_ok());
    hold(&own, 3);
    assert!(matches!(own.spend(1, END_MS - 5_000), Err(SpendError::Empty(_))), "within the skew of its end");
}

#[test]
fn what_goes_back_or_is_not_answered_is_not_spent() {
    let dir = tempfile::tempdir().unwrap();
    let own = purse(dir.path());
    for stage in [Stage::Asked { id: "1".repeat(32) }, Stage::Returning { id: "1".repeat(32), spent: 1 }] {
        own.write(stage).unwrap();
        assert!(matches!(own.spend(1, 0), Err(SpendError::Empty(_))));
    }
    std::fs::write(&own.path, "{").unwrap();
    assert!(matches!(own.spend(1, 0), Err(SpendError::Damaged(_))));
}

#[test]
fn the_file_of_another_member_or_budget_is_not_spent() {
    let dir = tempfile::tempdir().unwrap();
    let own = purse(dir.path());
    hold(&own, 9);
    let other = Purse::new(dir.path(), "m2", "calls-of-all", BudgetUnit::Calls);
    assert!(matches!(other.spend(1, 0), Err(SpendError::Empty(_))), "a file of its own");
    std::fs::copy(&own.path, &other.path).unwrap();
    assert!(matches!(other.spend(1, 0), Err(SpendError::Damaged(_))));
}
