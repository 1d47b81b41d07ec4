//! Plain HTTP, one request after the other: each is judged before any byte of it is passed on.

use std::net::IpAddr;

use tokio::time::{Instant, timeout_at};

use crate::code::Code;
use crate::copy::Pulse;
use crate::decide::{Known, Target, Verdict, decide};
use crate::event::{EgressOutcome, Event};
use crate::handover::ClearText;
use crate::hello::{Hello, Request};
use crate::http::{self, Framing, Head, Parsed};
use crate::session::{End, Session};
use crate::stream::Stream;

const PIECE: usize = 16 * 1024;

/// A connection for plain HTTP: its ends, whom it is for, and what was judged and dialled.
pub(crate) struct Passage<'a> {
    pub(crate) client: &'a Stream,
    pub(crate) server: &'a Stream,
    pub(crate) target: &'a Target,
    pub(crate) addresses: &'a [IpAddr],
    pub(crate) address: IpAddr,
}

impl Session {
    /// Passes on requests until the client ends, or one of them is refused. What was let through before is on its
    /// way, so a refusal is not answered: the connection breaks.
    pub(crate) async fn requests(
        &self,
        passage: &Passage<'_>,
        said: Vec<u8>,
        pulse: &Pulse,
    ) -> Result<(), End> {
        let done = self.pass_requests(passage, said, pulse).await;
        if let Err(End::Refused(refusal)) = &done {
            self.tell_refused(passage.target, None, refusal.clone());
        }
        done
    }

    async fn pass_requests(
        &self,
        passage: &Passage<'_>,
        mut said: Vec<u8>,
        pulse: &Pulse,
    ) -> Result<(), End> {
        let Passage { client, server, .. } = *passage;
        let mut watch = self.clear_text();
        while let Some(head) = self.head(client, &mut said).await? {
            // Before it is recorded as let through.
            look_at(watch.as_deref_mut(), &said, head.length)?;
            self.judge(passage, &head.request)?;
            pass_on(server, &mut said, head.length).await?;
            let mut body = Framing::new(head.body);
            loop {
                let length = body.advance(&said)?;
                look_at(watch.as_deref_mut(), &said, length)?;
                pass_on(server, &mut said, length).await?;
                pulse.beat();
                if body.is_done() {
                    break;
                }
                if read_more(client, &mut said).await? == 0 {
                    return Err(End::Gone);
                }
            }
        }
        Ok(server.finish()?)
    }

    /// The next head; `None` if the client has ended between two requests.
    async fn head(&self, client: &Stream, said: &mut Vec<u8>) -> Result<Option<Head>, End> {
        if said.is_empty() && read_more(client, said).await? == 0 {
            return Ok(None);
        }
        // From its first byte on a head has as long as a first one.
        let late = Instant::now() + self.limits.hello;
        loop {
            match http::parse(said) {
                Parsed::Head(head) => return Ok(Some(head)),
                Parsed::Bad(code) => return Err(code.into()),
                Parsed::More => {
                    let more = timeout_at(late, read_more(client, said)).await;
                    if more.map_err(|_| End::from(Code::HelloLate))?? == 0 {
                        return Err(End::Gone);
                    }
                }
            }
        }
    }

    fn judge(&self, passage: &Passage<'_>, request: &Request) -> Result<(), End> {
        let Passage { target, addresses, address, .. } = *passage;
        let hello = Hello::Http(request.clone());
        match decide(&self.rules, target, Known { addresses: Some(addresses), hello: Some(&hello) }) {
            Verdict::Allow(_) => {
                let event =
                    Event::new(&target.host.to_string(), Some(target.port), EgressOutcome::Allowed(address));
                self.tell(event.about(&request.method, &request.path));
                Ok(())
            }
            Verdict::Refuse(refusal) => {
                self.tell_refused(target, Some(request), refusal);
                Err(End::Gone)
            }
            Verdict::Resolve | Verdict::Listen => Err(Code::RequestNotGranted.into()),
        }
    }
}

/// Refuses what must not leave in the clear.
fn look_at(watch: Option<&mut (dyn ClearText + 'static)>, said: &[u8], length: usize) -> Result<(), End> {
    let bytes = said.get(..length).unwrap_or_default();
    if watch.is_some_and(|watch| watch.is_forbidden(bytes)) {
        return Err(Code::SecretMisdirected.into());
    }
    Ok(())
}

async fn pass_on(server: &Stream, said: &mut Vec<u8>, length: usize) -> Result<(), End> {
    server.write_all(said.get(..length).unwrap_or_default()).await?;
    said.drain(..length.min(said.len()));
    Ok(())
}

async fn read_more(client: &Stream, said: &mut Vec<u8>) -> Result<usize, End> {
    let had = said.len();
    // The buffer is no larger than what is in it while nothing comes.
    said.shrink_to(0);
    client.ready(tokio::io::Interest::READABLE).await?;
    said.resize(had + PIECE, 0);
    let read = client.read(said.get_mut(had..).unwrap_or_default()).await;
    said.truncate(had + *read.as_ref().unwrap_or(&0));
    Ok(read?)
}
