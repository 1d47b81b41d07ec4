//! Bailiwick.

use std::hint::black_box;

use bailiwick_policy::authority::{Authority, Request, Spawn};
use bailiwick_policy::capability::{CapabilitySet, Program};
use bailiwick_policy::net::{Host, NetRequest, Speak};
use bailiwick_policy::path::AbsPath;

fn session() -> Authority {
    let set = CapabilitySet::new([
        "fs:read,write:/workspace/**",
        "net:connect:api.github.com:443",
        "exec:spawn:git",
        "exec:spawn:cargo",
        "env:inject:GITHUB_TOKEN",
        "clock:system",
    ]);
    set.expect("valid").authority().clone()
}

fn asking(request: Request) -> impl FnMut() -> bool {
    let authority = session();
    move || black_box(&authority).allows(black_box(&request))
}

pub fn spawn(name: &str) -> impl FnMut() -> bool + use<> {
    asking(Request::Spawn(Spawn::plain(Program::Name(name.into()))))
}

pub fn reach(host: &str) -> impl FnMut() -> bool + use<> {
    asking(Request::Net(NetRequest::new(Host::new(host).expect("a host"), 443, Speak::Tls)))
}

pub fn write(path: &str) -> impl FnMut() -> bool + use<> {
    asking(Request::Write(AbsPath::new(path).expect("a path")))
}
