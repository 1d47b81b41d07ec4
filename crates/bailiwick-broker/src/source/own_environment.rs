//! A variable of this process's own environment, taken out of it.
//!
//! The kernel put the environment into this process's memory when it started, and a sandbox starts as a copy of that
//! memory. So the value is read from there into a buffer that is wiped, and zeros are written over it: this process, what
//! is cloned from it and what it starts have an empty variable from then on. A second taking finds nothing.
//!
//! Fails closed where `/proc/self` cannot be written.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;

use zeroize::Zeroizing;

use crate::value::{MAX_SECRET, SecretValue};

/// The places of `/proc/self/stat` behind the program's name where the environment's start and end stand.
const START: usize = 47;
const END: usize = 48;
/// How much is looked at in one step.
const STEP: usize = 64 * 1024;

/// Takes the value of a variable.
pub(super) fn take(name: &str) -> io::Result<SecretValue> {
    let (start, end) = block()?;
    let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem")?;
    let wanted = [name.as_bytes(), b"="].concat();
    let (at, length) = find(&memory, (start, end), &wanted)?
        .filter(|(_, length)| *length > 0)
        .ok_or_else(|| io::Error::other("it is not set, or was taken already"))?;
    let mut value = Zeroizing::new(vec![0; length.min(MAX_SECRET + 1)]);
    memory.read_exact_at(&mut value, at)?;
    memory.write_all_at(&vec![0; length], at)?;
    Ok(SecretValue::new(value))
}

/// Empties every variable that has one of these values in it, whatever it is called: a copy under another name is a copy.
/// Gives the names of those variables.
pub(crate) fn erase<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> io::Result<Vec<String>> {
    let values: Vec<&[u8]> = values.into_iter().filter(|value| !value.is_empty()).collect();
    let has = |text: &[u8], value: &[u8]| {
        text.len() >= value.len() && text.windows(value.len()).any(|window| window == value)
    };
    empty_where(|_, text| values.iter().any(|value| has(text, value)))
}

/// Every variable but those of these names.
///
/// # Errors
/// If the environment cannot be read.
pub fn environment_without(hidden: &[String]) -> io::Result<Vec<(OsString, OsString)>> {
    let (start, end) = block()?;
    let memory = File::open("/proc/self/mem")?;
    let mut all = Zeroizing::new(vec![0; usize::try_from(end - start).map_err(io::Error::other)?]);
    memory.read_exact_at(&mut all, start)?;
    let is_hidden = |name: &[u8]| hidden.iter().any(|own| own.as_bytes() == name);
    let copied = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let named = all.split(|byte| *byte == 0).filter_map(|entry| {
        let equals = entry.iter().position(|byte| *byte == b'=')?;
        let (name, text) = (entry.get(..equals)?, entry.get(equals + 1..)?);
        (!is_hidden(name)).then(|| (copied(name), copied(text)))
    });
    Ok(named.collect())
}

/// Empties the variables of these names.
pub(crate) fn empty(names: &[&str]) -> io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    empty_where(|name, _| names.iter().any(|own| own.as_bytes() == name)).map(drop)
}

fn empty_where(is_one: impl Fn(&[u8], &[u8]) -> bool) -> io::Result<Vec<String>> {
    let (start, end) = block()?;
    let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem")?;
    let mut all = Zeroizing::new(vec![0; usize::try_from(end - start).map_err(io::Error::other)?]);
    memory.read_exact_at(&mut all, start)?;
    let (mut at, mut emptied) = (0, Vec::new());
    for entry in all.split(|byte| *byte == 0) {
        let equals = entry.iter().position(|byte| *byte == b'=');
        let named = equals.map_or(entry.len(), |equals| equals + 1);
        let name = entry.get(..equals.unwrap_or(entry.len())).unwrap_or_default();
        let text = entry.get(named..).unwrap_or_default();
        if !text.is_empty() && is_one(name, text) {
            let place = start + u64::try_from(at + named).map_err(io::Error::other)?;
            memory.write_all_at(&vec![0; text.len()], place)?;
            emptied.push(String::from_utf8_lossy(name).into_owned());
        }
        at += entry.len() + 1;
    }
    Ok(emptied)
}

/// Where the environment lies.
fn block() -> io::Result<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program may contain anything but is closed by the last parenthesis.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let number =
        |place: usize| behind.split_whitespace().nth(place).and_then(|text| text.parse::<u64>().ok());
    match (number(START), number(END)) {
        (Some(start), Some(end)) if 0 < start && start < end => Ok((start, end)),
        _ => Err(io::Error::other("the kernel does not say where this process's environment lies")),
    }
}

/// Where the value behind `wanted` starts, and how long it is.
fn find(memory: &File, (start, end): (u64, u64), wanted: &[u8]) -> io::Result<Option<(u64, usize)>> {
    let mut piece = Zeroizing::new(vec![0; STEP]);
    let (mut at, mut entry_start, mut matched, mut value) = (start, true, 0, None);
    while at < end {
        let length = usize::try_from(end - at).unwrap_or(STEP).min(STEP);
        let piece = piece.get_mut(..length).unwrap_or_default();
        memory.read_exact_at(piece, at)?;
        for (byte, place) in piece.iter().zip(at..) {
            if let Some(began) = value {
                if *byte == 0 {
                    return Ok(Some((began, usize::try_from(place - began).map_err(io::Error::other)?)));
                }
                continue;
            }
            let goes_on = (entry_start || matched > 0) && wanted.get(matched) == Some(byte);
            matched = if goes_on { matched + 1 } else { 0 };
            entry_start = *byte == 0;
            if matched == wanted.len() {
                value = Some(place + 1);
            }
        }
        at += u64::try_from(length).map_err(io::Error::other)?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    const MARK: &str = "BAILIWICK_TEST_TAKES";

    /// Runs this test again with variables of its own: those of the test runner are not to be touched.
    #[test]
    fn a_value_is_there_once_and_nothing_else_changes() {
        if std::env::var_os(MARK).is_none() {
            let test = "source::own_environment::tests::a_value_is_there_once_and_nothing_else_changes";
            let status = Command::new("/proc/self/exe")
                .arg0("tests")
                .args(["--exact", test, "--nocapture"])
                .env(MARK, "1")
                .env("XTOKEN", "another one")
                .env("TOKEN", "the value, with = in it")
                .env("TOKEN2", "one more")
                .env("EMPTY", "")
                .env("COPY", "Bearer a value under another name")
                .status()
                .unwrap();
            assert!(status.success());
            return;
        }
        assert_eq!(take("TOKEN").unwrap().expose(), b"the value, with = in it");
        assert!(take("TOKEN").is_err(), "it is there once");
        assert!(take("EMPTY").is_err() && take("NONE").is_err() && take("TOKE").is_err());
        let now = |name: &str| std::env::var_os(name).and_then(|value| value.into_string().ok());
        assert_eq!(erase([&b"a value under another name"[..], b""]).unwrap(), ["COPY"]);
        assert_eq!(now("COPY").as_deref(), Some(""), "and copies of a value");
        assert_eq!(now("TOKEN").as_deref(), Some(""));
        assert_eq!(now("XTOKEN").as_deref(), Some("another one"));
        assert_eq!(now("TOKEN2").as_deref(), Some("one more"));
        let others = environment_without(&["TOKEN2".to_owned()]).unwrap();
        assert!(
            others.iter().any(|(name, _)| name == "XTOKEN")
                && !others.iter().any(|(name, _)| name == "TOKEN2")
        );
        empty(&["TOKEN2", "NONE"]).unwrap();
        assert_eq!(now("TOKEN2").as_deref(), Some(""));
        assert_eq!(now("XTOKEN").as_deref(), Some("another one"));
    }
}
