//! Who the program is: one user and one group with the caller's names and numbers, in stubs of `passwd` and `group`.
//!
//! Only the caller's own line of the host's files is used, so that `whoami`, `ssh-keygen` and git find a name. A host
//! that keeps its users elsewhere has a user called `user`.

use std::path::Path;

/// The caller as programs are told of it.
#[derive(Debug, Clone)]
pub struct Account {
    /// The name of the user.
    pub user: String,
    group: String,
    user_id: u32,
    group_id: u32,
}

impl Account {
    /// The process' own user and group, with the names that the host's files give them.
    pub fn of_caller() -> Self {
        let (user_id, group_id) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            user: name_of(&read("/etc/passwd"), user_id).unwrap_or("user").to_owned(),
            group: name_of(&read("/etc/group"), group_id).unwrap_or("user").to_owned(),
            user_id,
            group_id,
        }
    }

    /// The whole of `/etc/passwd`.
    pub fn passwd(&self, home: &Path) -> String {
        let Self { user, user_id, group_id, .. } = self;
        // A colon or a line break would end the field.
        let home = home.to_str().filter(|home| !home.contains([':', '\n'])).unwrap_or("/");
        let mut text = format!("{user}:x:{user_id}:{group_id}:{user}:{home}:/bin/sh\n");
        for (name, id, home, shell) in
            [("root", 0, "/root", "/bin/sh"), ("nobody", 65534, "/nonexistent", "/bin/false")]
        {
            if *user_id != id && user != name {
                text += &format!("{name}:x:{id}:{id}:{name}:{home}:{shell}\n");
            }
        }
        text
    }

    /// The whole of `/etc/group`.
    pub fn groups(&self) -> String {
        let Self { group, group_id, .. } = self;
        let mut text = format!("{group}:x:{group_id}:\n");
        for (name, id) in [("root", 0), ("nogroup", 65534)] {
            if *group_id != id && group != name {
                text += &format!("{name}:x:{id}:\n");
            }
        }
        text
    }
}

/// The addresses that names have inside, with that of this machine itself: programs that ask for it, as git does for an
/// author who is not named, ask no server.
pub(crate) fn with_own_name(hosts: &str) -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    with_name(hosts, name.trim())
}

fn with_name(hosts: &str, name: &str) -> String {
    let is_name = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        && name != "localhost";
    if is_name { format!("{hosts}127.0.1.1 {name}\n") } else { hosts.to_owned() }
}

/// The name that a file of lines `name:password:number:…` gives a number.
fn name_of(text: &str, id: u32) -> Option<&str> {
    let line = |line: &'_ str| -> Option<(usize, u32)> {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        Some((name.len(), id.parse().ok()?))
    };
    text.lines()
        .find_map(|found| {
            line(found).filter(|(_, own)| *own == id).and_then(|(length, _)| found.get(..length))
        })
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/bash\n+::::::\nbroken\nanna:x:1000:1000:Anna:/home/anna:/bin/zsh\n";

    fn account(user: &str, id: u32) -> Account {
        Account { user: user.to_owned(), group: user.to_owned(), user_id: id, group_id: id }
    }

    #[test]
    fn a_number_has_the_name_of_its_line() {
        assert_eq!(name_of(PASSWD, 1000), Some("anna"));
        assert_eq!(name_of(PASSWD, 0), Some("root"));
        assert_eq!(name_of(PASSWD, 1), None);
    }

    #[test]
    fn this_machine_has_an_address_of_its_own() {
        assert_eq!(with_name("127.0.0.1 localhost\n", "vm"), "127.0.0.1 localhost\n127.0.1.1 vm\n");
        for odd in ["", "localhost", "a b", "a\nb"] {
            assert_eq!(with_name("x\n", odd), "x\n", "{odd:?}");
        }
    }

    #[test]
    fn the_stubs_name_the_caller_first_and_each_number_once() {
        let text = account("anna", 1000).passwd(Path::new("/home/anna"));
        assert_eq!(text.lines().next(), Some("anna:x:1000:1000:anna:/home/anna:/bin/sh"));
        assert_eq!(text.lines().count(), 3);
        assert_eq!(account("root", 0).passwd(Path::new("/root")).matches(":0:0:").count(), 1);
        assert_eq!(account("nogroup", 65534).groups(), "nogroup:x:65534:\nroot:x:0:\n");
    }

    #[test]
    fn a_home_that_would_end_its_field_is_left_out() {
        let text = account("anna", 1000).passwd(Path::new("/home/a:0:0:x:/\nb"));
        assert_eq!(text.lines().next(), Some("anna:x:1000:1000:anna:/:/bin/sh"));
    }
}
