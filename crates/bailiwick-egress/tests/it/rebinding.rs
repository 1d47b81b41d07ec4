//! DNS rebinding: where a name leads is judged for each connection, as a whole, and only what was judged is dialled.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bailiwick_egress::{Limits, Resolver};
use hickory_proto::op::{Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};

use crate::servers::{self, Answer};
use crate::world::{World, in_world, test_name};

const PUBLIC: &str = "93.184.216.34";
const SERVER: &str = "192.0.2.53:53";

fn asking(grants: &[&str]) -> World {
    let limits = Limits { answer: Duration::ZERO, wildcard_lookups_a_second: 1_000, ..Limits::default() };
    World::with(grants, &[], limits, |options| options.resolver = Resolver::Server(SERVER.parse().unwrap()))
}

/// Whether a request over the stream is answered.
fn answered(stream: &mut TcpStream, name: &str) -> bool {
    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
    let mut answer = [0; 43];
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer.starts_with(b"HTTP/1.1 200")
}

fn reaches(world: &World, name: &str) -> bool {
    let address = SocketAddr::new(world.address(name).unwrap(), 80);
    world.connect_to(address).is_ok_and(|mut stream| answered(&mut stream, name))
}

/// Addresses that lead inwards, in every notation that carries one.
const INWARDS: &[&str] = &[
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.170",
    "192.88.99.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::10.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:0:10.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b:1::10.0.0.1",
    "2002:a00:1::1",
    "2002:7f00:1::1",
    "2001:0:a00:1::1",
    "2001:db8::1",
    "fd00::1",
    "fd62:6169:6c69:7769::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
];

#[test]
fn no_address_that_leads_inwards_is_dialled_alone_or_among_others() {
    if !in_world(test_name!()) {
        return;
    }
    let world = asking(&["net:connect:*.test:80"]);
    let dialled = servers::everywhere(80);
    servers::dns(SERVER, |name, _| {
        let mut labels = name.split('.');
        let (order, number) = (labels.next().unwrap(), labels.next().unwrap().strip_prefix('n').unwrap());
        let inwards = Answer::Ip(INWARDS[number.parse::<usize>().unwrap()]);
        match order {
            "alone" => vec![inwards],
            "first" => vec![inwards, Answer::Ip(PUBLIC)],
            "last" => vec![Answer::Ip(PUBLIC), Answer::Ip("2606:2800::1"), inwards],
            _ => vec![Answer::Ip(PUBLIC)],
        }
    });
    for (number, inwards) in INWARDS.iter().enumerate() {
        for order in ["alone", "first", "last"] {
            assert!(!reaches(&world, &format!("{order}.n{number}.test")), "{inwards} {order}");
        }
    }
    assert_eq!(dialled.count(), 0, "{}", dialled.text());
    assert!(reaches(&world, "public.n0.test"), "{:?}", world.told.lines());
}

#[test]
fn aliases_lead_inwards_no_more_than_names_do() {
    if !in_world(test_name!()) {
        return;
    }
    let world = asking(&["net:connect:*.test:80"]);
    let dialled = servers::everywhere(80);
    let own = || Answer::Ip(PUBLIC);
    servers::dns(SERVER, move |name, _| match name {
        "local.test." => vec![Answer::Alias("localhost."), Answer::IpOf("localhost.", "127.0.0.1")],
        "chain.test." => vec![
            Answer::IpOf("d.example.", "10.0.0.1"),
            Answer::AliasOf("c.example.", "d.example."),
            Answer::AliasOf("b.example.", "c.example."),
            Answer::Alias("b.example."),
        ],
        "both.test." => vec![own(), Answer::Alias("b.example."), Answer::IpOf("b.example.", "10.0.0.1")],
        "loop.test." => vec![Answer::Alias("b.example."), Answer::AliasOf("b.example.", "loop.test.")],
        "stray.test." => vec![own(), Answer::IpOf("stray.example.", "10.0.0.1")],
        "case.test." => vec![Answer::IpOf("CASE.test.", "10.0.0.1"), own()],
        "many.test." => (0..70).map(|_| own()).chain([Answer::Ip("10.0.0.1")]).collect(),
        _ => vec![],
    });
    for inwards in ["local.test", "chain.test", "both.test", "loop.test", "case.test", "many.test"] {
        assert!(!reaches(&world, inwards), "{inwards}");
    }
    assert_eq!(dialled.count(), 0, "{}", dialled.text());
    assert!(reaches(&world, "stray.test"), "what is of another name counts for nothing");
    assert_eq!(dialled.text(), format!("{PUBLIC} "));
}

#[test]
fn an_answer_that_changes_while_a_connection_lasts_moves_nothing() {
    if !in_world(test_name!()) {
        return;
    }
    let world = asking(&["net:connect:*.test:80"]);
    let dialled = servers::everywhere(80);
    let turned = Arc::new(AtomicBool::new(false));
    let answers = Arc::new(AtomicUsize::new(0));
    let (inwards, counted) = (Arc::clone(&turned), Arc::clone(&answers));
    servers::dns(SERVER, move |_, _| {
        let ip = if inwards.load(Ordering::SeqCst) { "127.0.0.1" } else { PUBLIC };
        counted.fetch_add(1, Ordering::SeqCst);
        vec![Answer::Ip(ip)]
    });
    // One that has spoken, and one whose name is answered but which has not spoken yet.
    let (mut open, mut silent) = (world.connect("open.test", 80), world.connect("silent.test", 80));
    assert!(answered(&mut open, "open.test"));
    // Two kinds of address for each of the names.
    while answers.load(Ordering::SeqCst) < 4 {
        std::thread::sleep(Duration::from_millis(5));
    }
    turned.store(true, Ordering::SeqCst);
    assert!(answered(&mut silent, "silent.test"), "{:?}", world.told.lines());
    assert!(answered(&mut open, "open.test"), "the next request goes where the first went");
    for name in ["open.test", "silent.test", "new.test"] {
        assert!(!reaches(&world, name), "a new connection is judged anew: {name}");
    }
    turned.store(false, Ordering::SeqCst);
    assert!(reaches(&world, "open.test"), "and again");
    assert_eq!(dialled.text(), format!("{PUBLIC} ").repeat(3));
}

/// A name server that sends several replies to each question, made from the question.
fn liar(replies: impl Fn(&Message) -> Vec<Message> + Send + 'static) {
    let socket = UdpSocket::bind(SERVER).unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            for reply in replies(&Message::from_vec(&bytes[..length]).unwrap()) {
                drop(socket.send_to(&reply.to_vec().unwrap(), from));
            }
        }
    });
}

#[test]
fn replies_to_other_questions_are_not_listened_to() {
    if !in_world(test_name!()) {
        return;
    }
    let world = asking(&["net:connect:*.test:80"]);
    let dialled = servers::everywhere(80);
    liar(|query| {
        let asked = query.queries[0].clone();
        let reply = |id: u16, question: &Query, ip: [u8; 4]| {
            let mut reply = Message::response(id, OpCode::Query);
            reply.queries = vec![question.clone()];
            if question.query_type() == RecordType::A {
                let name = asked.name().clone();
                reply.insert_answers(vec![Record::from_rdata(name, 0, RData::A(A(ip.into())))]);
            }
            reply
        };
        let (id, evil) = (query.metadata.id, [93, 184, 216, 66]);
        let other = Query::query(Name::from_ascii("other.test.").unwrap(), asked.query_type());
        let mut none = reply(id, &asked, evil);
        none.queries.clear();
        let mut echo = reply(id, &asked, evil);
        echo.metadata.message_type = hickory_proto::op::MessageType::Query;
        let mut failed = reply(id, &asked, evil);
        failed.metadata.response_code = ResponseCode::NXDomain;
        let honest = reply(id, &asked, [93, 184, 216, 34]);
        match asked.name().to_ascii().as_str() {
            "failed.test." => vec![failed],
            _ => vec![
                reply(id.wrapping_add(1), &asked, evil),
                reply(id, &other, evil),
                reply(id, &Query::query(asked.name().clone(), RecordType::TXT), evil),
                none,
                echo,
                honest,
            ],
        }
    });
    assert!(reaches(&world, "a.test"), "{:?}", world.told.lines());
    assert!(!reaches(&world, "failed.test"), "an address beside a failure is none");
    assert_eq!(dialled.text(), format!("{PUBLIC} "));
}
