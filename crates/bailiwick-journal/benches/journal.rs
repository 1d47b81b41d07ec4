//! How fast the journal is: what an appender pays, what the writer sustains, and what verification costs.
#![expect(clippy::unwrap_used, reason = "benchmarks")]

use bailiwick_journal::format::{Chain, Decision, Digest, Event, RecordKind, SessionId, verify_lines};
use bailiwick_journal::{Durability, Expected, Filter, Journal, Options, records, verify};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use std::sync::Arc;

fn main() {
    divan::main();
}

fn session() -> SessionId {
    "bench".parse().unwrap()
}

/// What a gate records of a call: shared texts and one digest.
fn event(tool: &Arc<str>, capability: &Arc<str>) -> Event {
    Event::new(RecordKind::CapabilityGranted)
        .with_tool(Arc::clone(tool))
        .with_capability(Arc::clone(capability))
        .with_decision(Decision::Allow)
        .with_code("within-grant")
        .with_policy_hash(Digest::ZERO)
}

fn texts() -> (Arc<str>, Arc<str>) {
    ("shell".into(), "fs:read:/workspace/project/**".into())
}

struct Bench {
    journal: Journal,
    _dir: tempfile::TempDir,
}

fn open(durability: Durability) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability, ..Options::default() };
    Bench { journal: Journal::open(&dir.path().join("journal"), session(), options).unwrap(), _dir: dir }
}

/// What one append costs its caller when calls are apart: the queue has room and the writer may be asleep.
#[divan::bench(sample_count = 2000, sample_size = 1)]
fn append_one(bencher: Bencher<'_, '_>) {
    let bench = open(Durability::Group);
    let (tool, capability) = texts();
    bencher.bench_local(|| bench.journal.append(event(&tool, &capability)).unwrap());
}

/// The same, in bursts that fit the queue.
#[divan::bench(sample_count = 200, sample_size = 256)]
fn append_burst(bencher: Bencher<'_, '_>) {
    let bench = open(Durability::Group);
    let (tool, capability) = texts();
    bencher.bench_local(|| bench.journal.append(event(&tool, &capability)).unwrap());
}

/// What making the event alone costs.
#[divan::bench]
fn make_event(bencher: Bencher<'_, '_>) {
    let (tool, capability) = texts();
    bencher.bench_local(|| event(&tool, &capability));
}

/// Chaining and encoding, as the writer thread does it.
#[divan::bench]
fn chain_and_encode(bencher: Bencher<'_, '_>) {
    let (tool, capability) = texts();
    let event = event(&tool, &capability).at(1_700_000_000_000_000);
    let mut chain = Chain::genesis(session());
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        chain.push_event(black_box(&event), &mut out)
    });
}

/// One append that waits for the disk.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn append_fsync(bencher: Bencher<'_, '_>) {
    let bench = open(Durability::Fsync);
    let (tool, capability) = texts();
    bencher.bench_local(|| bench.journal.append(event(&tool, &capability)).unwrap());
}

/// Events through to the disk, sealed.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn throughput(bencher: Bencher<'_, '_>) {
    const COUNT: usize = 200_000;
    let bench = open(Durability::Group);
    let (tool, capability) = texts();
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        for _ in 0..COUNT {
            bench.journal.append(event(&tool, &capability)).unwrap();
        }
        bench.journal.flush().unwrap();
    });
}

/// Walking a chain that is in memory.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn verify_chain(bencher: Bencher<'_, '_>) {
    const COUNT: usize = 100_000;
    let (tool, capability) = texts();
    let mut chain = Chain::genesis(session());
    let mut text = Vec::new();
    for _ in 0..COUNT {
        chain.push_event(&event(&tool, &capability).at(1_700_000_000_000_000), &mut text);
    }
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        verify_lines(&mut Chain::genesis(session()), black_box(&text), |_, _| Ok(())).unwrap()
    });
}

/// A directory with that many events in it.
fn filled(count: usize, durability: Durability) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (tool, capability) = texts();
    let options = Options { durability, ..Options::default() };
    let journal = Journal::open(&dir.path().join("journal"), session(), options).unwrap();
    for _ in 0..count {
        journal.append(event(&tool, &capability)).unwrap();
    }
    journal.close().unwrap();
    dir
}

/// Verifying a directory: reading, chain, seals, index.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn verify_directory(bencher: Bencher<'_, '_>) {
    const COUNT: usize = 200_000;
    let dir = filled(COUNT, Durability::Group);
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        let report = verify(&dir.path().join("journal"), &Expected::default()).unwrap();
        assert!(report.is_intact());
    });
}

/// The same where every event has a seal of its own, as one appender under fsync writes it.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn verify_every_event_sealed(bencher: Bencher<'_, '_>) {
    const COUNT: usize = 2000;
    let dir = filled(COUNT, Durability::Fsync);
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        let report = verify(&dir.path().join("journal"), &Expected::default()).unwrap();
        assert!(report.is_intact());
    });
}

/// Reading every record.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn read_records(bencher: Bencher<'_, '_>) {
    const COUNT: usize = 200_000;
    let dir = filled(COUNT, Durability::Group);
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| {
        assert_eq!(records(&dir.path().join("journal"), Filter::default()).unwrap().count(), COUNT);
    });
}
