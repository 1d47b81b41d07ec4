//! Floods, slow clients and idle connections: bounded, and none in the way of another.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bailiwick_egress::Limits;

use crate::servers;
use crate::world::{World, in_world, read_all, test_name};

const PUBLIC: &str = "93.184.216.34";
const IDLE: Duration = Duration::from_secs(1);
const HELLO: Duration = Duration::from_secs(2);

fn world(limits: Limits) -> World {
    let grants = ["net:connect:a.test:80", "net:connect:a.test:22?protocol=raw"];
    World::with(&grants, &[("a.test", PUBLIC)], limits, |_| {})
}

/// Waits for something that happens in its own time, however slow the machine is.
fn wait_until(what: &str, mut happens: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happens() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn echoes(stream: &mut TcpStream) -> bool {
    let mut word = [0; 4];
    stream.write_all(b"ping").is_ok() && stream.read_exact(&mut word).is_ok() && &word == b"ping"
}

#[test]
fn a_flood_is_refused_and_leaves_the_others_alone() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(Limits { connections: 8, ..Limits::default() });
    servers::echo(&format!("{PUBLIC}:22"));
    let mut open: Vec<TcpStream> = (0..8).map(|_| world.connect("a.test", 22)).collect();
    assert!(open.iter_mut().all(echoes));
    let address = std::net::SocketAddr::new(world.address("a.test").unwrap(), 22);
    assert!((0..200).all(|_| world.exchange_with(address, b"ping").is_empty()));
    world.told.wait_for("net-too-many-connections");
    assert!(world.told.lines().len() < 300, "a flood is not told in full");
    assert!(open.iter_mut().all(echoes), "those that were there still work");
    drop(open);
    let room = || world.connect_to(address).is_ok_and(|mut stream| echoes(&mut stream));
    wait_until("there is room again", room);
}

#[test]
fn a_slow_client_is_cut_off_and_delays_no_other() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(Limits { hello: HELLO, pending: 4, ..Limits::default() });
    let seen = servers::http(&format!("{PUBLIC}:80"));
    let still_waits = |stream: &mut TcpStream| {
        stream.read(&mut [0]).is_err_and(|fault| fault.kind() == std::io::ErrorKind::WouldBlock)
    };
    let mut rounds = 0;
    let (mut slow, mut quick) = loop {
        rounds += 1;
        let start = Instant::now();
        let mut slow: Vec<TcpStream> = (0..3).map(|_| world.connect("a.test", 80)).collect();
        for stream in &mut slow {
            stream.write_all(b"GET / HTTP/1.1\r\nX: ").unwrap();
            stream.set_nonblocking(true).unwrap();
        }
        let mut quick = world.connect("a.test", 80);
        quick.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
        quick.read_exact(&mut [0; 43]).unwrap();
        if slow.iter_mut().all(still_waits) {
            break (slow, quick);
        }
        // On a machine that took so long, nothing is learnt from that.
        assert!(start.elapsed() >= HELLO && rounds < 20, "the quick one was behind the slow ones");
    };
    // They go on, a byte at a time, and are cut off all the same.
    wait_until("the slow ones are cut off", || {
        let mut open = false;
        for stream in &mut slow {
            drop(stream.write_all(b"x"));
            open |= still_waits(stream);
        }
        !open
    });
    world.told.wait_for("net-hello-late");
    assert_eq!(seen.count(), rounds);
    // A later head has no more time than a first one.
    quick.write_all(b"GET /slow HTTP/1.1\r\nHo").unwrap();
    assert!(read_all(&mut quick).is_empty(), "it is cut off");
    drop(quick.write_all(b"st: a.test\r\n\r\n"));
    assert!(!seen.text().contains("slow"));
}

#[test]
fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(Limits { idle: IDLE, ..Limits::default() });
    servers::echo(&format!("{PUBLIC}:22"));
    let (mut busy, mut idle) = (world.connect("a.test", 22), world.connect("a.test", 22));
    assert!(echoes(&mut idle));
    idle.set_nonblocking(true).unwrap();
    // The busy one says something all the time, and for longer than the limit.
    let (start, mut closed) = (Instant::now(), false);
    let (mut busy_since, mut last, mut stood_still) = (Instant::now(), Instant::now(), None);
    while !closed || busy_since.elapsed() < 3 * IDLE {
        let echoed = echoes(&mut busy);
        if last.elapsed() > IDLE / 4 {
            stood_still = Some(Instant::now());
        }
        last = Instant::now();
        if !echoed {
            // A machine that stood still made it idle too, and it is tried again.
            let excused = stood_still.is_some_and(|at| at.elapsed() < IDLE);
            assert!(excused, "after {:?}", busy_since.elapsed());
            busy = world.connect("a.test", 22);
            (busy_since, last) = (Instant::now(), Instant::now());
        }
        closed |= matches!(idle.read(&mut [0]), Ok(0));
        assert!(start.elapsed() < Duration::from_secs(60), "nothing moved for longer than the limit");
    }
}

/// A server that answers when the client has ended; one client it never answers.
fn answers_at_the_end() {
    servers::serve(&format!("{PUBLIC}:22"), |mut stream| {
        let said = read_all(&mut stream);
        if said == b"forget me" {
            std::thread::sleep(Duration::from_secs(120));
        }
        drop(stream.write_all(&said));
    });
}

#[test]
fn half_a_close_is_passed_on() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(Limits::default());
    answers_at_the_end();
    let mut polite = world.connect("a.test", 22);
    polite.write_all(b"question").unwrap();
    polite.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = [0; 8];
    polite.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"question", "the answer comes after the client has ended");
}

#[test]
fn a_forgotten_half_is_closed() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(Limits { half_closed: Duration::from_millis(300), ..Limits::default() });
    answers_at_the_end();
    let mut forgotten = world.connect("a.test", 22);
    forgotten.write_all(b"forget me").unwrap();
    forgotten.shutdown(std::net::Shutdown::Write).unwrap();
    forgotten.set_nonblocking(true).unwrap();
    // The server keeps its half open for longer than this waits.
    wait_until("it is closed", || matches!(forgotten.read(&mut [0]), Ok(0)));
}

#[test]
fn many_connections_at_once_carry_their_own_bytes() {
    if !in_world(test_name!()) {
        return;
    }
    let world = world(Limits::default());
    servers::echo(&format!("{PUBLIC}:22"));
    let mut all: Vec<TcpStream> = (0..150).map(|_| world.connect("a.test", 22)).collect();
    for (number, stream) in all.iter_mut().enumerate() {
        stream.write_all(format!("{number:032}").repeat(500).as_bytes()).unwrap();
    }
    for (number, stream) in all.iter_mut().enumerate() {
        let mut back = vec![0; 16_000];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, format!("{number:032}").repeat(500).into_bytes(), "connection {number}");
    }
}
