//! A stream of events as a server sends it, read piece by piece within bounds.
//!
//! Fails closed when: a line or an event has more bytes than it may. The stream is given up then.

/// The most bytes of one event.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;

/// The longest id, in bytes: it is sent back in a header.
const MAX_ID: usize = 1024;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// Its data; empty where it only has an id.
    pub data: Vec<u8>,
}

/// More bytes than an event may have.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// Reads events.
#[derive(Debug, Default)]
pub struct EventReader {
    line: Vec<u8>,
    /// What the event has so far; nothing before its first data.
    data: Option<Vec<u8>>,
    is_other: bool,
    /// Whether the last byte was a carriage return: a line feed behind it ends no second line.
    after_return: bool,
    has_begun: bool,
    /// By which the stream can be taken up again.
    pub last_id: Option<String>,
    /// How long to wait before that, in milliseconds.
    pub retry: Option<u64>,
}

impl EventReader {
    /// Reads what follows an event that came over another stream.
    #[must_use]
    pub fn after(last_id: String, retry: Option<u64>) -> Self {
        Self { last_id: Some(last_id), retry, ..Self::default() }
    }

    /// The events that a piece completes.
    ///
    /// # Errors
    /// If one has more bytes than it may.
    pub fn read(&mut self, piece: &[u8]) -> Result<Vec<ServerEvent>, TooLong> {
        let mut events = Vec::new();
        for byte in piece {
            let is_second = std::mem::replace(&mut self.after_return, *byte == b'\r') && *byte == b'\n';
            match byte {
                _ if is_second => {}
                b'\r' | b'\n' => events.extend(self.end_line()),
                _ => self.line.push(*byte),
            }
            if self.line.len() + self.data.as_ref().map_or(0, Vec::len) > LONGEST {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<ServerEvent> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.has_begun, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            let (data, is_other) = (std::mem::take(&mut self.data), std::mem::take(&mut self.is_other));
            return data.filter(|_| !is_other).map(|data| ServerEvent { data });
        }
        let at = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, rest) = line.split_at(at);
        let value = rest.strip_prefix(b":").unwrap_or(rest);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                let is_first = self.data.is_none();
                let data = self.data.get_or_insert_default();
                if !is_first {
                    data.push(b'\n');
                }
                data.extend_from_slice(value);
            }
            b"event" => self.is_other = !value.is_empty() && value != b"message",
            b"id" => {
                let is_plain = value.len() <= MAX_ID && value.iter().all(|byte| matches!(byte, 0x20..=0x7e));
                if is_plain {
                    self.last_id =
                        Some(String::from_utf8_lossy(value).into_owned()).filter(|id| !id.is_empty());
                }
            }
            b"retry" => self.retry = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&[u8]]) -> (Vec<String>, EventReader) {
        let mut reader = EventReader::default();
        let mut texts = Vec::new();
        for piece in pieces {
            let events = reader.read(piece).unwrap();
            texts.extend(events.into_iter().map(|event| String::from_utf8(event.data).unwrap()));
        }
        (texts, reader)
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let text = b"\xef\xbb\xbfid: 1\nretry: 250\nevent: message\ndata: {\"a\":\r\ndata: 1}\r\n\r\n: alive\n\ndata:x\r\revent: endpoint\ndata: /old\n\nid: 2\ndata\n\ndata: cut off";
        let (whole, reader) = all(&[text]);
        assert_eq!(whole, ["{\"a\":\n1}", "x", ""]);
        assert_eq!((reader.last_id.as_deref(), reader.retry), (Some("2"), Some(250)));
        for at in 0..text.len() {
            let (first, second) = text.split_at(at);
            assert_eq!(all(&[first, second]).0, whole, "{at}");
        }
    }

    #[test]
    fn nothing_grows_without_end() {
        let mut reader = EventReader::default();
        let piece = vec![b'x'; 1024 * 1024];
        assert!((0..16).any(|_| reader.read(&piece) == Err(TooLong)) || reader.read(&piece) == Err(TooLong));
        let mut reader = EventReader::default();
        let lines = b"data: yyyyyyyyyyyyyyyy\n".repeat(64 * 1024);
        assert!((0..32).any(|_| reader.read(&lines) == Err(TooLong)));
        let (_, reader) =
            all(&[b"id: a\0b\ndata: 1\n\n", &[b"id: ", &vec![b'i'; 2000][..], b"\n\n"].concat()]);
        assert_eq!(reader.last_id, None);
    }
}
