//! The redirection: whatever is dialled over TCP arrives at one port of ours.
//!
//! The same as this, loaded without the `nft` program:
//!
//! ```text
//! table inet bailiwick {
//!   chain out {
//!     type nat hook output priority -100;
//!     tcp dport 53 accept
//!     tcp dport LOW-HIGH redirect to :PORT     # once for every granted range of loopback ports
//!     ip daddr 127.0.0.0/8 meta l4proto tcp accept
//!     ip6 daddr ::1 meta l4proto tcp accept
//!     meta l4proto tcp redirect to :PORT
//!   }
//! }
//! ```

use core::ffi::CStr;

use super::netlink::{Batch, acknowledged};
use super::{Fault, Request, Step};

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = (SUBSYSTEM << 8) | 3;
const NEW_RULE: u16 = (SUBSYSTEM << 8) | 6;
/// Family `inet`, version 0.
const FAMILY: [u8; 4] = [1, 0, 0, 0];
const TABLE: &CStr = c"bailiwick";
const CHAIN: &CStr = c"out";
const HOOK_OUTPUT: u32 = 3;
const PRIORITY: i32 = -100;
const ACCEPT: u32 = 1;
const VERDICT: u32 = 0;
const REGISTER: u32 = 1;
/// Keys of `meta`.
const NETWORK_PROTOCOL: u32 = 15;
const TRANSPORT_PROTOCOL: u32 = 16;
/// Bases of `payload`.
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
/// Operators of `cmp`.
const EQUAL: u32 = 0;
const AT_MOST: u32 = 3;
const AT_LEAST: u32 = 5;

/// Loads the rules.
pub(super) fn install(request: &Request, port: u16) -> Result<(), Fault> {
    let mut batch = Batch::new();
    let [high, low] = SUBSYSTEM.to_be_bytes();
    batch.message(BATCH_BEGIN, 0, &[0, 0, high, low]);
    batch.message(NEW_TABLE, acknowledged(libc::NLM_F_CREATE), &FAMILY);
    batch.text(1, TABLE);
    chain(&mut batch);
    rule(&mut batch, |batch| {
        tcp(batch);
        ports(batch, 53, 53);
        accept(batch);
    });
    for (from, to) in request.loopback() {
        rule(&mut batch, |batch| {
            tcp(batch);
            ports(batch, *from, *to);
            redirect(batch, port);
        });
    }
    rule(&mut batch, |batch| {
        meta_is(batch, NETWORK_PROTOCOL, 2);
        tcp(batch);
        payload_is(batch, NETWORK_HEADER, 16, &[127]);
        accept(batch);
    });
    rule(&mut batch, |batch| {
        meta_is(batch, NETWORK_PROTOCOL, 10);
        tcp(batch);
        payload_is(batch, NETWORK_HEADER, 24, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        accept(batch);
    });
    rule(&mut batch, |batch| {
        tcp(batch);
        redirect(batch, port);
    });
    batch.message(BATCH_END, 0, &[0, 0, high, low]);
    batch.send(libc::NETLINK_NETFILTER, Step::Redirect)
}

fn chain(batch: &mut Batch) {
    batch.message(NEW_CHAIN, acknowledged(libc::NLM_F_CREATE), &FAMILY);
    batch.text(1, TABLE);
    batch.text(3, CHAIN);
    let hook = batch.nest(4);
    batch.number(1, HOOK_OUTPUT);
    batch.attribute(2, &PRIORITY.to_be_bytes());
    batch.close(hook);
    batch.number(5, ACCEPT);
    batch.text(7, c"nat");
}

fn rule(batch: &mut Batch, expressions: impl FnOnce(&mut Batch)) {
    batch.message(NEW_RULE, acknowledged(libc::NLM_F_CREATE | libc::NLM_F_APPEND), &FAMILY);
    batch.text(1, TABLE);
    batch.text(2, CHAIN);
    let list = batch.nest(4);
    expressions(batch);
    batch.close(list);
}

fn expression(batch: &mut Batch, name: &CStr, content: impl FnOnce(&mut Batch)) {
    let element = batch.nest(1);
    batch.text(1, name);
    let data = batch.nest(2);
    content(batch);
    batch.close(data);
    batch.close(element);
}

fn value(batch: &mut Batch, kind: u16, bytes: &[u8]) {
    let data = batch.nest(kind);
    batch.attribute(1, bytes);
    batch.close(data);
}

fn tcp(batch: &mut Batch) {
    meta_is(batch, TRANSPORT_PROTOCOL, 6);
}

fn meta_is(batch: &mut Batch, key: u32, wanted: u8) {
    expression(batch, c"meta", |batch| {
        batch.number(1, REGISTER);
        batch.number(2, key);
    });
    compare(batch, EQUAL, &[wanted]);
}

fn payload_is(batch: &mut Batch, base: u32, offset: u32, wanted: &[u8]) {
    payload(batch, base, offset, u32::try_from(wanted.len()).unwrap_or(0));
    compare(batch, EQUAL, wanted);
}

fn ports(batch: &mut Batch, low: u16, high: u16) {
    payload(batch, TRANSPORT_HEADER, 2, 2);
    compare(batch, AT_LEAST, &low.to_be_bytes());
    compare(batch, AT_MOST, &high.to_be_bytes());
}

fn payload(batch: &mut Batch, base: u32, offset: u32, length: u32) {
    expression(batch, c"payload", |batch| {
        batch.number(1, REGISTER);
        batch.number(2, base);
        batch.number(3, offset);
        batch.number(4, length);
    });
}

fn compare(batch: &mut Batch, operator: u32, wanted: &[u8]) {
    expression(batch, c"cmp", |batch| {
        batch.number(1, REGISTER);
        batch.number(2, operator);
        value(batch, 3, wanted);
    });
}

fn redirect(batch: &mut Batch, port: u16) {
    expression(batch, c"immediate", |batch| {
        batch.number(1, REGISTER);
        value(batch, 2, &port.to_be_bytes());
    });
    expression(batch, c"redir", |batch| batch.number(1, REGISTER));
}

fn accept(batch: &mut Batch) {
    expression(batch, c"immediate", |batch| {
        batch.number(1, VERDICT);
        let data = batch.nest(2);
        let verdict = batch.nest(2);
        batch.number(1, ACCEPT);
        batch.close(verdict);
        batch.close(data);
    });
}
