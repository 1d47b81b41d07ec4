//! The course of a connection to a host whose TLS is ended outside of the sandbox, and of bytes in the clear while such
//! hosts are there.
//!
//! Fails closed when such a host is spoken to in anything but TLS that names it, whatever else is granted.

use std::net::SocketAddr;
use std::sync::Arc;

use bailiwick_policy::net::Host;

use crate::code::Code;
use crate::copy::Pulse;
use crate::decide::{self, Refusal, Target};
use crate::handover::{ClearText, Dialler, Handover, Replayed, TlsEnd};
use crate::hello::{Hello, Listening};
use crate::session::{End, Opening, Session, send_refusal};
use crate::stream::Stream;

impl Session {
    /// What ends TLS for this host and port, if anything does.
    pub(crate) fn tls_end(&self, target: &Target) -> Option<Arc<dyn TlsEnd>> {
        self.tls_end.as_ref().filter(|end| end.ends(target)).map(Arc::clone)
    }

    /// Looks at what is sent in the clear; nothing where no host's TLS is ended.
    pub(crate) fn clear_text(&self) -> Option<Box<dyn ClearText>> {
        self.tls_end.as_ref().map(|end| end.watch())
    }

    /// Whether a text that leaves the sandbox by itself, such as a name, holds what must not be sent.
    pub(crate) fn is_forbidden(&self, text: &str) -> bool {
        self.clear_text().is_some_and(|mut watch| watch.is_forbidden(text.as_bytes()))
    }

    /// Hands a connection over, once it may go on.
    pub(crate) async fn hand_over(
        &self,
        client: Stream,
        target: Target,
        opening: Opening,
        end: Arc<dyn TlsEnd>,
    ) {
        let greeting = opening.greeting;
        let mut hello = None;
        let settled = async {
            let settled = Box::pin(self.settle(&client, &target, opening, &mut hello)).await?;
            let mut listening = Listening::default();
            if hello.is_none() && !settled.said.is_empty() {
                hello = listening.read_piece(&settled.said);
            }
            if !settled.greeted {
                client.write_all(greeting).await?;
            }
            let said = match &hello {
                Some(_) => settled.said,
                // What is granted raw was not listened to yet.
                None => {
                    if settled.said.is_empty() {
                        listening = Listening::default();
                    }
                    hello = Some(self.listen(&client, &mut listening).await?);
                    listening.into_bytes()
                }
            };
            if settled.pass.stream != decide::Stream::Tls && !names(hello.as_ref(), &target) {
                let clear = self.clear_text().is_some_and(|mut watch| watch.is_forbidden(&said));
                return Err(End::from(if clear { Code::SecretMisdirected } else { Code::SecretInTheClear }));
            }
            let (server, address) = Box::pin(self.dial(&settled.pass, target.port)).await?;
            Ok((said, server, address, settled.pass))
        };
        match settled.await {
            Ok((said, Stream::Tcp(server), address, pass)) => {
                let port = target.port;
                let addresses =
                    pass.addresses.iter().map(|address| SocketAddr::new(*address, port)).collect();
                let connection = Handover {
                    target,
                    client: Replayed::new(said, client),
                    server,
                    address,
                    dialler: Dialler { addresses, patience: self.limits.dial },
                    rules: self.rules.clone(),
                    tell: self.teller(),
                    idle: self.limits.idle,
                };
                end.take(connection).await;
            }
            Ok((_, Stream::Unix(_), ..)) | Err(End::Gone) => {}
            Err(End::Refused(refusal)) => {
                let request = if let Some(Hello::Http(request)) = &hello { Some(request) } else { None };
                self.tell_refused(&target, request, refusal.clone());
                Box::pin(send_refusal(&client, hello.as_ref(), &target, &refusal)).await;
            }
        }
    }

    /// Copies what a client says in the clear, piece by piece, as long as none of it is forbidden.
    pub(crate) async fn copy_watched(
        &self,
        (client, server): (&Stream, &Stream),
        target: &Target,
        mut watch: Box<dyn ClearText>,
        said: Vec<u8>,
        pulse: &Pulse,
    ) -> Result<(), End> {
        let mut piece = said;
        loop {
            if watch.is_forbidden(&piece) {
                self.tell_refused(target, None, Refusal::new(Code::SecretMisdirected));
                return Err(End::Gone);
            }
            server.write_all(&piece).await?;
            pulse.beat();
            piece.resize(PIECE, 0);
            match client.read(&mut piece).await? {
                0 => return Ok(server.finish()?),
                length => piece.truncate(length),
            }
        }
    }
}

const PIECE: usize = 16 * 1024;

/// Whether a client speaks TLS and names the target.
fn names(hello: Option<&Hello>, target: &Target) -> bool {
    match hello {
        Some(Hello::Tls { name: Some(name), hidden: _ }) => {
            Host::new(name).is_ok_and(|host| host == target.host)
        }
        Some(Hello::Tls { name: None, .. } | Hello::Http(_) | Hello::Unreadable(_) | Hello::Other) | None => {
            false
        }
    }
}
