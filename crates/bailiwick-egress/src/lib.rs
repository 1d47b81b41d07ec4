//! A transparent network allowlist by name: the one place where hostile network bytes are parsed.
//!
//! The sandbox sees a network in which every address is local. Sockets made in there are answered from here,
//! outside: the stub gives granted names addresses of our own making, and a connection to such an address is a
//! connection to that *name*. The name is resolved here, its addresses are screened, what the client says first is
//! checked, and only then is one of the screened addresses dialled. Whether all that is allowed is one pure
//! function, [`decide`].
//!
//! Makes no namespaces and no listeners: whoever confines the process hands them over. Fails closed when anything
//! is unreadable, unresolved, late or beyond a limit; with this process gone the sandbox has no network at all.
//!
//! Residual: inside TLS neither the `Host` of a request nor its method or path is seen.
#![forbid(unsafe_code)]

mod code;
mod connect;
mod copy;
mod decide;
mod dns;
mod event;
mod handshake;
mod hello;
mod http;
mod limits;
mod names;
mod relay;
mod requests;
mod resolve;
mod serve;
mod session;
mod stream;

pub use code::Code;
pub use decide::{Known, Pass, Refusal, Rules, Stream, Target, Verdict, decide};
pub use event::{Event, Outcome};
pub use hello::{Hello, Listening, Request};
pub use limits::{Limits, raise_file_limit};
pub use resolve::{Lookup, Resolver};
pub use serve::{Copying, Egress, Front, Options, Running, Sockets};

/// Entry points for fuzzing: each takes what a hostile client or server may send, and must return.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::dns::answer_for_fuzzing as dns_query;
    pub use crate::http::{Body, Framing, Parsed, parse as http_head};
    pub use crate::resolve::answer_for_fuzzing as dns_answer;
}
