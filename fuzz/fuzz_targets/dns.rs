//! Names: a query gets one well-formed reply or none, with addresses of ours only; a reply from outside is bounded.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use bailiwick_egress::fuzzing::{dns_answer, dns_query};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(reply) = dns_query(bytes) {
        assert!(reply.len() >= 12 && reply[..2] == bytes[..2] && reply[2] & 0x80 != 0);
        // The last four bytes of a reply with one A record and nothing behind it are its address.
        if reply[4..12] == [0, 1, 0, 1, 0, 0, 0, 0] && reply[reply.len() - 6..reply.len() - 4] == [0, 4] {
            let [.., a, b, c, d] = reply[..] else { return };
            let ip = Ipv4Addr::new(a, b, c, d);
            assert!(ip.is_loopback() || ip.octets()[..2] == [44, 128], "{ip}");
        }
    }
    let found: Vec<IpAddr> = dns_answer(bytes);
    assert!(found.len() <= bytes.len() / 10);
});
