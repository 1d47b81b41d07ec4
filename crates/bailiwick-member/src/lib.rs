//! The member's side of a fleet: what a machine, an approver and an admin send to the hub, and what a machine keeps of it.
//!
//! | module | what |
//! |---|---|
//! | [`identity`] | the directory of an enrolment: `fleet.toml`, the certificate, its key, the hub's authority |
//! | [`hub`] | requests to the hubs: TLS with the member's certificate, the next hub where one does not answer, bounded answers |
//! | [`enrol`] | a token becomes an identity; another certificate before the old one ends |
//! | [`approval`] | a call that waits for a person of the fleet, and its answer, taken once |
//! | [`lease`] | slices of budgets, spent without the hub, written before each call |
//! | [`report`] | what runs here, and the heads of the journal |
//! | [`anchor`] | the heads that the fleet's log holds of a machine |
//!
//! Invariants: the private key of a member is drawn on its machine and never sent; every request that changes something can be sent again without
//! doing it twice; what was spent is on disk before the call that it is for.
//!
//! Fails closed when: no hub answers (no approval, no new lease), a lease has ended by this machine's clock less the skew, an
//! answer is for other arguments, or a file of the enrolment can be read by others.
//!
//! Residual: who can write the state of the user can put back an older file of a lease, and spend that slice twice.
#![forbid(unsafe_code)]

pub mod anchor;
pub mod approval;
pub mod enrol;
mod files;
pub mod hub;
pub mod identity;
pub mod lease;
pub mod report;

/// Now, in milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    bailiwick_journal::now_us() / 1000
}

/// A new id: 32 hexadecimal digits.
///
/// # Errors
/// If the system gives no random bytes.
pub fn draw_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
