//! The sandbox's network namespace: made by a process beside pid 1, which makes the root meanwhile.
//!
//! Both take about as long, and neither needs the other. Pid 1 follows into the namespace before it gives up its
//! capabilities, so whatever goes wrong here the program is never started in another network.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bailiwick_layout::fault::Step;
use bailiwick_layout::weakened;
use rustix::io::Errno;
use rustix::thread::LinkNameSpaceType;

use crate::control::{MOST_DESCRIPTORS, Message, send};
use crate::sys::{clone, netns};

/// A network in the making: what is wanted, and what came of it.
pub(crate) struct Making<'a> {
    request: &'a netns::Request,
    made: Cell<Option<Result<Made, (Step, Errno)>>>,
}

/// A namespace and its sockets.
struct Made {
    namespace: Option<OwnedFd>,
    sockets: netns::Sockets,
}

impl<'a> Making<'a> {
    pub(crate) const fn new(request: &'a netns::Request) -> Self {
        Self { request, made: Cell::new(None) }
    }

    /// Follows into the namespace and passes its sockets out to the supervisor.
    pub(crate) fn enter(&self, control: BorrowedFd<'_>) -> Result<(), (Step, Errno)> {
        // Nothing was said if the process beside was killed.
        let Made { namespace, sockets } = self.made.take().unwrap_or(Err((Step::Network, Errno::SRCH)))?;
        if let Some(namespace) = namespace {
            let kind = Some(LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(namespace.as_fd(), kind)
                .map_err(|errno| (Step::Network, errno))?;
        }
        pass_out(&sockets, control).map_err(|errno| (Step::Network, errno))
    }
}

/// The process beside: makes the network and ends.
pub(crate) fn make(making: &Making<'_>) -> ! {
    making.made.set(Some(open(making.request)));
    clone::exit(0)
}

fn open(request: &netns::Request) -> Result<Made, (Step, Errno)> {
    let namespace = if weakened::NETWORK_NAMESPACE {
        None
    } else {
        Some(clone::leave_network().map_err(|errno| (Step::Clone, errno))?)
    };
    let mut sockets = netns::Sockets::new();
    netns::open(request, &mut sockets)
        .map_err(|fault| (Step::Network, Errno::from_raw_os_error(fault.errno)))?;
    Ok(Made { namespace, sockets })
}

fn pass_out(sockets: &netns::Sockets, control: BorrowedFd<'_>) -> Result<(), Errno> {
    let groups = [&sockets.dns_udp[..], &sockets.dns_tcp[..], &sockets.entrance[..], &sockets.relays[..]];
    let mut all = [control; MOST_DESCRIPTORS];
    let (mut rest, mut total, mut counts) = (&mut all[..], 0, [0; 4]);
    for (group, count) in groups.into_iter().zip(&mut counts) {
        for socket in group.iter().flatten() {
            let (first, others) = rest.split_first_mut().ok_or(Errno::MFILE)?;
            *first = socket.as_fd();
            (rest, total, *count) = (others, total + 1, *count + 1);
        }
    }
    let [udp, tcp, entrance, _] = counts;
    let message = Message::Sockets { udp, tcp, entrance, redirected: sockets.way == netns::Way::Redirected };
    send(control, message, all.get(..total).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_was_not_made_is_not_entered() {
        let (control, _other) = crate::control::pair().unwrap();
        let authority = bailiwick_policy::authority::Authority::bottom();
        let facts = bailiwick_policy::facts::HostFacts::unknown();
        let plan = bailiwick_policy::plan::Plan::for_authority("t", &authority, &facts).unwrap();
        let request = netns::Request::for_plan(&plan).unwrap();
        for said in [None, Some(Err((Step::Clone, Errno::NOSPC)))] {
            let making = Making::new(&request);
            making.made.set(said);
            assert!(making.enter(control.as_fd()).is_err());
        }
    }
}
