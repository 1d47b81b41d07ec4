//! The main content of a page of the web, as markdown.
//!
//! The only crate with an HTML parser. Pages are hostile: one with too many elements is given as its source, one that
//! nests too deeply as its bare text. Whoever can runs this in a process that may touch nothing, as the command does.

use dom_smoothie::{Config, Readability, TextMode};
use serde::{Deserialize, Serialize};

/// Parsing takes time quadratic in them for some pages.
const MAX_ELEMENTS: usize = 50_000;
const MAX_NESTING: usize = 400;
const STACK: usize = 64 * 1024 * 1024;
/// Elements that say nothing to a reader.
const NO_CONTENT: [&str; 6] = ["script", "style", "noscript", "template", "iframe", "svg"];

/// A page, read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// What of it was taken.
    pub kind: PageKind,
    /// What it calls itself.
    pub title: Option<String>,
    /// The content.
    pub markdown: String,
}

/// What of a page was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageKind {
    /// Its main content.
    Article,
    /// All of it.
    Page,
    /// Its source, as it is.
    Source,
    /// Its text without any form.
    Text,
}

impl PageKind {
    /// Its name, as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Article => "article",
            Self::Page => "page",
            Self::Source => "source",
            Self::Text => "text",
        }
    }
}

impl Page {
    /// A page of which only the text or the source is known.
    #[must_use]
    pub const fn plain(kind: PageKind, markdown: String) -> Self {
        Self { kind, title: None, markdown }
    }
}

/// Reads the page that was found at an address, on a thread with a stack that no page uses up.
///
/// # Errors
/// If there can be no such thread, or the parser failed.
pub fn read(html: String, url: &str) -> Result<Page, String> {
    let url = url.to_owned();
    let thread = std::thread::Builder::new().name("page".to_owned()).stack_size(STACK);
    let reader = thread.spawn(move || extracted(html, &url)).map_err(|error| error.to_string())?;
    reader.join().map_err(|_| "its reader failed".to_owned())
}

fn extracted(html: String, url: &str) -> Page {
    let elements = html
        .as_bytes()
        .windows(2)
        .filter(|pair| matches!(pair, [b'<', letter] if letter.is_ascii_alphabetic()));
    if elements.count() > MAX_ELEMENTS {
        return Page::plain(PageKind::Source, html);
    }
    let config =
        Config { max_elements_to_parse: MAX_ELEMENTS, text_mode: TextMode::Markdown, ..Default::default() };
    let Ok(mut reader) = Readability::new(html.as_str(), Some(url), Some(config)) else {
        return Page::plain(PageKind::Source, html);
    };
    if nests_deeper_than(MAX_NESTING, &reader) {
        return Page::plain(PageKind::Text, reader.doc.text().to_string());
    }
    without_running_links(&reader);
    let title = reader.get_article_title().to_string();
    let whole = reader.doc.md(Some(&NO_CONTENT)).to_string();
    match reader.parse() {
        Ok(article) if !article.text_content.trim().is_empty() => Page {
            kind: PageKind::Article,
            title: Some(article.title),
            markdown: article.text_content.to_string(),
        },
        _ => Page { kind: PageKind::Page, title: Some(title), markdown: whole },
    }
}

/// Takes out where links and images lead that carry what they show, or run it.
fn without_running_links(reader: &Readability) {
    for name in ["href", "src", "srcset"] {
        for node in reader.doc.select(&format!("[{name}]")).nodes() {
            let leads: Option<String> = node.attr(name).map(|leads| leads.to_string());
            if leads.is_some_and(|leads| runs(&leads)) {
                node.remove_attr(name);
            }
        }
    }
}

/// Whether an address is none of a place: blanks and letters that are not seen are passed over, as browsers do.
fn runs(address: &str) -> bool {
    let seen = address.chars().filter(|c| !c.is_control() && !c.is_whitespace());
    let start: String = seen.take(16).collect::<String>().to_ascii_lowercase();
    ["javascript:", "data:", "vbscript:", "blob:"].iter().any(|scheme| start.starts_with(scheme))
}

fn nests_deeper_than(limit: usize, reader: &Readability) -> bool {
    let mut level = vec![reader.doc.root()];
    for _ in 0..limit {
        level = level.iter().flat_map(|node| node.children_it(false)).collect();
        if level.is_empty() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer as _;

    use super::*;

    fn kind(html: String) -> PageKind {
        read(html, "https://example.com/").unwrap().kind
    }

    #[test]
    fn hostile_pages_come_as_text_or_source() {
        assert_eq!(kind("<p>Words.</p>".to_owned()), PageKind::Article);
        assert_eq!(kind(format!("{}deep", "<div>".repeat(2 * MAX_NESTING))), PageKind::Text);
        assert_eq!(kind("<b>".repeat(MAX_ELEMENTS + 1)), PageKind::Source);
    }

    #[test]
    fn links_that_run_lead_nowhere() {
        for address in ["javascript:x", " Java\tScript:x", "data:text/html,x", "\u{1}vbscript:x"] {
            assert!(runs(address), "{address}");
            let page =
                read(format!("<p>Some words. <a href='{address}'>link</a></p>"), "https://a.test/").unwrap();
            assert!(page.markdown.contains("link") && !page.markdown.contains("]("), "{}", page.markdown);
        }
        for address in ["https://a.test/", "x", "/data:x", "mailto:x@a.test"] {
            assert!(!runs(address), "{address}");
        }
    }

    #[test]
    fn a_kind_is_written_as_it_is_named() {
        for kind in [PageKind::Article, PageKind::Page, PageKind::Source, PageKind::Text] {
            let written: Result<PageKind, serde::de::value::Error> =
                PageKind::deserialize(kind.name().into_deserializer());
            assert_eq!(written, Ok(kind));
        }
    }
}
