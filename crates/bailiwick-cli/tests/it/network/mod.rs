//! The network of `bailiwick run`, end to end: real clients, attacks, and what is left when the supervisor is gone.
//!
//! Every test runs the built command, as root and as a plain user, in a network of the test's own in which servers of
//! the test stand for the hosts of the internet. What the parts do by themselves is tested in `bailiwick-egress`.

mod attacks;
mod brokered;
mod clients;
mod clients_of_secrets;
mod ending;
mod exchanges;
mod fetched;
mod hints;
mod inside;
mod learned;
mod listening;
mod log;
mod own_ports;
mod registries;
mod screening;
mod secrets;
mod served;
mod servers;
mod traces;
mod world;

pub(crate) use servers::Authority;
pub(crate) use world::in_world;

/// The host that is granted, one that is not, one of an inner network, and a name server.
const GOOD: &str = "93.184.216.34";
const EVIL: &str = "93.184.216.66";
const INNER: &str = "10.0.0.5";
const NAMES: &str = "93.184.216.53:53";

/// What `run` is told of the world, everywhere.
const WORLD: [&str; 7] = [
    "--net-log",
    "--hosts",
    "good.test=93.184.216.34",
    "--hosts",
    "evil.test=93.184.216.66",
    "--dns",
    "93.184.216.53:53",
];
