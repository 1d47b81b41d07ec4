//! The page: files that are part of the program. A path is looked up in this table and never opened.

use http::StatusCode;

use crate::entry;
use crate::reply::Reply;

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Where it is served.
    pub path: &'static str,
    kind: &'static str,
    /// What it says.
    pub text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file of the page.
pub const ASSETS: &[Asset] = &[
    Asset { path: "/", kind: "text/html; charset=utf-8", text: include_str!("../assets/index.html") },
    Asset { path: "/style.css", kind: "text/css; charset=utf-8", text: include_str!("../assets/style.css") },
    Asset { path: "/icon.svg", kind: "image/svg+xml", text: include_str!("../assets/icon.svg") },
    Asset { path: "/app.js", kind: SCRIPT, text: include_str!("../assets/app.js") },
    Asset { path: "/dom.js", kind: SCRIPT, text: include_str!("../assets/dom.js") },
    Asset { path: "/link.js", kind: SCRIPT, text: include_str!("../assets/link.js") },
    Asset { path: "/store.js", kind: SCRIPT, text: include_str!("../assets/store.js") },
    Asset { path: "/now.js", kind: SCRIPT, text: include_str!("../assets/now.js") },
    Asset { path: "/stream.js", kind: SCRIPT, text: include_str!("../assets/stream.js") },
    Asset { path: "/detail.js", kind: SCRIPT, text: include_str!("../assets/detail.js") },
    Asset { path: "/waiting.js", kind: SCRIPT, text: include_str!("../assets/waiting.js") },
    Asset { path: "/drift.js", kind: SCRIPT, text: include_str!("../assets/drift.js") },
    Asset { path: "/map.js", kind: SCRIPT, text: include_str!("../assets/map.js") },
    Asset { path: "/charts.js", kind: SCRIPT, text: include_str!("../assets/charts.js") },
    Asset { path: "/journal.js", kind: SCRIPT, text: include_str!("../assets/journal.js") },
];

/// What is served without the token.
pub(crate) const OPEN_PATHS: &[&str] = &[
    entry::PATH,
    "/",
    "/style.css",
    "/icon.svg",
    "/app.js",
    "/dom.js",
    "/link.js",
    "/store.js",
    "/now.js",
    "/stream.js",
    "/detail.js",
    "/waiting.js",
    "/drift.js",
    "/map.js",
    "/charts.js",
    "/journal.js",
];

pub(crate) fn answer(path: &str, known: Option<&str>) -> Reply {
    match ASSETS.iter().find(|asset| asset.path == path) {
        Some(asset) => Reply::text(asset.kind, asset.text).unless_known(known),
        None => Reply::refused(StatusCode::NOT_FOUND, "there is no such file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_open_and_all_are_small() {
        let mut paths: Vec<_> = ASSETS.iter().map(|asset| asset.path).collect();
        paths.push(entry::PATH);
        paths.sort_unstable();
        let mut open = OPEN_PATHS.to_vec();
        open.sort_unstable();
        assert_eq!(paths, open);
        let bytes: usize = ASSETS.iter().map(|asset| asset.text.len()).sum();
        assert!(bytes <= 90 * 1024, "{bytes} bytes");
    }

    #[test]
    fn no_file_makes_markup_of_text_or_reaches_elsewhere() {
        let refused = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "DOMParser",
            "srcdoc",
            "createContextualFragment",
            "setAttribute('on",
            "javascript:",
            "localStorage",
            "sessionStorage",
            "document.cookie",
            "importScripts",
            "createPolicy",
        ];
        for asset in ASSETS {
            for word in refused {
                assert!(!asset.text.contains(word), "{word} in {}", asset.path);
            }
            let elsewhere = asset.text.replace("http://www.w3.org/", "").replace("http://127.0.0.1", "");
            assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{}", asset.path);
        }
    }
}
