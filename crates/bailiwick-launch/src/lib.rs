//! Launch a program that is held to a plan: the one path from a [`Plan`](bailiwick_policy::plan::Plan) to a process.
//!
//! Everything in Bailiwick that starts a confined program goes through these steps, in this order, and one type owns
//! each of them:
//!
//! | step | type | what happens |
//! |---|---|---|
//! | plan on this host | [`HostPlanner`] | links of granted paths are followed, Bailiwick's own directories are hidden |
//! | describe | [`Launch`] | the plan, the command, the sandbox, how names are resolved, and where it is recorded |
//! | prepare | [`ReadyLaunch`] | everything is opened and checked; [`ReadyLaunch::status`] says what will be held |
//! | record, start, serve | [`Launched`] | the start is recorded, the program is started, its network is answered |
//! | end | [`Launched::finish`] | the network stops and the end is recorded |
//!
//! # A first example
//!
//! ```
//! use std::io::Read as _;
//!
//! use bailiwick_launch::{Command, Exit, HostPlanner, Launch, Pipes, Recorder};
//! use bailiwick_policy::capability::CapabilitySet;
//!
//! let granted = CapabilitySet::new(["fs:read:/etc/hostname"])?;
//! let plan = HostPlanner::default().authority_plan("demo", granted.authority())?;
//!
//! let (stdio, mut ends) = Pipes::open()?;
//! let command = Command { args: vec!["held".into()], stdio, ..Command::new("echo") };
//! let mut launched = Launch::new(&plan, command, Recorder::unrecorded("demo")).prepare()?.start()?;
//!
//! let mut printed = String::new();
//! ends.stdout.read_to_string(&mut printed)?;
//! assert_eq!(printed, "held\n");
//! assert_eq!(launched.wait()?, Exit::Code(0));
//! launched.finish("exit code 0")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is recorded
//!
//! A [`Recorder`] is part of every [`Launch`]. [`ReadyLaunch::start`] writes the start record **before** the program
//! is started, and returns [`LaunchError::Unrecorded`] without starting anything if that fails. A caller that wants no
//! record writes [`Recorder::unrecorded`], which a reviewer can search for.
//!
//! # What holds where
//!
//! Linux only. The native sandbox needs user namespaces; Landlock, the filter of system calls and control groups are
//! used where the host has them, and [`Status`] says per axis what is really held. See `bailiwick-confine`.
//!
//! Fails closed when: a granted path cannot be looked at, the sandbox cannot hold the floor, the start cannot be
//! recorded, or the network cannot be served. Nothing runs then.
#![forbid(unsafe_code)]

mod external;
mod git_names;
mod host;
mod launch;
mod launcher;
mod network;
mod pipes;
mod record;

pub use bailiwick_broker::{
    BrokerError, BrokerProcess, BrokeredClient, Brokering, Dialled, LoadSecret, ServiceNames,
};
pub use bailiwick_confine::{
    Access, AccessKind, Accesses, BrokeredInside, CHOOSING_VARIABLES, Change, Command, Exit, Fault, Layer,
    LayeredTree, LostFiles, Moment, Observation, Observations, Options, Refusal, Search, Status, Stdio, Step,
    System, Told, ToldRefusals, Watch, Written,
};
pub use bailiwick_egress::{
    Code as NetworkCode, Event as NetworkEvent, Lookup, Refusal as NetworkRefusal, Resolver,
    Target as NetworkTarget,
};
pub use external::Backend;
pub use git_names::paths_named_by_git;
pub use host::{HostPlanner, PlanError};
pub use launch::{Launch, LaunchError, Launched, ReadyLaunch};
pub use launcher::Launcher;
pub use network::{FixedHosts, NameSources, NetworkRefusals, brokered_client, network_event};
pub use pipes::Pipes;
pub use record::{CallsInFlight, RecordError, Recorder, attributed};
