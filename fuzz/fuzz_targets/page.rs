//! Pages of the web: never a panic, and no link that runs something.
#![no_main]

use bailiwick_page::Kind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|html: &str| {
    let page =
        bailiwick_page::read(html.to_owned(), "https://example.com/folder/page").expect("its reader failed");
    match page.kind {
        Kind::Source => assert_eq!(page.markdown, html),
        Kind::Article | Kind::Page | Kind::Text => {
            // Escapes can double a text, and a link is written with the address that it stands for.
            assert!(
                page.markdown.len() <= 1024 + 64 * html.len(),
                "{} of {}",
                page.markdown.len(),
                html.len()
            );
        }
    }
});
