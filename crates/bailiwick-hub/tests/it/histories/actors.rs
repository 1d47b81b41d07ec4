//! What members do: ask for leases and spend them, wait for approvals and take them, follow the log, answer, append, revoke.
//!
//! Requests go to either hub, some twice and to both, and are repeated with the same ids while they fail. Machines have clocks that are
//! wrong by up to [`SKEW_MS`].

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bailiwick_fleet::Hash;
use bailiwick_fleet::checkpoint::{SignedHead, Succession, Trust, judge_successor};
use bailiwick_fleet::entry::{Bundle, Entry, EntryBody, Revocation, Role, Scope, Target};
use bailiwick_fleet::merkle::{Frontier, leaf_hash};
use bailiwick_fleet::protocol::{ApprovalRequest, BudgetUnit, Lease, LeaseRequest, PendingApproval};
use bailiwick_fleet::tile::entry_bundles;
use serde_json::{Value, json};

use super::Cast;
use super::checker::{Event, History};
use crate::random::Random;
use crate::world::{Caller, Fleet, Identity, NAME, new_id};

/// How wrong a machine's clock may be.
const SKEW_MS: u64 = 1_500;
/// How old a machine's copy of the log may be.
const MAX_STALE_MS: u64 = 400;
/// How much there is in all: less than is wanted.
const TOTAL: u64 = 15;

/// Where the actors meet, and what they saw.
pub(crate) struct Stage {
    machines: Vec<Actor>,
    approver: Actor,
    admin: Actor,
    trust: Trust,
    events: Arc<Mutex<Vec<Event>>>,
}

/// A member with its way to both hubs.
#[derive(Clone)]
struct Actor {
    id: String,
    callers: [Caller; 2],
    events: Arc<Mutex<Vec<Event>>>,
    random: Arc<Mutex<Random>>,
}

/// The true time.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

impl Actor {
    fn new(
        identity: &Identity,
        addresses: [SocketAddr; 2],
        events: &Arc<Mutex<Vec<Event>>>,
        random: &mut Random,
    ) -> Self {
        let first = identity.at(addresses[0]);
        let callers = [first.clone(), first.through(addresses[1])];
        let random = Arc::new(Mutex::new(random.split()));
        Self { id: identity.member.clone(), callers, events: Arc::clone(events), random }
    }

    fn saw(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }

    fn below(&self, most: u64) -> u64 {
        self.random.lock().unwrap().below(most)
    }

    fn percent(&self, chance: u64) -> bool {
        self.random.lock().unwrap().percent(chance)
    }

    /// Sends it until there is an answer that is no fault; nothing if there is none after some attempts.
    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Option<(u16, Value)> {
        let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        for _ in 0..40 {
            let at = self.below(2) as usize;
            let request = self.callers[at].send(method, path, headers, bytes.clone());
            let answer = if self.percent(15) {
                let again = self.callers[1 - at].send(method, path, headers, bytes.clone());
                let (first, second) = tokio::join!(request, again);
                if self.percent(50) { first } else { second }
            } else {
                request.await
            };
            match answer {
                Ok((status, bytes)) if status != 503 => {
                    return Some((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)));
                }
                _ => tokio::time::sleep(Duration::from_millis(5 + self.below(60))).await,
            }
        }
        None
    }

    async fn post(&self, path: &str, body: &impl serde::Serialize) -> Option<(u16, Value)> {
        self.ask("POST", path, &[], &serde_json::to_value(body).unwrap()).await
    }
}

impl Stage {
    pub(crate) fn new(fleet: &Fleet, cast: &Cast, addresses: [SocketAddr; 2], random: &mut Random) -> Self {
        let events = Arc::default();
        let mut actor = |identity: &Identity| Actor::new(identity, addresses, &events, random);
        let machines = cast.machines.iter().map(&mut actor).collect();
        let (approver, admin) = (actor(&cast.approver), actor(&cast.admin));
        let trust = Trust::hub(NAME, vec![fleet.keys.log_public()]);
        Self { machines, approver, admin, trust, events }
    }

    pub(crate) fn into_history(self, log: Vec<Vec<u8>>) -> History {
        let events = self.events.lock().unwrap().clone();
        History { max_stale_ms: MAX_STALE_MS, events, log }
    }

    /// Everything at the same time, to its end.
    pub(crate) async fn play(&self, random: &mut Random) {
        let wish = json!({"id": "calls", "unit": "calls", "total": TOTAL, "slice": 6, "lease_ms": 10_000});
        self.events.lock().unwrap().push(Event::Budget { budget: "calls".to_owned(), total: TOTAL });
        self.admin.ask("POST", "/v1/budgets", &[], &wish).await;
        let mut tasks = tokio::task::JoinSet::new();
        for machine in &self.machines {
            let skew = random.below(2 * SKEW_MS) as i64 - SKEW_MS as i64;
            tasks.spawn(spend(machine.clone(), skew));
            tasks.spawn(wait_and_take(machine.clone()));
            tasks.spawn(follow(machine.clone(), self.trust.clone(), skew));
        }
        tasks.spawn(answer(self.approver.clone(), Role::Approver));
        tasks.spawn(answer(self.admin.clone(), Role::Admin));
        tasks.spawn(append(self.admin.clone(), self.machines[0].id.clone()));
        tasks.join_all().await;
    }
}

/// Takes slices and spends from them; sometimes it crashes and returns nothing.
async fn spend(machine: Actor, skew: i64) {
    for _ in 0..4 {
        let asked_ms = now_ms();
        let asked = LeaseRequest {
            id: new_id(),
            budget: "calls".to_owned(),
            unit: BudgetUnit::Calls,
            amount: 1 + machine.below(8),
        };
        let Some((200, body)) = machine.post("/v1/leases", &asked).await else { continue };
        let lease: Lease = serde_json::from_value(body).unwrap();
        machine.saw(Event::Leased { machine: machine.id.clone(), asked_ms });
        let mut spent = 0;
        for _ in 0..lease.amount {
            let own_clock = now_ms().saturating_add_signed(skew);
            if own_clock >= lease.expires_ms - lease.skew_ms || machine.percent(20) {
                break;
            }
            // Written before the call.
            spent += 1;
            machine.saw(Event::Spent {
                budget: "calls".to_owned(),
                amount: 1,
                at_ms: now_ms(),
                lease_ends_ms: lease.expires_ms,
            });
        }
        if machine.percent(60) {
            machine.post(&format!("/v1/leases/{}/return", lease.id), &json!({"spent": spent})).await;
        }
    }
}

/// Waits for approvals and takes them, from two processes at once.
async fn wait_and_take(machine: Actor) {
    for _ in 0..3 {
        let arguments_sha256 = Hash::sha256(new_id().as_bytes());
        let asked = ApprovalRequest {
            id: new_id(),
            server: "server".to_owned(),
            tool: "tool".to_owned(),
            arguments: json!({"path": "/tmp"}),
            arguments_sha256,
            pins: Hash::sha256(b"pins"),
            policy: Hash::sha256(b"policy"),
            reason: "asks".to_owned(),
            ttl_s: 60,
        };
        if !matches!(machine.post("/v1/approvals", &asked).await, Some((200, _))) {
            continue;
        }
        let path = format!("/v1/approvals/{}", asked.id);
        for _ in 0..6 {
            let answer = machine.ask("GET", &format!("{path}?wait=1"), &[], &Value::Null).await;
            if answer.is_none_or(|(_, body)| body["status"] != "waiting") {
                break;
            }
        }
        let (one, other) = (take(&machine, &asked), take(&machine, &asked));
        tokio::join!(one, other);
    }
}

async fn take(machine: &Actor, asked: &ApprovalRequest) {
    let (nonce, asked_ms) = (new_id(), now_ms());
    let body = json!({"nonce": nonce, "arguments_sha256": asked.arguments_sha256});
    let path = format!("/v1/approvals/{}/take", asked.id);
    if let Some((200, body)) = machine.post(&path, &body).await {
        assert_eq!(body["status"], "allowed");
        machine.saw(Event::Taken {
            machine: machine.id.clone(),
            approval: asked.id.clone(),
            nonce,
            asked_ms,
        });
    }
}

/// Follows the log at both hubs as a machine does, and uses a grant of it while it may.
async fn follow(machine: Actor, trust: Trust, skew: i64) {
    let (mut held, mut tree, mut is_revoked): (Option<SignedHead>, Frontier, bool) =
        (None, Frontier::default(), false);
    for _ in 0..12 {
        let at = machine.below(2) as usize;
        let caller = &machine.callers[at];
        if let Ok((200, note)) = caller.send("GET", "/checkpoint", &[], Vec::new()).await {
            let offered = trust.open(&note).unwrap();
            // The bound on what is signed for the future is for clocks like these.
            let now = now_ms().saturating_add_signed(skew);
            let judged = judge_successor(held.as_ref(), &offered, now);
            let is_taken = match judged {
                Ok(Succession::Same) => true,
                Ok(Succession::Grown) => {
                    catch_up(caller, &mut tree, &offered, &machine.id, &mut is_revoked).await
                }
                Err(_) => false,
            };
            if is_taken {
                let head = &offered.checkpoint;
                machine.saw(Event::Accepted {
                    machine: machine.id.clone(),
                    size: head.size,
                    root: head.root,
                });
                held = Some(offered);
            }
        }
        let own_clock = now_ms().saturating_add_signed(skew);
        let is_fresh = held.as_ref().is_some_and(|held| own_clock <= held.checkpoint.time_ms + MAX_STALE_MS);
        if is_fresh && !is_revoked {
            machine.saw(Event::Honoured {
                machine: machine.id.clone(),
                at_ms: now_ms(),
                skew_ms: skew.unsigned_abs(),
            });
        }
        tokio::time::sleep(Duration::from_millis(20 + machine.below(60))).await;
    }
}

/// Reads the entries behind what is held; takes them only if they lead to the root that is offered.
async fn catch_up(
    caller: &Caller,
    tree: &mut Frontier,
    offered: &SignedHead,
    own: &str,
    is_revoked: &mut bool,
) -> bool {
    let (size, mut grown, mut revoked) = (offered.checkpoint.size, tree.clone(), *is_revoked);
    for bundle in entry_bundles(tree.size(), size) {
        let Ok((200, bytes)) = caller.send("GET", &format!("/{}", bundle.path()), &[], Vec::new()).await
        else {
            return false;
        };
        let Ok(entries) = bundle.decode(&bytes) else { return false };
        for (at, bytes) in (bundle.index * 256..).zip(entries) {
            if at < tree.size() {
                continue;
            }
            grown.push(leaf_hash(bytes));
            if let Ok(Entry { body: EntryBody::Revocation(revocation), .. }) = Entry::parse(bytes) {
                revoked |= revocation.target == Target::Machine { machine: own.to_owned() };
            }
        }
    }
    if grown.size() != size || grown.root() != offered.checkpoint.root {
        return false;
    }
    (*tree, *is_revoked) = (grown, revoked);
    true
}

/// Answers what waits, at random; two do so at once and may contradict each other.
async fn answer(person: Actor, role: Role) {
    for _ in 0..8 {
        if let Some((200, body)) = person.ask("GET", "/v1/approvals", &[], &Value::Null).await {
            let waiting: Vec<PendingApproval> = serde_json::from_value(body).unwrap();
            for pending in waiting {
                let allow = person.percent(75);
                let given = json!({"allow": allow, "arguments_sha256": pending.request.arguments_sha256});
                let path = format!("/v1/approvals/{}/answer", pending.request.id);
                if let Some((200, _)) = person.post(&path, &given).await {
                    person.saw(Event::Answered { approval: pending.request.id, role, allow });
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Appends entries, and revokes a machine among them.
async fn append(admin: Actor, victim: String) {
    let when = admin.below(6);
    for number in 0..6 {
        let name = new_id();
        let body = EntryBody::Bundle(Bundle { name: name.clone(), scope: Scope::Every, rules: Vec::new() });
        let key = new_id();
        let value = serde_json::to_value(&body).unwrap();
        if let Some((200, body)) =
            admin.ask("POST", "/v1/entries", &[("idempotency-key", &key)], &value).await
        {
            admin.saw(Event::Appended { name, index: body["index"].as_u64().unwrap() });
        }
        if number == when {
            let target = Target::Machine { machine: victim.clone() };
            let body = EntryBody::Revocation(Revocation { id: new_id(), target, reason: "lost".to_owned() });
            let (key, value) = (new_id(), serde_json::to_value(&body).unwrap());
            if let Some((200, _)) =
                admin.ask("POST", "/v1/entries", &[("idempotency-key", &key)], &value).await
            {
                admin.saw(Event::Revoked { machine: victim.clone(), at_ms: now_ms() });
            }
        }
    }
}
