//! Netlink messages in a buffer of fixed size, and their acknowledgements.
//!
//! Nothing here allocates: it runs between clone and exec. Fails closed when a message does not fit.

use super::{Descriptor, Fault, Step, errno};

const SIZE: usize = 8192;
const HEADER: usize = 16;
/// A flag of nested attributes.
const NESTED: u16 = 1 << 15;

/// Messages to be sent at once.
pub(super) struct Batch {
    bytes: [u8; SIZE],
    used: usize,
    message: usize,
    acknowledged: usize,
    overflow: bool,
}

/// Where a nested attribute began.
pub(super) struct Nest(usize);

impl Batch {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; SIZE], used: 0, message: 0, acknowledged: 0, overflow: false }
    }

    /// Begins a message with this type and these flags; `body` is what stands before its attributes.
    pub(super) fn message(&mut self, kind: u16, flags: u16, body: &[u8]) {
        self.end_message();
        self.message = self.used;
        self.put(&[0; 4]);
        self.put(&kind.to_ne_bytes());
        self.put(&(flags | libc::NLM_F_REQUEST.cast_unsigned_low()).to_ne_bytes());
        self.put(&[0; 8]);
        self.put(body);
        if flags & libc::NLM_F_ACK.cast_unsigned_low() != 0 {
            self.acknowledged += 1;
        }
    }

    /// An attribute of the current message or nest.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.put(&length.to_ne_bytes());
        self.put(&kind.to_ne_bytes());
        self.put(value);
        self.align();
    }

    /// A number, in network order as netfilter wants it.
    pub(super) fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_be_bytes());
    }

    /// Text with its NUL.
    pub(super) fn text(&mut self, kind: u16, value: &core::ffi::CStr) {
        self.attribute(kind, value.to_bytes_with_nul());
    }

    pub(super) fn nest(&mut self, kind: u16) -> Nest {
        let start = self.used;
        self.put(&[0; 2]);
        self.put(&(kind | NESTED).to_ne_bytes());
        Nest(start)
    }

    pub(super) fn close(&mut self, nest: Nest) {
        let length = u16::try_from(self.used - nest.0).unwrap_or(u16::MAX);
        self.patch(nest.0, &length.to_ne_bytes());
    }

    /// Sends all of it and waits for every acknowledgement.
    pub(super) fn send(&mut self, protocol: i32, step: Step) -> Result<(), Fault> {
        self.end_message();
        if self.overflow {
            return Err(Fault { step, errno: libc::EMSGSIZE });
        }
        let socket = Descriptor::socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol, step)?;
        // SAFETY: the first `used` bytes of the buffer are initialised and `used` is within it.
        let sent = unsafe { libc::send(socket.0, self.bytes.as_ptr().cast(), self.used, 0) };
        if sent < 0 {
            return Err(Fault { step, errno: errno() });
        }
        let mut left = self.acknowledged;
        while left > 0 {
            left = left.saturating_sub(acknowledgements(&socket, step)?);
        }
        Ok(())
    }

    fn end_message(&mut self) {
        self.align();
        let length = u32::try_from(self.used - self.message).unwrap_or(u32::MAX);
        if self.used > self.message {
            self.patch(self.message, &length.to_ne_bytes());
        }
    }

    fn align(&mut self) {
        let padding = self.used.next_multiple_of(4) - self.used;
        self.put([0; 3].get(..padding).unwrap_or_default());
    }

    fn put(&mut self, bytes: &[u8]) {
        let at = self.used;
        self.used = at.saturating_add(bytes.len());
        self.patch(at, bytes);
        if self.overflow {
            self.used = at;
        }
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        match self.bytes.get_mut(at..at.saturating_add(bytes.len())) {
            Some(place) => place.copy_from_slice(bytes),
            None => self.overflow = true,
        }
    }
}

/// Reads one datagram of acknowledgements and counts them; the first refusal ends it.
fn acknowledgements(socket: &Descriptor, step: Step) -> Result<usize, Fault> {
    let mut bytes = [0_u8; SIZE];
    // SAFETY: the buffer is as long as is said and lives through the call.
    let length = unsafe { libc::recv(socket.0, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    let Ok(length) = usize::try_from(length) else { return Err(Fault { step, errno: errno() }) };
    let mut rest = bytes.get(..length).unwrap_or_default();
    let mut count = 0;
    while let Some((size, kind, error)) = header(rest) {
        if i32::from(kind) == libc::NLMSG_ERROR {
            if error != 0 {
                return Err(Fault { step, errno: error.saturating_neg() });
            }
            count += 1;
        }
        rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
    }
    if count == 0 { Err(Fault { step, errno: libc::EPROTO }) } else { Ok(count) }
}

/// Length, type and, if it is an acknowledgement, error of the next message.
fn header(bytes: &[u8]) -> Option<(usize, u16, i32)> {
    let size = u32::from_ne_bytes(*bytes.first_chunk()?);
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let error = i32::from_ne_bytes(*bytes.get(HEADER..)?.first_chunk()?);
    let size = usize::try_from(size).ok().filter(|size| *size >= HEADER)?;
    Some((size, kind, error))
}

/// Flags of netlink are small positive numbers that the C library declares with a sign.
trait LowBits {
    fn cast_unsigned_low(self) -> u16;
}

impl LowBits for i32 {
    fn cast_unsigned_low(self) -> u16 {
        u16::try_from(self).unwrap_or(0)
    }
}

/// The flags for a message that must be acknowledged, with others besides.
pub(super) fn acknowledged(others: i32) -> u16 {
    (libc::NLM_F_ACK | others).cast_unsigned_low()
}
