//! What the allowlist costs, beside bare loopback and, where it is installed, squid as a proxy.
//!
//! Runs itself again under `unshare`, as the supervisor; the servers are another process beside it, and the client one
//! more, in a namespace of its own. So the memory that is printed is the supervisor's.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a program for measuring"
)]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bailiwick_egress::{Copying, Egress, Limits, Options, Running, Sockets, raise_file_limit};
use bailiwick_policy::authority::Authority;
use bailiwick_policy::facts::HostFacts;
use bailiwick_policy::plan::Plan;

const ROLE: &str = "BAILIWICK_BENCH_ROLE";
const SERVER: &str = "93.184.216.34";
const BULK: u16 = 5001;
const ECHO: u16 = 5002;
const BYTES: usize = 2 << 30;
const CONNECTIONS: usize = 16_000;
const CLIENTS: usize = 8;
const ROUNDS: usize = 3_000;
const OPEN: usize = 1_000;

fn main() {
    raise_file_limit();
    match std::env::var_os(ROLE).as_deref().and_then(std::ffi::OsStr::to_str) {
        None => outside(),
        Some("world") => supervise(),
        Some("servers") => {
            servers(SERVER.parse().unwrap());
            say("ready");
            hear();
        }
        Some("bare") => {
            let bare = Way { name: "bare loopback", ip: SERVER.parse().unwrap(), proxy: None };
            let Numbers { bytes, connections, median } = bare.measure(None);
            say(&format!("base {bytes} {connections} {}", median.as_nanos()));
        }
        Some(client) => be_client(client),
    }
}

/// The program itself, in another role.
fn itself(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn outside() {
    let squid = Squid::start();
    let program = std::env::current_exe().unwrap();
    let ran = Command::new("unshare").arg("-Urn").arg(program).env(ROLE, "world").status();
    assert!(ran.is_ok_and(|status| status.success()), "the bench needs user namespaces");
    if let Some(squid) = squid {
        squid.measure();
    }
}

fn supervise() {
    every_address_is_local();
    let mut beside = itself("servers").spawn().unwrap();
    assert_eq!(line_of(&mut beside), "ready");
    let mut bare = itself("bare").spawn().unwrap();
    let base = until(&mut bare, "base");
    bare.wait().unwrap();
    for (name, copying) in [("splice", Copying::Splice), ("copy", Copying::Buffer)] {
        let role = format!("{name}{base}");
        // A thread that goes into a new namespace takes along what it starts; all others stay outside.
        let inside = std::thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            every_address_is_local();
            (sockets(), itself(&role).spawn().unwrap())
        });
        let (sockets, mut client) = inside.join().unwrap();
        let start = Instant::now();
        let running = serve(sockets, copying);
        println!("egress, {name}: answers after {} µs", start.elapsed().as_micros());
        let before = resident();
        client.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        until(&mut client, "open");
        println!("  resident with {OPEN} open connections: {} KB (before: {before} KB)", resident());
        client.stdin.as_mut().unwrap().write_all(b"end\n").unwrap();
        client.wait().unwrap();
        drop(running);
    }
    drop(beside.stdin.take());
    beside.wait().unwrap();
}

fn be_client(role: &str) {
    let words: Vec<&str> = role.split(' ').collect();
    let base = Numbers {
        bytes: words[1].parse().unwrap(),
        connections: words[2].parse().unwrap(),
        median: Duration::from_nanos(words[3].parse().unwrap()),
    };
    hear();
    let ip = IpAddr::from([44, 128, 0, 1]);
    introduce();
    Way { name: "egress", ip, proxy: None }.measure(Some(base));
    let open: Vec<TcpStream> = (0..OPEN).map(|_| echoed((ip, ECHO).into()).unwrap()).collect();
    say("open");
    hear();
    drop(open);
}

fn say(word: &str) {
    println!("{word}");
}

/// Waits for a line, or the end.
fn hear() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Prints what the child says until it says `word`; gives what follows the word.
fn until(child: &mut Child, word: &str) -> String {
    loop {
        let line = line_of(child);
        match line.strip_prefix(word) {
            Some(rest) => return rest.to_owned(),
            None => println!("{line}"),
        }
    }
}

fn line_of(child: &mut Child) -> String {
    let mut line = Vec::new();
    let out = child.stdout.as_mut().unwrap();
    let mut byte = [0];
    while out.read_exact(&mut byte).is_ok() && byte != [b'\n'] {
        line.extend(byte);
    }
    String::from_utf8(line).unwrap()
}

fn serve(sockets: Sockets, copying: Copying) -> Running {
    let grant = "net:connect:a.test?protocol=raw".parse().unwrap();
    let plan =
        Plan::for_authority("bench", &Authority::from_capabilities(&[grant]).unwrap(), &HostFacts::unknown())
            .unwrap();
    let hosts = [("a.test".into(), vec![SERVER.parse().unwrap()])].into();
    let options = Options { hosts, copying, limits: Limits::default(), ..Options::default() };
    Egress::new(plan.network(), options).serve(sockets).unwrap()
}

fn every_address_is_local() {
    for line in ["link set lo up", "route replace local 0.0.0.0/0 dev lo table local"] {
        assert!(Command::new("ip").args(line.split(' ')).status().unwrap().success(), "ip {line}");
    }
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "1024 65535").unwrap();
}

fn sockets() -> Sockets {
    Sockets {
        dns_udp: vec![UdpSocket::bind("0.0.0.0:53").unwrap()],
        relays: [BULK, ECHO].map(|port| TcpListener::bind(("0.0.0.0", port)).unwrap()).into(),
        ..Sockets::default()
    }
}

/// A server that sends without end, and one that sends back a byte.
fn servers(ip: IpAddr) {
    let bulk = TcpListener::bind((ip, BULK)).unwrap();
    std::thread::spawn(move || {
        let piece = vec![7; 1 << 18];
        for mut stream in bulk.incoming().map_while(Result::ok) {
            let piece = piece.clone();
            std::thread::spawn(move || while stream.write_all(&piece).is_ok() {});
        }
    });
    let echo = TcpListener::bind((ip, ECHO)).unwrap();
    for _ in 0..2 {
        let echo = echo.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for mut stream in echo.incoming().map_while(Result::ok) {
                let mut byte = [0];
                if stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() && byte == [b'k'] {
                    kept.push(stream);
                }
            }
        });
    }
}

/// A connection over which a byte went there and back, and which the server keeps.
fn echoed(address: SocketAddr) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"k")?;
    stream.read_exact(&mut [0])?;
    Ok(stream)
}

/// A way to the servers.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    ip: IpAddr,
    proxy: Option<SocketAddr>,
}

/// Bytes a second, connections a second, and the median of a connection with one byte there and back.
#[derive(Clone, Copy)]
struct Numbers {
    bytes: f64,
    connections: f64,
    median: Duration,
}

impl Way {
    fn measure(self, base: Option<Numbers>) -> Numbers {
        let numbers = Numbers { bytes: self.throughput(), connections: self.rate(), median: self.latency() };
        println!("{}", self.name);
        let share = |own: f64, of: fn(&Numbers) -> f64| {
            base.map_or(String::new(), |base| format!(" ({:.0} % of bare)", 100.0 * own / of(&base)))
        };
        println!("  throughput: {:.2} GB/s{}", numbers.bytes / 1e9, share(numbers.bytes, |base| base.bytes));
        let rate = share(numbers.connections, |base| base.connections);
        println!("  connections: {:.0} a second{rate}", numbers.connections);
        let added = base.map(|base| numbers.median.saturating_sub(base.median));
        let added = added.map_or(String::new(), |added| format!(" ({} µs added)", added.as_micros()));
        println!("  connect, one byte there and back, p50: {} µs{added}", numbers.median.as_micros());
        numbers
    }

    fn connect(self, port: u16) -> std::io::Result<TcpStream> {
        let Some(proxy) = self.proxy else { return TcpStream::connect((self.ip, port)) };
        let mut stream = TcpStream::connect(proxy)?;
        stream.write_all(format!("CONNECT {}:{port} HTTP/1.1\r\n\r\n", self.ip).as_bytes())?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            answer.extend(byte);
        }
        Ok(stream)
    }

    fn throughput(self) -> f64 {
        let mut stream = self.connect(BULK).unwrap();
        let mut piece = vec![0; 1 << 18];
        let (mut got, start) = (0, Instant::now());
        while got < BYTES {
            got += stream.read(&mut piece).unwrap();
        }
        got as f64 / start.elapsed().as_secs_f64()
    }

    fn rate(self) -> f64 {
        let left = Arc::new(AtomicUsize::new(CONNECTIONS));
        let start = Instant::now();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let left = Arc::clone(&left);
                std::thread::spawn(move || {
                    while left
                        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                        .is_ok()
                    {
                        self.round().unwrap();
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        CONNECTIONS as f64 / start.elapsed().as_secs_f64()
    }

    fn latency(self) -> Duration {
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                self.round().unwrap();
                start.elapsed()
            })
            .collect();
        times.sort();
        times[ROUNDS / 2]
    }

    fn round(self) -> std::io::Result<()> {
        let mut stream = self.connect(ECHO)?;
        stream.write_all(b"x")?;
        stream.read_exact(&mut [0])
    }
}

/// Asks for the one granted name, so that its address stands for it.
fn introduce() {
    let client = UdpSocket::bind("0.0.0.0:0").unwrap();
    client.send_to(b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x01a\x04test\0\0\x01\0\x01", "127.0.0.53:53").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let length = client.recv(&mut [0; 512]).unwrap();
    assert!(length > 30, "the name has an address");
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Squid as a proxy on loopback.
struct Squid {
    process: Child,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Squid {
    fn start() -> Option<Self> {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("squid.conf");
        let text = format!(
            "http_port {address}\nhttp_access allow all\ncache deny all\naccess_log none\ncache_log /dev/null\n\
             cache_store_log none\npid_filename none\nshutdown_lifetime 0\nmax_filedescriptors 8192\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new("squid");
        command.arg("-N").arg("-f").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(process) = command.spawn() else {
            println!("no squid here to compare with");
            return None;
        };
        Some(Self { process, address, _directory: directory })
    }

    fn measure(mut self) {
        let ready = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            TcpStream::connect(self.address).is_ok()
        });
        if ready {
            let ip = IpAddr::from([127, 0, 0, 1]);
            servers(ip);
            let bare = Way { name: "bare loopback again", ip, proxy: None }.measure(None);
            Way { name: "squid, CONNECT", ip, proxy: Some(self.address) }.measure(Some(bare));
        } else {
            println!("squid does not start here");
        }
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
