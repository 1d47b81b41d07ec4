//! The fleet's page: served to approvers and admins over their own certificates, made of the console's elements and styles.
//!
//! A browser shows its certificate to every site's requests to this hub, as it would a cookie. So a request of another origin is
//! refused whatever certificate it has ([`is_foreign`]), and the page may be in no frame. The page decides nothing: it asks
//! what `bailiwick fleet` asks, and the role of the member counts.

use bailiwick_door::{Answer, filled, with_header};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, StatusCode};

/// What the page may do: run our modules, show our styles, ask this hub.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      require-trusted-types-for 'script'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// A file of the page: its path, type and text. No path is ever opened.
type PageFile = (&'static str, &'static str, &'static str);

/// All of them. What the two pages share is the console's.
const FILES: [PageFile; 5] = [
    ("/", "text/html; charset=utf-8", include_str!("../assets/fleet.html")),
    ("/fleet.js", "text/javascript; charset=utf-8", include_str!("../assets/fleet.js")),
    ("/dom.js", "text/javascript; charset=utf-8", include_str!("../../bailiwick-console/assets/dom.js")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../../bailiwick-console/assets/style.css")),
    ("/icon.svg", "image/svg+xml", include_str!("../../bailiwick-console/assets/icon.svg")),
];

/// The file of the page at this path.
pub(crate) fn file(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|(own, _, _)| *own == path)
}

/// A file as an answer.
pub(crate) fn answer((_, kind, text): &PageFile) -> Answer {
    let fixed = [
        (CONTENT_TYPE, *kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    let bare = filled(StatusCode::OK, text.as_bytes().to_vec());
    fixed.into_iter().fold(bare, |answer, (name, value)| with_header(answer, name, value))
}

/// Whether a page of another origin makes this request. Programs name no origin; a browser names it with all that changes something.
pub(crate) fn is_foreign(head: &Parts) -> bool {
    let site = head.headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_other_site = site.is_some_and(|site| !matches!(site, b"same-origin" | b"none"));
    is_other_site || head.headers.get_all(ORIGIN).iter().any(|origin| !is_own(origin, &head.headers))
}

fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let named = origin.to_str().ok().and_then(|origin| origin.strip_prefix("https://"));
    named.zip(host).is_some_and(|(named, host)| named.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(pairs: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::post("/v1/tokens").header(HOST, "hub.example:8443");
        for (name, value) in pairs {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_page_of_another_origin_is_known_by_what_its_browser_says() {
        for own in [
            &[][..],
            &[("origin", "https://hub.example:8443")],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(!is_foreign(&head(own)), "{own:?}");
        }
        for foreign in [
            &[("origin", "https://evil.example")][..],
            &[("origin", "https://hub.example")],
            &[("origin", "http://hub.example:8443")],
            &[("origin", "null")],
            &[("origin", "https://hub.example:8443"), ("origin", "https://evil.example")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
        ] {
            assert!(is_foreign(&head(foreign)), "{foreign:?}");
        }
    }

    #[test]
    fn no_file_makes_markup_of_text_or_reaches_elsewhere() {
        for (path, _, text) in FILES {
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "localStorage",
                "srcdoc",
            ] {
                assert!(!text.contains(word), "{word} in {path}");
            }
            let elsewhere = text.replace("http://www.w3.org/", "");
            assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{path}");
        }
    }
}
