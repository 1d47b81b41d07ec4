//! A transparent network allowlist by name: the one place where hostile network bytes are parsed.
//!
//! The sandbox sees a network in which every address is local. Sockets made in there are answered from here,
//! outside: the stub gives granted names addresses of our own making, and a connection to such an address is a
//! connection to that *name*. The name is resolved here, its addresses are screened, what the client says first is
//! checked, and only then is one of the screened addresses dialled. Whether all that is allowed is one pure
//! function, [`decide`].
//!
//! # First steps
//!
//! [`decide`] is asked again as more becomes known of a connection, and only its last answer dials:
//!
//! ```
//! use bailiwick_egress::{Code, Hello, Known, Rules, Target, Verdict, decide};
//! use bailiwick_policy::capability::CapabilitySet;
//! use bailiwick_policy::facts::HostFacts;
//! use bailiwick_policy::net::Host;
//! use bailiwick_policy::plan::Plan;
//!
//! # fn main() -> Result<(), bailiwick_policy::finding::Findings> {
//! let granted = CapabilitySet::new(["net:connect:api.example.com:443"])?;
//! let plan = Plan::for_authority("demo", granted.authority(), &HostFacts::unknown())?;
//! let rules = Rules::new(plan.network());
//!
//! let target = Target::new(Host::new("api.example.com")?, 443);
//! assert_eq!(decide(&rules, &target, Known::default()), Verdict::Resolve);
//!
//! let public = ["93.184.215.14".parse().unwrap()];
//! let resolved = Known { addresses: Some(&public), hello: None };
//! assert_eq!(decide(&rules, &target, resolved), Verdict::Listen);
//!
//! let hello = Hello::Tls { name: Some("api.example.com".into()), hidden: false };
//! let heard = Known { hello: Some(&hello), ..resolved };
//! assert!(matches!(decide(&rules, &target, heard), Verdict::Allow(_)));
//!
//! let private = ["10.0.0.1".parse().unwrap()];
//! let rebound = Known { addresses: Some(&private), ..heard };
//! let Verdict::Refuse(refusal) = decide(&rules, &target, rebound) else { panic!("a private address") };
//! assert_eq!(refusal.code(), Code::AddressPrivate);
//!
//! let other = Target::new(Host::new("evil.example")?, 443);
//! let Verdict::Refuse(refusal) = decide(&rules, &other, Known::default()) else { panic!("not granted") };
//! assert_eq!(refusal.grant(), Some("net:connect:evil.example:443"));
//! # Ok(())
//! # }
//! ```
//!
//! [`Egress`] serves the [`Sockets`] of a sandbox by these rules; `bailiwick-launch` connects the two.
//!
//! Makes no namespaces and no listeners: the caller that confines the process hands them over. Fails closed when anything
//! is unreadable, unresolved, late or beyond a limit; with this process gone the sandbox has no network at all.
//!
//! Residual: inside TLS neither the `Host` of a request nor its method or path is seen.
#![forbid(unsafe_code)]

mod blocks;
mod broker;
mod closed;
mod code;
mod connect;
mod copy;
mod decide;
mod dns;
mod entrance;
mod event;
mod handover;
mod handshake;
mod hello;
mod http;
mod limits;
mod names;
mod own_ports;
mod relay;
mod requests;
mod resolve;
mod serve;
mod session;
mod stream;

pub use code::Code;
pub use decide::{Known, Pass, Refusal, Rules, Stream, Target, Verdict, decide, judge_request};
pub use entrance::{Entrance, ListenError, Listeners};
pub use event::{EgressOutcome, Event};
pub use handover::{ClearText, Dialler, Handover, Replayed, Teller, TlsEnd};
pub use hello::{Hello, Listening, Request};
pub use http::{authority as host_and_port, is_overriding};
pub use limits::{Limits, raise_file_limit};
pub use own_ports::refuse_ports_in;
pub use resolve::{Lookup, Resolver};
pub use serve::{Copying, Egress, Front, Options, Running, Sockets};

/// Entry points for fuzzing: each takes what a hostile client or server may send, and must return.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::dns::answer_for_fuzzing as dns_query;
    pub use crate::http::{Body, Framing, Parsed, parse as http_head};
    pub use crate::resolve::answer_for_fuzzing as dns_answer;
}
