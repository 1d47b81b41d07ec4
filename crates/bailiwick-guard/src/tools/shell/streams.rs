//! What programs say and are told: output up to a cap, in whole characters, heard while it comes.

use std::os::fd::OwnedFd;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

/// How much of a stream is kept, in bytes of text.
pub(super) const MAX_OUTPUT: usize = 1024 * 1024;

/// What was said on one stream.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) text: String,
    pub(super) truncated: bool,
}

/// A pipe: the end that reads, the end that writes.
pub(super) fn pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// What the stream says, up to the cap; the rest is read and dropped, and that is said.
pub(super) async fn capture(mut stream: pipe::Receiver, told: impl Fn(&str)) -> Captured {
    let (mut captured, mut pending) = (Captured::default(), Vec::new());
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = stream.read(&mut buffer).await {
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else { break };
        if captured.truncated {
            continue;
        }
        pending.extend_from_slice(read);
        let whole = pending.len() - unfinished(&pending);
        captured.take(&mut pending, whole, &told);
    }
    if !captured.truncated {
        let all = pending.len();
        captured.take(&mut pending, all, &told);
    }
    captured
}

impl Captured {
    fn take(&mut self, pending: &mut Vec<u8>, count: usize, told: &impl Fn(&str)) {
        let rest = pending.split_off(count);
        let text = String::from_utf8_lossy(pending);
        // A byte that is no text becomes three: what counts is what is kept.
        let room = MAX_OUTPUT - self.text.len();
        let kept = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        self.truncated |= kept.len() < text.len();
        if !kept.is_empty() {
            told(kept);
            self.text += kept;
        }
        drop(text);
        *pending = rest;
    }
}

/// How many bytes at the end begin a character that is not all there yet.
fn unfinished(bytes: &[u8]) -> usize {
    let begins = |back: &usize| {
        let tail = bytes.len().checked_sub(*back).and_then(|at| bytes.get(at..)).unwrap_or_default();
        std::str::from_utf8(tail).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..4).find(begins).unwrap_or(0)
}

/// Writes the input and closes it; ends early when the reader closes its end.
pub(super) async fn feed(input: Option<(pipe::Sender, String)>) {
    if let Some((mut pipe, text)) = input {
        drop(pipe.write_all(text.as_bytes()).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_character_that_may_still_come_is_held_back() {
        for (bytes, held) in [
            (&b""[..], 0),
            (b"abc", 0),
            ("a€".as_bytes(), 0),
            (b"a\xe2", 1),
            (b"a\xe2\x82", 2),
            (b"\xf0\x9f\x98", 3),
            (b"\xff", 0),
            (b"\x82", 0),
            (b"\xe2\x82x", 0),
        ] {
            assert_eq!(unfinished(bytes), held, "{bytes:?}");
        }
    }
}
