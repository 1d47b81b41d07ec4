//! The start of a TLS connection: a server may ask for a second client hello, and that is judged like the first.
//!
//! The first hello is passed on alone. What the client sends behind it is held until the server's first message shows
//! whether it asks for another hello. If it does, the records up to that hello are passed on, and the hello itself only
//! if it may. So no hello reaches a server unread, in whichever order they are sent.
//!
//! Fails closed when the second hello cannot be read. Everything after the handshake's first round is copied unread.

use tokio::time::timeout;

use crate::code::Code;
use crate::decide::{Known, Refusal, Verdict, decide};
use crate::hello::{Hello, Listening, MAX_HELLO, first_message};
use crate::requests::Passage;
use crate::session::{End, Session, TLS_DENIED};
use crate::stream::Stream;

const HANDSHAKE: u8 = 22;
/// Records that a client may send between two hellos: a change of ciphers for old middleboxes, alerts, early data.
const BETWEEN: [u8; 3] = [20, 21, 23];
/// The header of a record, and how much of a server's first message tells what it is.
const RECORD_HEADER: usize = 5;
const TELLING: usize = 38;
const SERVER_HELLO: u8 = 2;
/// The random value of a server hello that is a request for another client hello (RFC 8446, 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// What the server's first message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerAnswer {
    Incomplete,
    Retry,
    Other,
}

impl Session {
    /// Passes on the first hello and the server's answer, and a second hello if the server asks for one and it may be
    /// said. Gives what the client has said behind that.
    pub(crate) async fn handshake(&self, passage: &Passage<'_>, mut said: Vec<u8>) -> Result<Vec<u8>, End> {
        let Passage { client, server, .. } = *passage;
        let length = first_message(&said).ok_or(Code::TlsUnreadable)?.0;
        server.write_all(said.get(..length).unwrap_or_default()).await?;
        said.drain(..length);
        let answer = timeout(self.limits.half_closed, pass_answer(server, client));
        if answer.await.map_err(|_| End::Gone)?? != ServerAnswer::Retry {
            return Ok(said);
        }
        let judged = self.second_hello(passage, said).await;
        if let Err(End::Refused(refusal)) = &judged {
            self.tell_refused(passage.target, None, refusal.clone());
            drop(client.write_all(&TLS_DENIED).await);
        }
        judged
    }

    async fn second_hello(&self, passage: &Passage<'_>, said: Vec<u8>) -> Result<Vec<u8>, End> {
        let Passage { client, server, target, addresses, .. } = *passage;
        let late = || End::from(Code::HelloLate);
        let said =
            timeout(self.limits.hello, pass_between(client, server, said)).await.map_err(|_| late())??;
        let mut listening = Listening::default();
        let hello = match listening.read_piece(&said) {
            Some(hello) => hello,
            None => self.listen(client, &mut listening).await?,
        };
        let Hello::Tls { .. } = hello else { return Err(Code::TlsUnreadable.into()) };
        match decide(&self.rules, target, Known { addresses: Some(addresses), hello: Some(&hello) }) {
            Verdict::Allow(_) => Ok(listening.into_bytes()),
            Verdict::Refuse(refusal) => Err(refusal.into()),
            Verdict::Resolve | Verdict::Listen => Err(Refusal::new(Code::TlsUnreadable).into()),
        }
    }
}

/// Passes on the server's bytes until its first message is known.
async fn pass_answer(server: &Stream, client: &Stream) -> Result<ServerAnswer, End> {
    let (mut heard, mut piece) = (Vec::new(), vec![0; 4096]);
    loop {
        let length = server.read(&mut piece).await?;
        let new = piece.get(..length).unwrap_or_default();
        client.write_all(new).await?;
        heard.extend_from_slice(new);
        match server_answer(&heard) {
            // The end is seen again, and passed on, by the copying that follows.
            ServerAnswer::Incomplete if length == 0 || heard.len() > MAX_HELLO => {
                return Ok(ServerAnswer::Other);
            }
            ServerAnswer::Incomplete => {}
            known @ (ServerAnswer::Retry | ServerAnswer::Other) => return Ok(known),
        }
    }
}

/// What a server's first records are; they may be as small as it likes.
fn server_answer(mut records: &[u8]) -> ServerAnswer {
    let mut message = Vec::new();
    while message.len() < TELLING {
        match records {
            [HANDSHAKE, _, _, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
                let (data, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
                message.extend_from_slice(data);
                records = rest;
            }
            [] | [HANDSHAKE, ..] => return ServerAnswer::Incomplete,
            _ => return ServerAnswer::Other,
        }
    }
    let is_retry = message.first() == Some(&SERVER_HELLO) && message.get(6..TELLING) == Some(&RETRY[..]);
    if is_retry { ServerAnswer::Retry } else { ServerAnswer::Other }
}

/// Passes on the client's records before its next hello, and gives what has come of that hello.
async fn pass_between(client: &Stream, server: &Stream, mut said: Vec<u8>) -> Result<Vec<u8>, End> {
    let (mut piece, mut passed) = (vec![0; 4096], 0);
    loop {
        let length = match *said.as_slice() {
            [HANDSHAKE, ..] => return Ok(said),
            [kind, _, _, high, low, ..] if BETWEEN.contains(&kind) => {
                RECORD_HEADER + usize::from(u16::from_be_bytes([high, low]))
            }
            [kind, ..] if !BETWEEN.contains(&kind) => return Err(Code::TlsUnreadable.into()),
            _ => usize::MAX,
        };
        if let Some(record) = said.get(..length) {
            server.write_all(record).await?;
            said.drain(..length);
            passed += length;
            continue;
        }
        if passed + said.len() > MAX_HELLO {
            return Err(Code::TlsUnreadable.into());
        }
        match client.read(&mut piece).await? {
            0 => return Err(End::Gone),
            more => said.extend_from_slice(piece.get(..more).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let record = |data: &[u8]| [&[HANDSHAKE, 3, 3, 0, u8::try_from(data.len()).unwrap()], data].concat();
        message.chunks(size).flat_map(record).collect()
    }

    #[test]
    fn a_request_for_another_hello_is_seen_in_pieces_of_any_size() {
        let retry = [&[SERVER_HELLO, 0, 0, 80, 3, 3][..], &RETRY, &[0; 48]].concat();
        let hello = [&[SERVER_HELLO, 0, 0, 80, 3, 3][..], &[7; 80]].concat();
        for size in [1, 2, 5, 37, 38, 39, 86] {
            let (retry, hello) = (records(&retry, size), records(&hello, size));
            assert_eq!(server_answer(&retry), ServerAnswer::Retry, "{size}");
            assert_eq!(server_answer(&hello), ServerAnswer::Other, "{size}");
            let known = (0..retry.len()).find(|end| {
                let answer = server_answer(retry.get(..*end).unwrap());
                assert_ne!(answer, ServerAnswer::Other, "{size} {end}");
                answer == ServerAnswer::Retry
            });
            assert!(known.is_some_and(|known| known >= RECORD_HEADER + TELLING), "{size}");
        }
        assert_eq!(server_answer(&[21, 3, 3, 0, 2, 2, 40]), ServerAnswer::Other);
        assert_eq!(server_answer(b"HTTP/1.1 400"), ServerAnswer::Other);
    }
}
