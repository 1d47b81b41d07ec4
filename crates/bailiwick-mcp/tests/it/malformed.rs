//! Every line that is no message gets the right answer, and the next one is read.
//!
//! `malformed.tsv` has one case a line: the code (`-` for no answer), the id of the answer, the input. In the input,
//! `{{ff00}}` stands for raw bytes and `{{text*1000}}` for repetition.

use serde_json::{Value, json};

use crate::support::Talk;

const CASES: &str = include_str!("malformed.tsv");

fn cases() -> Vec<(Option<i64>, Value, Vec<u8>)> {
    let rows = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let [code, id, input] = row.splitn(3, '\t').collect::<Vec<_>>().try_into().expect(row);
        (code.parse().ok(), serde_json::from_str(id).expect(row), expanded(input))
    })
    .collect()
}

fn expanded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, behind) = after.split_once("}}").expect(text);
        bytes.extend(before.as_bytes());
        match inside.rsplit_once('*') {
            Some((text, count)) => bytes.extend(text.repeat(count.parse().unwrap()).as_bytes()),
            None => {
                let hex = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
                bytes.extend(inside.as_bytes().chunks(2).map(hex));
            }
        }
        rest = behind;
    }
    bytes.extend(rest.as_bytes());
    bytes
}

#[tokio::test]
async fn malformed_lines_are_answered_and_service_goes_on() {
    let all = cases();
    assert!(all.len() >= 60, "{}", all.len());
    let mut talk = Talk::start();
    for (code, id, input) in all {
        let shown = String::from_utf8_lossy(&input).chars().take(200).collect::<String>();
        talk.send(&input).await;
        if let Some(code) = code {
            let answer = talk.next().await;
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{shown}: {answer}");
            assert!(answer.as_object().unwrap().contains_key("id"), "{shown}: {answer}");
            assert!(answer.to_string().len() < 2000, "{shown}");
        }
        talk.ping().await;
    }
    talk.runs(0).await;
}

#[tokio::test]
async fn a_frame_of_sixteen_mebibytes_is_taken_and_one_more_byte_is_not() {
    let mut talk = Talk::start();
    // An id each: one that is used twice at a time would be refused for that.
    let frame = |id: u8, size: usize| {
        let method = r#""method":"tools/call","params":{"name":"echo","arguments":{"text":""#;
        let (head, tail) = (format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{method}"), r#""}}}"#);
        format!("{head}{}{tail}", "x".repeat(size - head.len() - tail.len()))
    };
    let Talk { input, output, .. } = &mut talk;
    let mut writer = input.take().unwrap();
    let writing = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        writer.write_all(frame(1, 16 << 20).as_bytes()).await.unwrap();
        writer.write_all(b"\n").await.unwrap();
        writer.write_all(frame(2, (16 << 20) + 1).as_bytes()).await.unwrap();
        writer.write_all(b"\n").await.unwrap();
        writer
    });
    // Whichever is ready first.
    let mut answers = Vec::new();
    for _ in 0..2 {
        let line = output.next_line().await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        answers.push(answer["error"]["code"].as_i64());
    }
    answers.sort_unstable();
    assert_eq!(answers, [None, Some(-32600)]);
    talk.input = Some(writing.await.unwrap());
    talk.ping().await;
}
