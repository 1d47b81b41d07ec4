//! Places that are never granted because an argument happens to name them: keys, credentials, profiles of browsers,
//! homes as a whole, the system, and what is Bailiwick's own.
//!
//! Pure: which homes and which own directories there are, and where links lead, is passed in.

use bailiwick_policy::path::AbsPath;

/// Places below a home.
const BELOW_HOME: [&str; 43] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".vault-token",
    ".terraform.d",
    ".password-store",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/op",
    ".config/rclone",
    ".config/systemd",
    ".config/autostart",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/1Password",
    ".config/Bitwarden",
    ".mozilla",
    ".thunderbird",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/gnome-keyring",
    ".bash_history",
    ".zsh_history",
    ".bashrc",
    ".profile",
    ".zshrc",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".agent-bridle",
];

/// Places of the system.
const OF_SYSTEM: [&str; 20] = [
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/boot",
    "/var/run",
    "/var/lib",
    "/var/log",
    "/var/spool",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/lib",
];

/// Where the homes of users lie.
const ABOVE_HOMES: [&str; 2] = ["/home", "/Users"];

/// Why a value is not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sensitive {
    /// It is the root of everything.
    Root,
    /// It is a user's home as a whole, or where homes lie.
    Home,
    /// It is such a place, or lies in it.
    Within(AbsPath),
    /// Such a place lies in it.
    Above(AbsPath),
    /// It is a file of secrets by its name.
    SecretFile,
}

impl std::fmt::Display for Sensitive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => f.write_str("it is `/`"),
            Self::Home => f.write_str("it is a whole home directory"),
            Self::Within(place) => write!(f, "it lies in `{place}`, a sensitive place"),
            Self::Above(place) => write!(f, "`{place}`, a sensitive place, lies in it"),
            Self::SecretFile => f.write_str("files of this name hold secrets"),
        }
    }
}

/// The sensitive places of one host.
///
/// # Examples
/// ```
/// use bailiwick_policy::path::AbsPath;
/// use bailiwick_manifest::sensitive::SensitivePlaces;
///
/// let places = SensitivePlaces::new(Some(AbsPath::new("/home/user")?), []);
/// assert!(places.judge(&AbsPath::new("/home/user")?).is_some());
/// assert!(places.judge(&AbsPath::new("/home/user/.ssh/id_ed25519")?).is_some());
/// assert!(places.judge(&AbsPath::new("/home/user/notes")?).is_none());
/// # Ok::<(), bailiwick_policy::finding::Finding>(())
/// ```
#[derive(Debug, Clone)]
pub struct SensitivePlaces {
    homes: Vec<AbsPath>,
    places: Vec<AbsPath>,
}

impl SensitivePlaces {
    /// Of a user with this home; `own` are directories of Bailiwick's own.
    #[must_use]
    pub fn new(home: Option<AbsPath>, own: impl IntoIterator<Item = AbsPath>) -> Self {
        let read = |text: &str| AbsPath::new(text).ok();
        let root_home = read("/root");
        let homes: Vec<AbsPath> = home.into_iter().chain(root_home).collect();
        let below =
            homes.iter().flat_map(|home| BELOW_HOME.iter().filter_map(move |name| joined(home, name)));
        let system = OF_SYSTEM.iter().filter_map(|place| read(place));
        let places = below.chain(system).chain(own).collect();
        Self { homes, places }
    }

    /// The same host, where links among the places are followed by `real`.
    #[must_use]
    pub fn following(mut self, real: impl Fn(&AbsPath) -> Option<AbsPath>) -> Self {
        for list in [&mut self.homes, &mut self.places] {
            let led: Vec<AbsPath> = list.iter().filter_map(&real).filter(|led| !list.contains(led)).collect();
            list.extend(led);
        }
        self
    }

    /// Why `path`, links followed, is not granted by an argument; nothing if it may be.
    #[must_use]
    pub fn judge(&self, path: &AbsPath) -> Option<Sensitive> {
        let Some(last) = path.components().last() else { return Some(Sensitive::Root) };
        if self.homes.iter().any(|home| home.is_within(path)) || is_where_homes_lie(path) {
            return Some(Sensitive::Home);
        }
        if last == ".env" || (last.starts_with(".env.") && last != ".env.example") {
            return Some(Sensitive::SecretFile);
        }
        if let Some(place) = self.places.iter().find(|place| path.is_within(place)) {
            return Some(Sensitive::Within(place.clone()));
        }
        let below = self.places.iter().find(|place| place.is_within(path));
        below.map(|place| Sensitive::Above(place.clone()))
    }
}

/// `/home`, or a directory right in it.
fn is_where_homes_lie(path: &AbsPath) -> bool {
    ABOVE_HOMES.iter().filter_map(|above| AbsPath::new(above).ok()).any(|above| {
        *path == above
            || (path.is_within(&above) && path.components().count() == above.components().count() + 1)
    })
}

fn joined(home: &AbsPath, below: &str) -> Option<AbsPath> {
    let home = home.to_string();
    AbsPath::new(&format!("{}/{below}", home.trim_end_matches('/'))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    fn places() -> SensitivePlaces {
        SensitivePlaces::new(
            Some(path("/srv/people/anna")),
            [path("/srv/people/anna/.local/state/bailiwick")],
        )
    }

    #[test]
    fn places_homes_and_what_lies_above_them_are_refused() {
        for text in [
            "/",
            "/home",
            "/home/other",
            "/root",
            "/srv",
            "/srv/people",
            "/srv/people/anna",
            "/srv/people/anna/.ssh",
            "/srv/people/anna/.ssh/keys/one",
            "/srv/people/anna/.config",
            "/srv/people/anna/.local",
            "/srv/people/anna/.local/state/bailiwick/journal",
            "/srv/people/anna/project/.env",
            "/etc",
            "/etc/ssl",
            "/usr",
            "/var",
            "/proc/self",
        ] {
            assert!(places().judge(&path(text)).is_some(), "{text}");
        }
    }

    #[test]
    fn ordinary_directories_are_not() {
        for text in [
            "/srv/people/anna/notes",
            "/srv/people/anna/.sshd",
            "/srv/people/anna/.config/notes",
            "/srv/people/anna/.local/share/mcp-memory",
            "/home/user/project",
            "/var/tmp/x",
            "/tmp/x",
            "/srv/data",
            "/usr/src/app",
        ] {
            assert_eq!(places().judge(&path(text)), None, "{text}");
        }
    }

    #[test]
    fn where_a_place_really_lies_is_refused_too() {
        let moved = |place: &AbsPath| (*place == path("/srv/people/anna/.ssh")).then(|| path("/mnt/keys"));
        assert_eq!(places().judge(&path("/mnt/keys")), None);
        assert!(places().following(moved).judge(&path("/mnt/keys")).is_some());
        assert!(places().following(moved).judge(&path("/mnt")).is_some());
    }
}
