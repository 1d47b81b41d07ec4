//! The name server of the sandbox: it knows the granted names and asks nobody.
//!
//! A granted name has an address of our own making, every other name does not exist. Nothing that is asked leaves the
//! machine, so a query carries no data out. Records that could lead a client elsewhere, or hide the name it asks
//! for (HTTPS, SVCB, CNAME and the rest), are never served.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use bailiwick_policy::net::Host;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{DNSClass, RData, Record, RecordType};

use crate::code::Code;
use crate::decide::Refusal;
use crate::event::{EgressOutcome, Event};
use crate::session::Session;

/// How long a client may keep an answer. Ours never change.
const KEEP: u32 = 300;
/// The longest query over TCP; a name is at most 255 bytes.
pub(crate) const MAX_QUERY: u16 = 2048;
const HEADER: usize = 12;

impl Session {
    /// The reply to a query; `None` if it deserves none.
    pub(crate) fn answer(&self, query: &[u8]) -> Option<Vec<u8>> {
        match Message::from_vec(query) {
            Ok(message) if message.metadata.message_type == MessageType::Query => {
                self.reply(message).to_vec().ok()
            }
            Ok(_) => None,
            Err(_) => malformed(query),
        }
    }

    fn reply(&self, asked: Message) -> Message {
        let mut reply = Message::response(asked.metadata.id, asked.metadata.op_code);
        reply.metadata.recursion_desired = asked.metadata.recursion_desired;
        reply.metadata.recursion_available = true;
        let new_edns = asked.edns.as_ref().is_some_and(|edns| edns.version() > 0);
        if asked.edns.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(1232);
            reply.set_edns(edns);
        }
        reply.metadata.response_code = match (asked.metadata.op_code, asked.queries.as_slice()) {
            _ if new_edns => ResponseCode::BADVERS,
            (OpCode::Query, [query]) => {
                let (code, record) = self.look_up(query);
                reply.answers.extend(record.map(|data| Record::from_rdata(query.name().clone(), KEEP, data)));
                code
            }
            (OpCode::Query, _) => ResponseCode::FormErr,
            (_, _) => ResponseCode::NotImp,
        };
        reply.queries = asked.queries;
        reply
    }

    fn look_up(&self, query: &Query) -> (ResponseCode, Option<RData>) {
        let text = query.name().to_ascii();
        let host = match Host::new(&text) {
            Ok(host @ Host::Name(_)) if query.query_class() == DNSClass::IN => host,
            Ok(_) | Err(_) => {
                self.refused_name(&text, Refusal::new(Code::HostNotGranted));
                return (ResponseCode::NXDomain, None);
            }
        };
        match self.addresses_of(&host) {
            Ok((v4, v6)) => (ResponseCode::NoError, record(query.query_type(), v4, v6)),
            Err(refusal) => {
                let code = refusal.code();
                self.refused_name(&host.to_string(), refusal);
                let full = code == Code::TooManyNames;
                (if full { ResponseCode::ServFail } else { ResponseCode::NXDomain }, None)
            }
        }
    }

    /// The addresses that stand for a granted name inside.
    fn addresses_of(&self, host: &Host) -> Result<(Ipv4Addr, Ipv6Addr), Refusal> {
        let Host::Name(name) = host else { return Err(Refusal::of_name(host)) };
        if &**name == "localhost" {
            return Ok((Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST));
        }
        if !self.rules.name(host) {
            return Err(Refusal::of_name(host));
        }
        self.names().addresses(name, Instant::now()).map_err(Refusal::new)
    }

    fn refused_name(&self, name: &str, refusal: Refusal) {
        let name = name.strip_suffix('.').unwrap_or(name);
        if self.is_news(name) {
            self.tell(Event::new(name, None, EgressOutcome::Refused(refusal)));
        }
    }
}

fn record(wanted: RecordType, v4: Ipv4Addr, v6: Ipv6Addr) -> Option<RData> {
    if wanted == RecordType::A {
        return Some(RData::A(A(v4)));
    }
    (wanted == RecordType::AAAA).then_some(RData::AAAA(AAAA(v6)))
}

/// The reply to a query that cannot be read, if it is a query at all.
fn malformed(query: &[u8]) -> Option<Vec<u8>> {
    let [high, low, flags, ..] = query else { return None };
    let is_query = query.len() >= HEADER && flags & 0x80 == 0;
    let reply =
        || Message::error_msg(u16::from_be_bytes([*high, *low]), OpCode::Query, ResponseCode::FormErr);
    is_query.then(reply)?.to_vec().ok()
}

/// The addresses in the answer to a query of our own for `name`, following its aliases.
pub(crate) fn addresses_in(message: &Message, asked: &Query) -> Vec<IpAddr> {
    let mut names = vec![asked.name().clone()];
    // Aliases may come in any order; each pass follows at least one more.
    for _ in 0..message.answers.len().min(16) {
        for record in &message.answers {
            if let RData::CNAME(alias) = &record.data
                && names.contains(&record.name)
                && !names.contains(&alias.0)
            {
                names.push(alias.0.clone());
            }
        }
    }
    let of_name = message.answers.iter().filter(|record| names.contains(&record.name));
    of_name.filter_map(|record| record.data.ip_addr()).collect()
}

/// For fuzzing: the reply of a stub that grants a name, a zone and an address.
#[must_use]
pub fn answer_for_fuzzing(query: &[u8]) -> Option<Vec<u8>> {
    use bailiwick_policy::plan::{Network, Plan};
    static SESSION: std::sync::LazyLock<Session> = std::sync::LazyLock::new(|| {
        let grant = ["net:connect:a.test", "net:connect:*.b.test"].map(|text| text.parse());
        let grant: Vec<_> = grant.into_iter().flatten().collect();
        let facts = bailiwick_policy::facts::HostFacts::unknown();
        let authority = bailiwick_policy::authority::Authority::from_capabilities(&grant).ok();
        let plan = authority.and_then(|authority| Plan::for_authority("fuzz", &authority, &facts).ok());
        let network = plan.map_or(Network::None, |plan| plan.network().clone());
        Session::new(&network, crate::serve::Options::default())
    });
    SESSION.answer(query)
}

#[cfg(test)]
mod tests;
