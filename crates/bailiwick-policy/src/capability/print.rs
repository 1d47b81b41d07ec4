//! The canonical text of a capability.

use std::fmt;

use super::{Capability, EnvActions, FsActions, is_loader_variable};

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fs { actions, path } => {
                write!(f, "fs:{actions}:{path}")?;
                if actions.contains(FsActions::CODE) { f.write_str("?code=true") } else { Ok(()) }
            }
            Self::Net(rule) => write!(f, "{rule}"),
            Self::Listen(listen) => write!(f, "net:listen:{listen}"),
            Self::Exec { program, nested_sandbox, from_writable } => {
                f.write_str("exec:spawn:")?;
                match program {
                    Some(program) => write!(f, "{program}")?,
                    None => f.write_str("*")?,
                }
                match (from_writable, nested_sandbox) {
                    (true, true) => f.write_str("?fromWritable=true&nestedSandbox=true"),
                    (true, false) => f.write_str("?fromWritable=true"),
                    (false, true) => f.write_str("?nestedSandbox=true"),
                    (false, false) => Ok(()),
                }
            }
            Self::Env { actions, name } => {
                let name = name.as_deref().unwrap_or("*");
                write!(f, "env:{actions}:{name}")?;
                let loads = actions.contains(EnvActions::INJECT) && is_loader_variable(name);
                if loads { f.write_str("?loader=true") } else { Ok(()) }
            }
            Self::Broker { name, hosts } => {
                write!(f, "env:inject:{name}")?;
                let mark = |index| if index == 0 { '?' } else { '&' };
                hosts
                    .iter()
                    .enumerate()
                    .try_for_each(|(index, host)| write!(f, "{}broker={host}", mark(index)))
            }
            Self::Ipc(endpoint) => write!(f, "ipc:connect:{endpoint}"),
            Self::Clock(actions) => write!(f, "clock:{actions}"),
            Self::Assert { id, description: None } => write!(f, "assert:{id}"),
            Self::Assert { id, description: Some(text) } => {
                let quoted = serde_json::to_string(text).map_err(|_| fmt::Error)?;
                write!(f, "assert:{id}:{quoted}")
            }
        }
    }
}
