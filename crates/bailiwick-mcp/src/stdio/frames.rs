//! Lines of bounded length out of a stream.

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The longest line, in bytes.
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A line, or what is left when the input ends.
    Whole(Vec<u8>),
    /// A line that is too long; it is skipped to its end.
    TooLong,
    /// Nothing any more.
    End,
}

/// Reads lines. A call that is dropped loses nothing.
pub(crate) struct Frames<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    longest: usize,
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self::with_longest(reader, MAX_LINE)
    }

    /// Lines of at most so many bytes.
    pub(crate) fn with_longest(reader: R, longest: usize) -> Self {
        let reader = BufReader::with_capacity(64 * 1024, reader);
        Self { reader, line: Vec::new(), longest, skipping: false }
    }

    pub(crate) async fn next(&mut self) -> std::io::Result<Frame> {
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return Ok(if rest.is_empty() { Frame::End } else { Frame::Whole(rest) });
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let text = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
            let too_long = !self.skipping && self.line.len() + text.len() > self.longest;
            if !self.skipping && !too_long {
                self.line.extend_from_slice(text);
            }
            let used = end.map_or(read.len(), |end| end + 1);
            self.reader.consume(used);
            let skipped = self.skipping;
            if too_long || end.is_some() {
                self.skipping = end.is_none();
            }
            if too_long {
                self.line = Vec::new();
                return Ok(Frame::TooLong);
            }
            if end.is_some() && !skipped {
                return Ok(Frame::Whole(std::mem::take(&mut self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(text: &[u8]) -> Vec<Frame> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut frames = Frames::new(text);
        let mut all = Vec::new();
        while all.last() != Some(&Frame::End) {
            all.push(runtime.block_on(frames.next()).unwrap());
        }
        all
    }

    fn whole(text: &str) -> Frame {
        Frame::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_end_with_a_newline_or_the_input() {
        assert_eq!(frames(b"a\n\nb"), [whole("a"), whole(""), whole("b"), Frame::End]);
        assert_eq!(frames(b""), [Frame::End]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let long = vec![b'x'; MAX_LINE + 1];
        let fits = vec![b'y'; MAX_LINE];
        let text = [&b"a\n"[..], &long, b"\n", &fits, b"\nb\n", &long, &long].concat();
        let all = frames(&text);
        assert_eq!(all[0], whole("a"));
        assert_eq!(all[1], Frame::TooLong);
        assert!(matches!(&all[2], Frame::Whole(line) if line.len() == MAX_LINE));
        assert_eq!(all[3..], [whole("b"), Frame::TooLong, Frame::End]);
    }
}
