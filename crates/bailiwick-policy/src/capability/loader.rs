//! Which environment variables make programs load code. The list is a data file.

use std::sync::LazyLock;

static LOADERS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    include_str!("loaders.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
});

/// Whether a program may run other code because this variable is set.
#[must_use]
pub fn is_loader_variable(name: &str) -> bool {
    LOADERS.iter().any(|entry| match entry.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => *entry == name,
    })
}

#[cfg(test)]
mod tests {
    use super::is_loader_variable;

    #[test]
    fn known_ways_in_are_listed() {
        for name in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "LD_AUDIT",
            "BASH_ENV",
            "ENV",
            "NODE_OPTIONS",
            "PYTHONSTARTUP",
            "PYTHONPATH",
            "PERL5OPT",
            "RUBYOPT",
            "GIT_SSH_COMMAND",
            "GCONV_PATH",
            "GIT_CONFIG_COUNT",
        ] {
            assert!(is_loader_variable(name), "{name}");
        }
        for name in ["GITHUB_PERSONAL_ACCESS_TOKEN", "HOME", "LANG", "TZ", "ENVIRONMENT", "LDAP_URL"] {
            assert!(!is_loader_variable(name), "{name}");
        }
    }
}
