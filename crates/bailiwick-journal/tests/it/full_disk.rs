//! A full disk refuses new appends, loses nothing that was acknowledged, and is recovered from.
use bailiwick_journal::{Durability, Expected, Filter, Journal, Options, verify};
use bailiwick_testkit::child::{child, input};
use bailiwick_testkit::journal::{Dir, all_records, event, session};
use bailiwick_testkit::skip;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_full_disk_refuses_and_recovers() {
    let dir = Dir::new();
    fs::create_dir(dir.path()).unwrap();
    // a mount of its own in a namespace of its own: gone with the child
    let flags = if rustix::process::geteuid().is_root() { "-m" } else { "-Urm" };
    let script = "mount -t tmpfs -o size=1m,mode=700 tmpfs \"$0\" || exit 77; exec \"$@\"";
    let inner = child("full_disk::child_fills_the_disk");
    let mut outer = Command::new("unshare");
    outer.args([flags, "sh", "-c", script]).arg(dir.path()).arg(inner.get_program()).args(inner.get_args());
    outer.envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    outer.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut outer) = outer.spawn() else { return skip("there is no `unshare`") };
    let sent = outer.stdin.take().unwrap().write_all(format!("{}\n", dir.path().display()).as_bytes());
    let output = outer.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if sent.is_err() || output.status.code() == Some(77) || !text.contains("running 1 test") {
        return skip("a small tmpfs could not be mounted");
    }
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("recovered and verified").count(), 2, "{text}");
}

#[test]
fn child_fills_the_disk() {
    let input = input();
    let [dir] = input.as_slice() else { return };
    for (name, durability) in [("group", Durability::Group), ("fsync", Durability::Fsync)] {
        fill_and_recover(Path::new(dir), name, durability);
        writeln!(std::io::stdout(), "{name}: recovered and verified").unwrap();
    }
}

fn fill_and_recover(mount: &Path, name: &str, durability: Durability) {
    let dir = mount.join("journal");
    // what waits while the disk is full must fit on it afterwards: it is 1 MiB
    let retry_every = Duration::from_millis(10);
    let options = Options { durability, retry_every, queue: 64, ..Options::default() };
    let journal = Journal::open(&dir, session(name), options).unwrap();
    let mut acknowledged = Vec::new();
    let append = |what: &str| journal.append(event(format!("{what} {}", "x".repeat(300))));
    acknowledged.push(append("before").unwrap().seq);
    journal.flush().unwrap();

    let filler = mount.join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
    drop(file);
    let refusal = (0..100_000).find_map(|_| append("while full").map(|ack| acknowledged.push(ack.seq)).err());
    assert_eq!(refusal.expect("a full disk is noticed").code(), "journal-full");
    assert_eq!(journal.flush().unwrap_err().code(), "journal-full");
    for _ in 0..10 {
        assert_eq!(append("refused").unwrap_err().code(), "journal-full");
    }
    assert_eq!(journal.refusal().unwrap().code(), "journal-full");
    let text = fs::read(dir.join(format!("{name}.000000.jsonl"))).unwrap();
    assert!(text.ends_with(b"\n"), "nothing is left torn");

    fs::remove_file(&filler).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while journal.refusal().is_some() {
        assert!(Instant::now() < deadline, "it recovers when there is space");
        std::thread::sleep(Duration::from_millis(5));
    }
    acknowledged.push(append("after").unwrap().seq);
    journal.close().unwrap();

    let report = verify(&dir, &Expected::default()).unwrap();
    assert!(report.is_intact(), "{:?}", report.problems().collect::<Vec<_>>());
    let records = all_records(&dir, Filter { session: Some(session(name)), ..Filter::default() });
    for seq in acknowledged {
        assert!(records.iter().any(|record| record.seq == seq), "{seq} was acknowledged");
    }
    let codes = records.iter().filter_map(|record| record.event()?.code());
    assert_eq!(codes.filter(|code| *code == "journal-recovered").count(), 1);
    let is_refused = |reason: &str| reason.starts_with("refused");
    assert!(!records.iter().any(|record| record.event().unwrap().reason().is_some_and(is_refused)));
}
