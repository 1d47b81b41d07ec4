//! Pages of the web: never a panic, and no link that runs something.
#![no_main]

use bailiwick_page::PageKind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|html: &str| {
    let page = bailiwick_page::read(html.to_owned(), "https://example.com/directory/page").expect("its reader failed");
    match page.kind {
        PageKind::Source => assert_eq!(page.markdown, html),
        PageKind::Article | PageKind::Page | PageKind::Text => {
            // Escapes can double a text, and a link is written with the address that it stands for.
            assert!(page.markdown.len() <= 1024 + 64 * html.len(), "{} of {}", page.markdown.len(), html.len());
        }
    }
});
