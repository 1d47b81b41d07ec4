//! Reads a page of the web for `bailiwick serve`, which starts it in a sandbox without any grant: HTML on stdin, its
//! address as the only argument, `{kind, title, markdown}` on stdout.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

/// More than any page that is fetched.
const MOST: u64 = 64 << 20;

fn main() -> ExitCode {
    match read() {
        Ok(page) if std::io::stdout().write_all(&page).is_ok() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(5),
        Err(why) => {
            let usage = "usage: bailiwick-page URL < page.html";
            // Without a stderr there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "bailiwick-page: {why}\n{usage}");
            ExitCode::from(3)
        }
    }
}

fn read() -> Result<Vec<u8>, String> {
    let url = std::env::args().nth(1).ok_or("no address")?;
    let mut html = String::new();
    std::io::stdin().take(MOST).read_to_string(&mut html).map_err(|fault| fault.to_string())?;
    let page = bailiwick_page::read(html, &url)?;
    serde_json::to_vec(&page).map_err(|fault| fault.to_string())
}
