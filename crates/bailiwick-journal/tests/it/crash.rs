//! `kill -9` at random points loses nothing that was acknowledged under fsync durability.
use bailiwick_journal::{Filter, Journal, Options};
use bailiwick_testkit::child::{child, input, start};
use bailiwick_testkit::journal::{Dir, all_records, event, fsync, session};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

const KILLS: u64 = 200;

#[test]
fn child_appends() {
    let input = input();
    let [dir, round] = input.as_slice() else { return };
    let options = Options { segment_bytes: 200_000, ..fsync() };
    let journal = Journal::open(Path::new(dir), session("a"), options).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let journal = journal.clone();
            scope.spawn(move || {
                for n in 0_u64.. {
                    let what = format!("{round}.{thread}.{n}");
                    let ack = journal.append(event(what.clone())).unwrap();
                    let line = format!("ack {} {what}\n", ack.seq);
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
fn killing_the_writer_loses_nothing_that_was_acknowledged() {
    let dir = Dir::new();
    let mut acknowledged = HashMap::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..KILLS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let input = format!("{}\n{round}\n", dir.path().display());
        let mut writer = start(child("crash::child_appends"), &input);
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
        let first =
            lines.by_ref().find(|line| line.contains("ack ")).expect("the child acknowledges something");
        std::thread::sleep(Duration::from_micros((random >> 33) % 12_000));
        writer.kill().unwrap();
        writer.wait().unwrap();
        for line in [first].into_iter().chain(lines) {
            // the last line may be cut, and the first has the harness's words before it
            let Some((_, ack)) = line.split_once("ack ") else { continue };
            let Some((seq, what)) = ack.split_once(' ') else { continue };
            acknowledged.insert(seq.parse::<u64>().unwrap(), what.to_string());
        }
    }
    dir.open("a", fsync()).close().unwrap();
    let report = dir.verify();
    assert!(report.is_intact(), "{:?}", report.problems().collect::<Vec<_>>());
    let records: HashMap<u64, _> =
        all_records(&dir.path(), Filter::default()).into_iter().map(|record| (record.seq, record)).collect();
    for (seq, what) in &acknowledged {
        let reason = records.get(seq).and_then(|record| record.event()).and_then(|event| event.reason());
        assert!(reason.is_some_and(|reason| reason.starts_with(what.as_str())), "{seq} {what}: {reason:?}");
    }
    assert!(acknowledged.len() as u64 > KILLS, "{}", acknowledged.len());
    let segments = report.sessions[0].segments;
    eprintln!("{} acknowledged, {} recorded, {segments} segments", acknowledged.len(), records.len());
}
