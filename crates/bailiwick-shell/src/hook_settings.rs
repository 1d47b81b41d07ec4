//! Where agents keep what runs their hooks: settings, plugins, lists of trust.

use std::path::Path;

use bailiwick_policy::run_later::hook_settings;

/// Where agents keep hooks, plugins or trust besides the files that `run_later` lists: consecutive components, and all
/// that lies below them.
const MORE_SETTINGS: &[&[&str]] = &[
    &[".gemini", "trustedFolders.json"],
    &[".qwen", "settings.json"],
    &[".qwen", "trustedFolders.json"],
    &[".copilot", "hooks"],
    &[".copilot", "config.json"],
    &[".copilot", "settings.json"],
    &[".github", "hooks"],
    &[".opencode", "plugin"],
    &[".opencode", "plugins"],
    &["opencode", "plugin", "bailiwick.js"],
    &["opencode", "plugins", "bailiwick.js"],
    &[".config", "opencode"],
];

/// The one directory of settings that is not hidden.
const UNHIDDEN: &[u8] = b"opencode";

/// Whether a path, wherever it lies, is one in which an agent keeps its hooks, or their directory.
#[must_use]
pub fn holds_hooks(path: &Path) -> bool {
    if !path.as_os_str().as_encoded_bytes().split(|byte| *byte == b'/').any(is_telling) {
        return false;
    }
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let named = |part: Option<&&str>, name: &str| part.is_some_and(|part| may_name(part, name));
    let last = parts.len().checked_sub(1);
    let parent = last.and_then(|last| last.checked_sub(1));
    let at = |index: Option<usize>| index.and_then(|index| parts.get(index));
    let listed = hook_settings().any(|(directory, file)| {
        named(at(last), directory) || named(at(parent), directory) && named(at(last), file)
    });
    listed || MORE_SETTINGS.iter().any(|setting| holds_setting(&parts, setting))
}

/// Whether a component may be part of a setting at all: hidden directories hold all of them but one. Nearly every path of
/// a call has no such component, and the list need not be read for it.
fn is_telling(part: &[u8]) -> bool {
    part.starts_with(b".") || part == UNHIDDEN || part.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Whether a path is one of these settings, lies below them, or is the hidden directory that holds them.
fn holds_setting(parts: &[&str], setting: &[&str]) -> bool {
    let fits = |window: &[&str]| window.iter().zip(setting).all(|(part, name)| may_name(part, name));
    let directory =
        setting.first().filter(|name| name.starts_with('.') && **name != ".config" && **name != ".github");
    parts.windows(setting.len()).any(fits)
        || directory.is_some_and(|directory| parts.last().is_some_and(|last| may_name(last, directory)))
}

/// The settings that a program's text speaks of.
#[must_use]
pub fn mentioned(text: &str) -> Option<String> {
    let listed = hook_settings().map(|(directory, file)| format!("{directory}/{file}"));
    let mut files = listed.chain(MORE_SETTINGS.iter().map(|setting| setting.join("/")));
    files.find(|file| text.contains(file.as_str()))
}

/// Whether a name that may be a shell's pattern may stand for another. A leading dot must be written; between the outermost signs of a pattern, anything goes.
#[must_use]
pub fn may_name(pattern: &str, name: &str) -> bool {
    let signs = ['*', '?', '['];
    let (Some(first), Some(last)) = (pattern.find(signs), pattern.rfind(['*', '?', ']'])) else {
        return pattern == name;
    };
    let head = pattern.get(..first).unwrap_or_default();
    let tail = pattern.get(last + 1..).unwrap_or_default();
    let hidden = name.starts_with('.') && head.is_empty();
    !hidden && name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_component_by_which_it_is_found() {
        let listed = hook_settings().map(|(directory, file)| vec![directory, file]);
        let all: Vec<Vec<&str>> = listed.chain(MORE_SETTINGS.iter().map(|one| one.to_vec())).collect();
        assert!(all.len() > MORE_SETTINGS.len() + 5, "{all:?}");
        for setting in all {
            let path = Path::new("/home/u/p").join(setting.join("/"));
            assert!(holds_hooks(&path), "{path:?}");
            // A directory counts by its name alone where it is hidden.
            assert!(setting.iter().any(|part| is_telling(part.as_bytes())), "{setting:?}");
        }
        for pattern in ["/p/*/settings.json", "/p/.cl?ude/settings.json", "/p/.[c]laude", "/p/.claude"] {
            assert_ne!(holds_hooks(Path::new(pattern)), pattern.contains("/*"), "{pattern}");
        }
        assert!(!holds_hooks(Path::new("/p/src/settings.json")));
    }
}
