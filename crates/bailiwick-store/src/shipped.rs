//! Manifests of servers that people use, reviewed and compiled in.

use bailiwick_manifest::Manifest;

macro_rules! shipped {
    ($($name:literal)+) => {
        /// Every shipped manifest: its name and its text.
        pub const SHIPPED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../manifests/", $name, ".toml"))),)+];
    };
}

shipped! {
    "context7" "duckduckgo" "everything" "fetch" "filesystem" "firecrawl" "git" "kubernetes" "memory" "notion" "playwright"
    "postgres" "sequential-thinking" "sqlite" "time"
}

/// The name and the text of the manifest that is shipped for an identity.
///
/// # Examples
/// ```
/// assert!(bailiwick_store::shipped_manifest("npm:@modelcontextprotocol/server-filesystem").is_some());
/// assert!(bailiwick_store::shipped_manifest("npm:server-filesystem").is_none());
/// ```
#[must_use]
pub fn shipped_manifest(identity: &str) -> Option<(&'static str, &'static str)> {
    SHIPPED.iter().copied().find(|(_, text)| {
        // A line of the text is found sooner than all texts are parsed; what is found is parsed.
        text.contains(&format!("identity = \"{identity}\"\n"))
            && Manifest::parse(text).is_ok_and(|manifest| {
                manifest.package().and_then(|package| package.identity.as_deref()) == Some(identity)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_manifest_is_sound_and_found_by_its_identity() {
        for (name, text) in SHIPPED {
            let manifest = Manifest::parse(text).unwrap_or_else(|findings| panic!("{name}: {findings}"));
            assert_eq!(manifest.name(), *name);
            let package = manifest.package().unwrap_or_else(|| panic!("{name} names no package"));
            // A test of the command runs each behind its manifest.
            assert!(!package.verified.is_empty(), "{name}");
            assert!(!package.install_scripts, "{name}");
            let identity = package.identity.as_deref().unwrap();
            assert_eq!(shipped_manifest(identity), Some((*name, *text)));
        }
    }
}
