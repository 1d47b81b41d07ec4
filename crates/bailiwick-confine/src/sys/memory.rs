//! What a process that lives long gives back to the kernel: large blocks when they are freed, and code that is not in use.
#![expect(unsafe_code, reason = "mallopt and madvise have no safe wrapper")]

use rustix::mm::{Advice, madvise};

/// From this size on a block is a mapping of its own.
#[cfg(target_env = "gnu")]
const LARGE: std::ffi::c_int = 256 * 1024;

/// Has the allocator map every large block by itself. The GNU one otherwise keeps up to 64 MiB for each of many arenas,
/// so what a process holds is no bound of what it takes; others do it without being told.
pub fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: two integers are passed, both of them documented values; the call only sets a parameter of the allocator.
    let _taken = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
}

/// Gives back the pages of the program's own code and constants: most of them were used by its start alone. Those that are
/// used again are mapped again, from the same file. What cannot be seen or given back stays. It takes about a millisecond.
pub fn release_unused_code() {
    let own = std::fs::read_link("/proc/self/exe");
    let (Ok(own), Ok(maps)) = (own, std::fs::read_to_string("/proc/self/smaps")) else { return };
    for (start, end) in unchanged(&maps, &own.to_string_lossy()) {
        // SAFETY: the range is a private mapping of the program's own file that cannot be written, and no page of it differs from
        // the file, as the kernel has just said. Pages that are dropped are read again from that file, which cannot be
        // changed while it runs. Nothing in this process changes how its own program is mapped.
        let _kept =
            unsafe { madvise(std::ptr::without_provenance_mut(start), end - start, Advice::LinuxDontNeed) };
    }
}

/// The mappings of a file that cannot be written and of which no page differs from the file.
fn unchanged(maps: &str, file: &str) -> Vec<(usize, usize)> {
    let (mut found, mut current) = (Vec::new(), None);
    for line in maps.lines() {
        if let Some(kilobytes) = line.strip_prefix("Anonymous:") {
            let range = current.take().filter(|_| kilobytes.trim() == "0 kB");
            found.extend(range);
        } else if let Some((range, rest)) = line.split_once(' ').filter(|(range, _)| !range.ends_with(':')) {
            let is_own = rest.split_once('/').is_some_and(|(_, path)| format!("/{path}") == file);
            let is_fixed = ["r--p ", "r-xp "].iter().any(|rights| rest.starts_with(rights));
            let ends = range.split_once('-').filter(|_| is_own && is_fixed);
            let number = |text: &str| usize::from_str_radix(text, 16).ok();
            current = ends.and_then(|(start, end)| Some((number(start)?, number(end)?)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    fn resident(file: &str) -> usize {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut sum, mut is_own) = (0, false);
        for line in maps.lines() {
            if let Some(size) = line.strip_prefix("Rss:").filter(|_| is_own) {
                sum += size.trim().trim_end_matches(" kB").parse::<usize>().unwrap();
            } else if !line.split(' ').next().unwrap_or_default().ends_with(':') {
                is_own = line.ends_with(file) && line.contains(" r-xp ");
            }
        }
        sum
    }

    #[test]
    fn code_that_was_used_once_is_given_back_and_can_be_used_again() {
        let own = std::fs::read_link("/proc/self/exe").unwrap();
        let own = own.to_string_lossy();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let ranges = unchanged(&maps, &own);
        assert!(!ranges.is_empty(), "{maps}");
        let memory = std::fs::File::open("/proc/self/mem").unwrap();
        for (start, end) in &ranges {
            let mut piece = vec![0; end - start];
            memory.read_exact_at(&mut piece, u64::try_from(*start).unwrap()).unwrap();
        }
        let all = resident(&own);
        release_unused_code();
        let left = resident(&own);
        assert!(left * 2 < all, "{left} of {all} kB");
        assert_eq!(format!("{:?}", std::time::Duration::from_millis(1500)), "1.5s", "it goes on");
    }

    #[test]
    fn only_what_cannot_have_changed_is_given_back() {
        let maps = "\
1000-2000 r--p 00000000 fd:01 7 /usr/bin/own\nRss: 4 kB\nAnonymous:             0 kB\n\
2000-4000 r-xp 00001000 fd:01 7    /usr/bin/own\nAnonymous: 0 kB\n\
4000-5000 r--p 00003000 fd:01 7 /usr/bin/own\nAnonymous: 4 kB\n\
5000-6000 rw-p 00004000 fd:01 7 /usr/bin/own\nAnonymous: 0 kB\n\
6000-7000 r-xs 00000000 fd:01 7 /usr/bin/own\nAnonymous: 0 kB\n\
7000-8000 r-xp 00000000 fd:01 8 /usr/bin/other\nAnonymous: 0 kB\n\
8000-9000 r-xp 00000000 00:00 0 \nAnonymous: 0 kB\n";
        assert_eq!(unchanged(maps, "/usr/bin/own"), [(0x1000, 0x2000), (0x2000, 0x4000)]);
    }
}
