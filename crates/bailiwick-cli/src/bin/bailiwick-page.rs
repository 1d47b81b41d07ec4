//! Reads a page of the web for `bailiwick serve`, which starts it in a sandbox without any grant: HTML on stdin, its
//! address as the only argument, `{kind, title, markdown}` on stdout.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

/// More than any page that is fetched.
const MOST: u64 = 64 << 20;

const USAGE: &str = "usage: bailiwick-page URL [--for VERSION] < page.html

Prints the main content of a page as JSON: {kind, title, markdown}.
`bailiwick serve` has it read the pages that `web_fetch` brings.

Example:
  bailiwick-page https://example.com/ < page.html

Exit codes: 0 ok, 2 usage, 3 the page cannot be read, 5 fault
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (code, said) = match words[..] {
        ["-h" | "--help"] => (0, USAGE.as_bytes().to_vec()),
        [url] | [url, "--for", env!("CARGO_PKG_VERSION")] if !url.starts_with('-') => match read(url) {
            Ok(page) => (0, page),
            Err(error) => (3, format!("bailiwick-page: {error}\n").into_bytes()),
        },
        [_, "--for", _] => {
            (2, b"bailiwick-page: started by another version of bailiwick; install both anew\n".to_vec())
        }
        _ => (2, USAGE.as_bytes().to_vec()),
    };
    let told =
        if code == 0 { std::io::stdout().write_all(&said) } else { std::io::stderr().write_all(&said) };
    ExitCode::from(if told.is_ok() { code } else { 5 })
}

fn read(url: &str) -> anyhow::Result<Vec<u8>> {
    let mut html = String::new();
    std::io::stdin().take(MOST).read_to_string(&mut html)?;
    main_content(html, url)
}

#[cfg(target_os = "linux")]
fn main_content(html: String, url: &str) -> anyhow::Result<Vec<u8>> {
    let page = bailiwick_page::read(html, url)?;
    Ok(serde_json::to_vec(&page)?)
}

#[cfg(not(target_os = "linux"))]
fn main_content(_: String, _: &str) -> anyhow::Result<Vec<u8>> {
    anyhow::bail!("`bailiwick serve`, which starts it, needs Linux")
}
