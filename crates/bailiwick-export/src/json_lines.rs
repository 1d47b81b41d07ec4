//! JSON lines: each is the line of the journal as it stands there, with its name as `id` before it.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::PathBuf;

use bailiwick_journal::private;

use crate::batch::{Batch, Exported};
use crate::ids;

/// Where JSON lines go.
pub enum LinesTarget {
    /// A file of the user's alone. When it is full it becomes `FILE.1`, in the place of the one before.
    File {
        /// The file.
        path: PathBuf,
        /// How long it may grow, in bytes.
        most_bytes: u64,
    },
    /// What the caller passes on, such as stdout.
    Writer(Box<dyn Write + Send>),
}

/// Writes JSON lines.
pub struct Lines {
    target: LinesTarget,
}

impl Lines {
    /// To this target.
    #[must_use]
    pub const fn new(target: LinesTarget) -> Self {
        Self { target }
    }

    /// Writes a batch; in a file it is on disk when this comes back.
    pub(crate) fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let text: String = batch.events.iter().map(json_line).collect();
        match &mut self.target {
            LinesTarget::Writer(writer) => {
                writer.write_all(text.as_bytes())?;
                writer.flush()
            }
            LinesTarget::File { path, most_bytes } => {
                let mut file = opened(path)?;
                if file.metadata()?.len().saturating_add(text.len() as u64) > *most_bytes {
                    let mut older = path.clone().into_os_string();
                    older.push(".1");
                    fs::rename(&*path, older)?;
                    file = opened(path)?;
                }
                file.write_all(text.as_bytes())?;
                file.sync_data()
            }
        }
    }
}

/// The file, open behind its last whole line: a torn one is ended, so that what follows stands alone.
fn opened(path: &PathBuf) -> io::Result<File> {
    let mut file = private::options().read(true).append(true).create(true).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// An event on a line. Characters that a terminal acts on, or that hide others, are escaped: the same JSON, and harmless to look at.
fn json_line(exported: &Exported) -> String {
    let id = ids::event_id(&exported.session, exported.seq);
    let rest = exported.line.strip_prefix('{').unwrap_or(&exported.line);
    let mut text = format!("{{\"id\":\"{id}\",");
    for c in rest.chars() {
        if is_deceptive(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(c);
        }
    }
    text.push('\n');
    text
}

/// Controls that JSON lets stand, and characters that turn or hide text.
const fn is_deceptive(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
