//! Sockets through which connections from outside are handed in.
//!
//! A socket belongs to the namespace it was made in, and the supervisor cannot make any in this one. So it gets a pair
//! of each family: a listener, and an unconnected socket. It connects the one to the other, and what the listener accepts
//! is a new socket of this namespace; disconnected, it can be connected to the sandbox's own server. As many can be made
//! as there are connections.
//!
//! Residual: a program inside can connect to the listener too. The supervisor drops what it did not connect itself.

use super::{Bind, Descriptor, Fault, Step, listener, put};

/// Makes a pair: the unconnected socket first, then the listener.
pub(super) fn open(family: i32, out: &mut [Option<Descriptor>]) -> Result<(), Fault> {
    let seed = Descriptor::socket(family, libc::SOCK_STREAM, 0, Step::Entrance)?;
    // Not bound to an address, which accepted sockets would keep.
    let accepting = listener(family, Bind::Everywhere(0), Step::Entrance)?;
    put(out, 0, seed);
    put(out, 1, accepting);
    Ok(())
}
