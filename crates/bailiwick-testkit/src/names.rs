//! A name server's answers.

use std::net::{IpAddr, UdpSocket};

use hickory_proto::op::{Message, OpCode, Query};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{Name, RData, Record, RecordType};

/// Answers each question that comes to a socket with the records that `records` gives for it, until the test ends.
pub fn serve(socket: UdpSocket, mut records: impl FnMut(&Query) -> Vec<Record> + Send + 'static) {
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let reply = reply(bytes.get(..length).unwrap(), |asked, _| records(asked));
            drop(socket.send_to(&reply.to_vec().unwrap(), from));
        }
    });
}

/// The answer to one message, with the records that `records` gives for its question.
pub fn reply(message: &[u8], records: impl FnOnce(&Query, &mut Message) -> Vec<Record>) -> Message {
    let query = Message::from_vec(message).unwrap();
    let asked = query.queries.first().unwrap().clone();
    let mut reply = Message::response(query.metadata.id, OpCode::Query);
    let records = records(&asked, &mut reply);
    reply.insert_answers(records);
    reply.queries = vec![asked];
    reply
}

/// The name of a question, without its last dot.
#[must_use]
pub fn name_of(asked: &Query) -> String {
    asked.name().to_ascii().trim_end_matches('.').to_owned()
}

/// The record of an address, if it is of the kind that was asked for. It counts for as short a time as can be: how long an answer
/// counts is not for its server to say.
#[must_use]
pub fn address(name: &Name, kind: RecordType, ip: IpAddr) -> Option<Record> {
    let data = match ip {
        IpAddr::V4(ip) => (kind == RecordType::A).then_some(RData::A(A(ip))),
        IpAddr::V6(ip) => (kind == RecordType::AAAA).then_some(RData::AAAA(AAAA(ip))),
    };
    data.map(|data| Record::from_rdata(name.clone(), 0, data))
}
