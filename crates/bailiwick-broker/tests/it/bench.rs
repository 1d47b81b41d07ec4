//! What a brokered request costs beside one that is only let through, for `scripts/bench secrets`. It asserts nothing of times.

use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::world::{Setup, World, ok, read_message};

const ROUNDS: usize = 3000;
const SIDE_BY_SIDE: usize = 8;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The time of each request over one connection.
fn requests(world: &World, port: u16, name: &str, field: &str, count: usize) -> Vec<Duration> {
    let roots = if name == "api.test" { world.roots().clone() } else { crate::world::own_roots() };
    let mut tls = world.tls((name, port), name, &roots).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {name}:{port}\r\n{field}\r\n\r\n");
    let one = |_| {
        let start = Instant::now();
        tls.write_all(request.as_bytes()).unwrap();
        assert!(read_message(&mut tls).unwrap().starts_with("HTTP/1.1 200"));
        start.elapsed()
    };
    (0..count).map(one).collect()
}

fn side_by_side(world: &World, port: u16, name: &str, field: &str) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| requests(world, port, name, field, ROUNDS / SIDE_BY_SIDE));
        }
    });
    f64::from(u32::try_from(ROUNDS).unwrap()) / start.elapsed().as_secs_f64()
}

#[test]
fn costs() {
    if std::env::var_os("BAILIWICK_BENCH").is_none() {
        return;
    }
    crate::trusting!("bench::costs");
    let start = Instant::now();
    let world = World::new(Setup { respond: |_| ok("fine"), ..Setup::default() });
    println!(
        "process, two sources, one session, allowlist: {:.1} ms",
        start.elapsed().as_secs_f64() * 1000.0
    );
    let brokered = (world.port, "api.test", format!("Authorization: Bearer {}", world.token()));
    let passed = (world.plain_port, "plain.test", "Accept: */*".to_owned());
    for (what, (port, name, field)) in [("let through", &passed), ("brokered", &brokered)] {
        drop(requests(&world, *port, name, field, ROUNDS / 10));
        let each = median(requests(&world, *port, name, field, ROUNDS));
        let rate = side_by_side(&world, *port, name, field);
        println!(
            "{what}: {:.0} us a request at the median, {rate:.0} requests a second over {SIDE_BY_SIDE} connections",
            each.as_secs_f64() * 1e6
        );
    }
}
