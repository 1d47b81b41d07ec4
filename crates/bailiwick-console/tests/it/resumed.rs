//! A stream goes on where it was, whatever ended it.

use std::collections::BTreeMap;

use bailiwick_journal::format::{Event, RecordKind};
use serde_json::{Map, Value, json};

use crate::client::Followed;
use crate::{Room, get};

/// Reads until `count` events have come; a cursor is moved as the page moves its own.
async fn read(followed: &mut Followed, cursor: &mut Map<String, Value>, count: usize) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    while found.len() < count {
        let frame = followed.next().await;
        if let Some(moved) = frame["cursor"].as_object() {
            cursor.extend(moved.clone());
        }
        for event in frame["events"].as_array().into_iter().flatten() {
            found.push((event["session"].as_str().unwrap().to_owned(), event["seq"].as_u64().unwrap()));
        }
    }
    found
}

fn event(number: usize) -> Event {
    Event::new(RecordKind::ToolCalled).with_tool(format!("t{number}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_lose_and_repeat_nothing() {
    let mut room = Room::new().await.entered().await;
    let journals = [room.journal("a"), room.journal("b")];
    let (mut cursor, mut found) = (Map::new(), Vec::new());
    let mut written = 0;
    for round in 0..200 {
        let count = 1 + round % 3;
        for _ in 0..count {
            journals[written % 2].append(event(written)).unwrap();
            written += 1;
        }
        let mut followed = Followed::from(&room.at, &Value::Object(cursor.clone())).await;
        found.extend(read(&mut followed, &mut cursor, count).await);
        // Some end in the middle of what is being written.
        journals[written % 2].append(event(written)).unwrap();
        written += 1;
        drop(followed);
        room = room.restarted().await;
        let mut followed = Followed::from(&room.at, &Value::Object(cursor.clone())).await;
        found.extend(read(&mut followed, &mut cursor, 1).await);
    }
    let mut seen: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (session, seq) in found {
        seen.entry(session).or_default().push(seq);
    }
    assert_eq!(seen.values().map(Vec::len).sum::<usize>(), written);
    for (session, numbers) in seen {
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{session}: {numbers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_begins_with_the_newest_events_and_misses_none() {
    let room = Room::new().await.entered().await;
    for session in ["one", "two"] {
        let journal = room.journal(session);
        (0..30).for_each(|number| {
            let _ = journal.append(event(number).at(100 + number as u64)).unwrap();
        });
        journal.close().unwrap();
    }
    let recent = get(&room.at, "/api/events?limit=10").await.json();
    let times: Vec<u64> =
        recent["events"].as_array().unwrap().iter().map(|one| one["time"].as_u64().unwrap()).collect();
    assert_eq!(times, [125, 125, 126, 126, 127, 127, 128, 128, 129, 129]);
    let journal = room.journal("three");
    journal.append(event(99)).unwrap();
    let mut followed = Followed::from(&room.at, &recent["cursor"]).await;
    let mut cursor = Map::new();
    assert_eq!(
        read(&mut followed, &mut cursor, 1).await,
        [("three".to_owned(), 0)],
        "nothing that was there comes again"
    );
    let older = get(&room.at, "/api/events?limit=4&until=127").await.json();
    assert_eq!(older["events"].as_array().map(Vec::len), Some(4));
    assert_eq!(get(&room.at, "/api/events?limit=x").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_told_at_once_and_its_answer_too() {
    let room = Room::new().await.entered().await;
    let mut followed = Followed::from(&room.at, &json!({})).await;
    let (id, _) = room.wait_for("t", "{}", false);
    let ids = |frame: &Value| {
        frame["waiting"]["all"].as_array().map(|all| all.iter().map(|one| one["id"].clone()).collect())
    };
    loop {
        let found: Option<Vec<Value>> = ids(&followed.next().await);
        if found == Some(vec![json!(id)]) {
            break;
        }
    }
    bailiwick_guardrails::approvals::answer(
        &room.state(),
        &id,
        bailiwick_guardrails::approvals::Answer::Denied,
        2,
    )
    .unwrap();
    loop {
        let found: Option<Vec<Value>> = ids(&followed.next().await);
        if found.is_some_and(|all| all.is_empty()) {
            break;
        }
    }
}

/// A reader that does not read holds no more than a few lines, and ends with the console.
#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_holds_nothing_up() {
    let room = Room::new().await.entered().await;
    let journal = room.journal("long");
    let text = "x".repeat(20_000);
    (0..300).for_each(|number| {
        let _ = journal.append(event(number).with_reason(text.clone())).unwrap();
    });
    journal.close().unwrap();
    let idle = [Followed::from(&room.at, &json!({})).await, Followed::from(&room.at, &json!({})).await];
    let mut cursor = Map::new();
    let mut followed = Followed::from(&room.at, &json!({})).await;
    assert_eq!(read(&mut followed, &mut cursor, 300).await.len(), 300, "others are told all the same");
    drop(followed);
    let room = room.restarted().await;
    assert_eq!(get(&room.at, "/api/state").await.status, 200);
    drop(idle);
}
