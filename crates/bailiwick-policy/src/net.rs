//! The network axis: who may be spoken to, on which ports, in which way.
//!
//! A rule is a box: hosts × ports × speech × whether private addresses may be reached. `connect` covers TLS and
//! HTTP to the named host; other bytes need `protocol=raw`, encrypted client hellos `ech=allow`. A private
//! (special-purpose) address is reached only if that address, a block of such addresses or `localhost` is named,
//! or the rule says so.

mod decide;
mod host;
mod http;
mod listen;
mod port;
mod request;
mod rule;
mod scope;
mod set;
mod special;
#[cfg(test)]
mod tests;
mod url_path;

pub use host::{Host, HostPattern, parse_host_pattern};
pub use http::{Method, Methods, Scheme, Schemes, percent_decoded};
pub use listen::Listen;
pub use port::PortRange;
pub use request::{NetRequest, Speak};
pub use rule::{NetRule, Speech};
pub use scope::NetScope;
pub use set::NetSet;
pub use special::{canonical_ip, is_special, special_blocks};
pub use url_path::UrlPath;

pub(crate) use listen::{ListenScope, parse_listen};
pub(crate) use port::parse_ports;
pub(crate) use url_path::judge_name;
