//! Queries of every kind, and what is not one.

use std::sync::{Arc, Mutex};

use bailiwick_policy::authority::Authority;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;
use hickory_proto::rr::Name;

use super::*;
use crate::limits::Limits;
use crate::serve::Options;

type Told = Arc<Mutex<Vec<String>>>;

fn session(limits: Limits) -> (Session, Told) {
    let grants = [
        "net:connect:a.test:443",
        "net:connect:*.wild.test",
        "net:connect:münchen.test",
        "net:connect:1.2.3.4",
    ];
    let grants: Vec<_> = grants.iter().map(|text| text.parse().unwrap()).collect();
    let plan =
        Plan::for_authority("t", &Authority::from_capabilities(&grants).unwrap(), &HostFacts::unknown())
            .unwrap();
    let told = Told::default();
    let keep = Arc::clone(&told);
    let events = Box::new(move |event: Event| keep.lock().unwrap().push(event.to_string()));
    (Session::new(plan.network(), Options { limits, events, ..Options::default() }), told)
}

fn ask(session: &Session, name: &str, kind: RecordType) -> Message {
    let mut query = Message::query();
    query.metadata.recursion_desired = true;
    query.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    let id = query.metadata.id;
    let reply = Message::from_vec(&session.answer(&query.to_vec().unwrap()).unwrap()).unwrap();
    assert_eq!((reply.metadata.id, reply.metadata.message_type), (id, MessageType::Response));
    assert_eq!(reply.queries, query.queries);
    reply
}

fn code(session: &Session, name: &str, kind: RecordType) -> (ResponseCode, usize) {
    let reply = ask(session, name, kind);
    (reply.metadata.response_code, reply.answers.len())
}

#[test]
fn granted_names_have_addresses_of_ours_and_others_do_not_exist() {
    let (session, told) = session(Limits::default());
    let reply = ask(&session, "a.test.", RecordType::A);
    assert_eq!(reply.answers[0].data, RData::A(A(Ipv4Addr::new(44, 128, 0, 1))));
    let reply = ask(&session, "A.TeSt.", RecordType::AAAA);
    assert_eq!(reply.answers[0].data, RData::AAAA(AAAA("3062:6169:6c69:7769::1".parse().unwrap())));
    assert_eq!(code(&session, "x.wild.test.", RecordType::A), (ResponseCode::NoError, 1));
    assert_eq!(code(&session, "xn--mnchen-3ya.test.", RecordType::A), (ResponseCode::NoError, 1));
    let local = ask(&session, "localhost.", RecordType::A);
    assert_eq!(local.answers[0].data, RData::A(A(Ipv4Addr::LOCALHOST)));
    for nobody in [
        "evil.test.",
        "b.a.test.",
        "wild.test.",
        "test.",
        ".",
        "1.2.3.4.",
        "4.3.2.1.in-addr.arpa.",
        "0x7f.1.",
    ] {
        assert_eq!(code(&session, nobody, RecordType::A), (ResponseCode::NXDomain, 0), "{nobody}");
        assert_eq!(code(&session, nobody, RecordType::TXT), (ResponseCode::NXDomain, 0), "{nobody}");
    }
    assert_eq!(told.lock().unwrap()[0], "refused evil.test: not granted");
    assert_eq!(told.lock().unwrap().len(), 8, "each is told once");
}

#[test]
fn records_that_lead_elsewhere_are_never_served() {
    let (session, _) = session(Limits::default());
    for kind in [
        RecordType::HTTPS,
        RecordType::SVCB,
        RecordType::CNAME,
        RecordType::TXT,
        RecordType::MX,
        RecordType::SRV,
        RecordType::NS,
        RecordType::ANY,
        RecordType::SOA,
        RecordType::PTR,
        RecordType::NULL,
        RecordType::Unknown(9999),
    ] {
        assert_eq!(code(&session, "a.test.", kind), (ResponseCode::NoError, 0), "{kind}");
    }
}

#[test]
fn too_many_names_are_a_failure_of_the_server() {
    let (session, told) = session(Limits { names: 2, ..Limits::default() });
    for label in ["one", "two"] {
        assert_eq!(code(&session, &format!("{label}.wild.test."), RecordType::A).0, ResponseCode::NoError);
    }
    assert_eq!(code(&session, "three.wild.test.", RecordType::A), (ResponseCode::ServFail, 0));
    assert_eq!(code(&session, "one.wild.test.", RecordType::A).0, ResponseCode::NoError);
    assert!(told.lock().unwrap()[0].contains("too many different names"));
}

#[test]
fn malformed_queries_are_answered_as_such_or_not_at_all() {
    let (session, _) = session(Limits::default());
    let response_code = |bytes: &[u8]| {
        session.answer(bytes).map(|reply| Message::from_vec(&reply).unwrap().metadata.response_code)
    };
    assert_eq!(response_code(b""), None);
    assert_eq!(response_code(b"\x12\x34\x01"), None);
    assert_eq!(response_code(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\xff"), Some(ResponseCode::FormErr));
    assert_eq!(response_code(b"\x12\x34\x81\0\0\x01\0\0\0\0\0\0\xff"), None, "a response is not answered");
    assert_eq!(response_code(b"\x12\x34\x01\0\0\0\0\0\0\0\0\0"), Some(ResponseCode::FormErr));
    let looping = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\xc0\x0c\0\x01\0\x01";
    assert_eq!(response_code(looping), Some(ResponseCode::FormErr));
    let mut two = Message::query();
    for _ in 0..2 {
        two.add_query(Query::query(Name::from_ascii("a.test.").unwrap(), RecordType::A));
    }
    assert_eq!(response_code(&two.to_vec().unwrap()), Some(ResponseCode::FormErr));
    let mut update = Message::new(7, MessageType::Query, OpCode::Update);
    update.add_query(Query::query(Name::from_ascii("a.test.").unwrap(), RecordType::A));
    assert_eq!(response_code(&update.to_vec().unwrap()), Some(ResponseCode::NotImp));
    let mut chaos = Query::query(Name::from_ascii("a.test.").unwrap(), RecordType::A);
    chaos.set_query_class(DNSClass::CH);
    let mut message = Message::query();
    message.add_query(chaos);
    assert_eq!(response_code(&message.to_vec().unwrap()), Some(ResponseCode::NXDomain));
}

#[test]
fn a_newer_edns_is_refused_and_ours_is_answered() {
    let (session, _) = session(Limits::default());
    for version in [0, 1] {
        let mut query = Message::query();
        query.add_query(Query::query(Name::from_ascii("a.test.").unwrap(), RecordType::A));
        let mut edns = Edns::new();
        edns.set_version(version);
        query.set_edns(edns);
        let reply = Message::from_vec(&session.answer(&query.to_vec().unwrap()).unwrap()).unwrap();
        assert!(reply.edns.is_some());
        assert_eq!(reply.answers.len(), usize::from(version == 0));
    }
}

#[test]
fn aliases_are_followed_from_the_name_that_was_asked() {
    use hickory_proto::rr::rdata::CNAME;
    let name = |text: &str| Name::from_ascii(text).unwrap();
    let alias = |from: &str, to: &str| Record::from_rdata(name(from), 1, RData::CNAME(CNAME(name(to))));
    let address =
        |of: &str, last: u8| Record::from_rdata(name(of), 1, RData::A(A(Ipv4Addr::new(9, 9, 9, last))));
    let asked = Query::query(name("a.test."), RecordType::A);
    let mut reply = Message::response(1, OpCode::Query);
    reply.insert_answers(vec![
        address("c.test.", 3),
        alias("b.test.", "c.test."),
        alias("a.test.", "b.test."),
        alias("c.test.", "a.test."),
        address("stray.test.", 9),
    ]);
    assert_eq!(addresses_in(&reply, &asked), [IpAddr::from([9, 9, 9, 3])]);
}
