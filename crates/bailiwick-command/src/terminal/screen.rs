//! A text that is drawn anew in place, on a screen of its own, until a person ends it.
//!
//! What was on the terminal before is there again afterwards, however it ends: by `q`, by a signal or by a fault. How the
//! cursor moves does not depend on colours: without them the text is plain, and the screen is the same.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::choice;

/// How often the text is drawn.
const EVERY: Duration = Duration::from_secs(1);
/// How soon a key, a signal or another size is noticed.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// The other screen, without a cursor, and lines that are cut at the edge.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// How much there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    /// Characters in a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

/// What draws the text for a size.
pub type Drawing = Box<dyn FnMut(ScreenSize) -> anyhow::Result<String>>;

/// Draws until a person or a signal ends it.
pub(super) fn show(mut draw: Drawing, colour: clap::ColorChoice) -> anyhow::Result<()> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).context("cannot wait for a signal")?;
    }
    let screen = Screen::enter()?;
    while !ended.load(Ordering::Relaxed) {
        let size = ScreenSize::now();
        Screen::draw(&draw(size)?, size.rows, colour)?;
        let since = Instant::now();
        while since.elapsed() < EVERY && size == ScreenSize::now() && !ended.load(Ordering::Relaxed) {
            if screen.is_told_to_end() {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl ScreenSize {
    /// That of the terminal; of an old one if it does not say.
    fn now() -> Self {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or(Self { columns: 80, rows: 24 }, |size| Self {
            columns: usize::from(size.ws_col),
            rows: usize::from(size.ws_row),
        })
    }
}

/// The other screen of the terminal. Gone when this is dropped, and keys are then what they were.
struct Screen {
    keys: Option<Termios>,
}

impl Screen {
    fn enter() -> anyhow::Result<Self> {
        let keys = std::io::stdin().is_terminal().then(read_keys_at_once).flatten();
        let screen = Self { keys };
        write_plainly(ENTER)?;
        Ok(screen)
    }

    /// From the upper left corner, line by line; what was there is cleared. One write, so that nothing flickers.
    fn draw(text: &str, rows: usize, colour: clap::ColorChoice) -> anyhow::Result<()> {
        let is_plain =
            AutoStream::new(std::io::stdout(), choice(colour)).current_choice() == ColorChoice::Never;
        let text = if is_plain { strip_str(text).to_string() } else { text.to_owned() };
        let lines: Vec<&str> = text.lines().take(rows).collect();
        write_plainly(&format!("\u{1b}[H{}\u{1b}[K\u{1b}[J", lines.join("\u{1b}[K\r\n")))
    }

    /// Waits a moment for a key.
    fn is_told_to_end(&self) -> bool {
        let stdin = std::io::stdin();
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        let heard =
            if self.keys.is_some() { poll(&mut asked, Some(&PAUSE)) } else { poll(&mut [], Some(&PAUSE)) };
        if !heard.is_ok_and(|count| count > 0) {
            return false;
        }
        let mut keys = [0; 32];
        let read = rustix::io::read(&stdin, &mut keys).unwrap_or(0);
        // A terminal that is gone has no more keys.
        read == 0 || keys.iter().take(read).any(|key| matches!(key, b'q' | b'Q' | 4))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nothing to do about a terminal that is gone.
        drop(write_plainly(LEAVE));
        if let Some(keys) = &self.keys {
            let _given_back = rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Flush, keys);
        }
    }
}

/// Has keys come at once and unseen, and not suspend the program; what was before, if that could be done.
fn read_keys_at_once() -> Option<Termios> {
    let before = rustix::termios::tcgetattr(std::io::stdin()).ok()?;
    let mut keys = before.clone();
    keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    keys.special_codes[SpecialCodeIndex::VSUSP] = 0;
    rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Now, &keys).ok()?;
    Some(before)
}

fn write_plainly(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot draw on this terminal")
}
