//! The codec against an independent canonicaliser, against itself, and against hostile lines.
use super::*;
use crate::format::Chain;
use proptest::prelude::*;

fn session() -> SessionId {
    "s-1".parse().unwrap()
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z/*:]{0,40}", "[\\x00-\\x7f]{0,20}", "[\"\\\\\u{2028}\u{7f}😀é]{0,9}"]
}

fn enforcement_pairs() -> impl Strategy<Value = Enforcement> {
    proptest::collection::btree_map("[a-z0-9-]{1,12}", "[a-z]{1,12}", 0..6)
        .prop_map(|map| Enforcement::new(map.iter().map(|(a, l)| (a.as_str(), l.as_str()))).unwrap())
}

prop_compose! {
    fn facts()(
        kind in proptest::sample::select(RecordKind::ALL.to_vec()),
        decision in proptest::option::of(proptest::sample::select(Decision::ALL.to_vec())),
        time in 0..=crate::format::MAX_INTEGER,
        parent in proptest::option::of(0..=crate::format::MAX_INTEGER),
        duration_us in proptest::option::of(0_u64..1_000_000),
        args_digest in proptest::option::of(digest()),
        policy_hash in proptest::option::of(digest()),
        plan_hash in proptest::option::of(digest()),
        enforcement in proptest::option::of(enforcement_pairs()),
    ) -> Event {
        let mut event = Event::new(kind).at(time);
        event.decision = decision;
        event.parent = parent;
        event.duration_us = duration_us;
        event.args_digest = args_digest;
        event.policy_hash = policy_hash;
        event.plan_hash = plan_hash;
        event.enforcement = enforcement;
        event
    }
}

prop_compose! {
    fn events()(mut event in facts(), texts in proptest::collection::vec(proptest::option::of(text()), 9)) -> Event {
        let mut texts = texts.into_iter().map(|text| text.map(Text::from));
        let fields = [
            &mut event.tool, &mut event.server, &mut event.capability, &mut event.code,
            &mut event.reason, &mut event.args, &mut event.result, &mut event.agent, &mut event.origin,
        ];
        for field in fields {
            *field = texts.next().flatten();
        }
        event
    }
}

/// The event as a value tree, by other code than the encoder.
fn tree(event: &Event, session: &str, seq: u64, prev: &Digest) -> serde_json::Value {
    let mut map = serde_json::Map::new();
    let mut put = |key: &str, value: Option<serde_json::Value>| {
        value.map(|value| map.insert(key.into(), value));
    };
    put("v", Some(2.into()));
    put("seq", Some(seq.into()));
    put("time", Some(event.time().into()));
    put("session", Some(session.into()));
    put("parent", event.parent().map(Into::into));
    put("kind", Some(event.kind().name().into()));
    put("agent", event.agent().map(Into::into));
    put("origin", event.origin().map(Into::into));
    put("tool", event.tool().map(Into::into));
    put("server", event.server().map(Into::into));
    put("capability", event.capability().map(Into::into));
    put("decision", event.decision().map(|d| d.name().into()));
    put("code", event.code().map(Into::into));
    put("reason", event.reason().map(Into::into));
    put("args", event.args().map(Into::into));
    put("result", event.result().map(Into::into));
    put("args_digest", event.args_digest().map(|d| d.to_string().into()));
    put("policy_hash", event.policy_hash().map(|d| d.to_string().into()));
    put("plan_hash", event.plan_hash().map(|d| d.to_string().into()));
    let pairs = event.enforcement().map(|e| e.iter().map(|(a, l)| (a.to_string(), l.into())).collect());
    put("enforcement", pairs.map(serde_json::Value::Object));
    put("duration_us", event.duration_us().map(Into::into));
    put("prev", Some(prev.to_string().into()));
    map.into()
}

fn encoded(event: &Event) -> Vec<u8> {
    let mut out = Vec::new();
    Chain::genesis(session()).push_event(event, &mut out);
    assert_eq!(out.pop(), Some(b'\n'));
    out
}

proptest! {
    #[test]
    fn the_encoder_is_the_canonicaliser(event in events()) {
        let line = encoded(&event);
        let body = line.len() - HASH_MEMBER;
        let mut unhashed = line[..body].to_vec();
        unhashed.push(b'}');
        let expected = serde_json_canonicalizer::to_vec(&tree(&event, "s-1", 0, &Digest::ZERO)).unwrap();
        prop_assert_eq!(String::from_utf8(unhashed).unwrap(), String::from_utf8(expected).unwrap());
        let whole: serde_json::Value = serde_json::from_slice(&line).unwrap();
        let mut hashed = tree(&event, "s-1", 0, &Digest::ZERO);
        let hash = whole.get("hash").unwrap().clone();
        hashed.as_object_mut().unwrap().insert("hash".into(), hash);
        prop_assert_eq!(whole, hashed);
    }

    #[test]
    fn an_event_comes_back_as_it_went(event in events()) {
        let line = encoded(&event);
        let parsed = Line::parse(&line).unwrap();
        prop_assert!(parsed.hash_holds());
        let record = parsed.record().unwrap();
        prop_assert_eq!(record.event(), Some(&event));
        prop_assert_eq!((record.seq, record.prev, record.session), (0, Digest::ZERO, session()));
    }

    #[test]
    fn hostile_bytes_never_panic(line in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Line::parse(&line);
    }

    /// A byte changed, put in or taken out: either refused, or one that re-encodes to the same bytes.
    #[test]
    fn what_is_accepted_has_one_encoding(event in events(), at in any::<prop::sample::Index>(), byte in any::<u8>(), how in 0..3) {
        let mut line = encoded(&event);
        let at = at.index(line.len());
        match how {
            0 => line[at] = byte,
            1 => line.insert(at, byte),
            _ => { line.remove(at); }
        }
        if let Ok(parsed) = Line::parse(&line) {
            let record = parsed.record().unwrap();
            let mut again = Vec::new();
            let place = encode::ChainPosition {
                session: record.session.as_str(),
                seq: record.seq,
                prev: &record.prev,
                version: record.version,
            };
            encode::event(record.event().unwrap(), &place, &mut again);
            again.pop();
            prop_assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(line[..line.len() - HASH_MEMBER].to_vec()).unwrap());
        }
    }
}

/// A line with a right hash around `body`.
fn line_of(body: &str) -> Vec<u8> {
    let hash = Digest::sha256(body.as_bytes());
    format!("{},\"hash\":\"{hash}\"}}", body.strip_suffix('}').unwrap()).into_bytes()
}

fn refusal(body: &str) -> LineError {
    Line::parse(&line_of(body)).map(|_| ()).expect_err(body)
}

#[test]
fn hostile_lines_are_refused_for_the_right_reason() {
    let zero = Digest::ZERO;
    let tail = format!("\"kind\":\"fault\",\"prev\":\"{zero}\",\"seq\":0,\"session\":\"s\",\"time\":1");
    assert!(Line::parse(&line_of(&format!("{{{tail},\"v\":1}}"))).is_ok());
    assert_eq!(refusal(&format!("{{{tail},\"v\":3}}")), LineError::Version(3));
    let newer = tail.replace("\"seq\"", "\"risk\":\"high\",\"seq\"");
    let newer = format!("{{{newer},\"used_declared_capability\":false");
    assert!(Line::parse(&line_of(&format!("{newer},\"v\":2}}"))).is_ok());
    assert_eq!(refusal(&format!("{newer},\"v\":1}}")), LineError::Misplaced, "version 1 has no such members");
    assert_eq!(refusal(&format!("{{{tail}}}")), LineError::Missing("v"));
    let order = |body: String| assert!(matches!(refusal(&body), LineError::FieldOrder(_)), "{body}");
    order(format!("{{{tail},\"v\":1,\"v\":1}}"));
    order(format!("{{{tail},\"tool\":\"a\",\"tool\":\"a\",\"v\":1}}"));
    order(format!("{{\"tool\":\"a\",{tail},\"v\":1}}"));
    assert!(matches!(refusal(&format!("{{{tail},\"u\":1,\"v\":1}}")), LineError::UnknownField(_)));
    assert_eq!(refusal(&format!("{{\"key\":\"{zero}\",{tail},\"v\":1}}")), LineError::Misplaced);
    let form = |body: String| assert!(matches!(refusal(&body), LineError::NotCanonical(_)), "{body}");
    for number in ["01", "1.0", "1e3", "-1", "+1", "", "null", "true"] {
        form(format!("{{{tail},\"v\":{number}}}"));
    }
    for text in ["\\/", "\\u0041", "\\u001F", "\\u000a", "\\ud800", "\\", "\n", "\\x"] {
        form(format!("{{\"code\":\"{text}\",{tail},\"v\":1}}"));
    }
    form(format!("{{ {tail},\"v\":1}}"));
    form(format!("{{{tail}, \"v\":1}}"));
    form(format!("{{{tail},\"v\":1,}}"));
    form("[]}".into());
    form("{}".into());
    for nested in ["{\"a\":{}}", "{\"a\":[]}", "[]", "{\"a\":\"x\",}"] {
        form(format!("{{\"enforcement\":{nested},{tail},\"v\":1}}"));
    }
    order(format!("{{\"enforcement\":{{\"a\":\"x\",\"a\":\"x\"}},{tail},\"v\":1}}"));
    for value in
        ["\"decision\":\"maybe\"", "\"enforcement\":{\"A\":\"x\"}", "\"duration_us\":9007199254740992"]
    {
        assert!(matches!(refusal(&format!("{{{value},{tail},\"v\":1}}")), LineError::BadValue(_)), "{value}");
    }
    let many: Vec<String> = (10..27).map(|n| format!("\"a{n}\":\"x\"")).collect();
    let many = format!("{{\"enforcement\":{{{}}},{tail},\"v\":1}}", many.join(","));
    assert!(matches!(refusal(&many), LineError::BadValue(_)));
    assert!(matches!(
        refusal(&format!("{{{tail},\"v\":1}}").replace("\"fault\"", "\"fau\"")),
        LineError::BadValue(_)
    ));
    assert!(matches!(
        refusal(&format!("{{{tail},\"v\":1}}").replace("\"s\"", "\"../s\"")),
        LineError::BadValue(_)
    ));
    assert_eq!(
        refusal(&format!("{{{tail},\"v\":1}}").replace("\"fault\"", "\"head\"")),
        LineError::Missing("key")
    );
}

#[test]
fn a_line_has_a_greatest_length_and_ends_in_its_hash() {
    let deep = "[".repeat(MAX_LINE + 1);
    assert_eq!(Line::parse(deep.as_bytes()).map(|_| ()), Err(LineError::TooLong));
    assert_eq!(Line::parse(b"{}").map(|_| ()), Err(LineError::NoHash));
    assert_eq!(Line::parse(b"\xff").map(|_| ()), Err(LineError::NotUtf8));
    assert_eq!(Line::parse(b"").map(|_| ()), Err(LineError::NoHash));
}

#[test]
fn tools_are_compared_as_they_were_meant() {
    let line = encoded(&Event::new(RecordKind::Fault).with_tool("a\"b"));
    assert!(Line::parse(&line).unwrap().is_for_tool("a\"b"));
    assert!(!Line::parse(&line).unwrap().is_for_tool("a\\\"b"));
}

#[test]
fn a_line_of_the_first_version_is_read_and_has_nothing_of_the_second() {
    let line = |event: &Event| {
        let mut line = Vec::new();
        Chain::genesis(session()).in_version(1).push_event(event, &mut line);
        line.pop();
        line
    };
    let first = line(&Event::new(RecordKind::SandboxStarted).with_tool("true"));
    assert!(first.windows(6).any(|window| window == b"\"v\":1,"));
    let record = Line::parse(&first).unwrap().record().unwrap();
    assert_eq!((record.version, record.event().unwrap().tool()), (1, Some("true")));
    for event in [
        Event::new(RecordKind::SandboxEnded),
        Event::new(RecordKind::ToolCalled).with_agent("hook-1"),
        Event::new(RecordKind::EgressAllowed).with_origin("a.toml:3"),
    ] {
        assert_eq!(Line::parse(&line(&event)).unwrap_err(), LineError::Misplaced, "{event:?}");
    }
}
