//! What a body says: the main content of a page as markdown, other text as it is.
//!
//! Pages are hostile. One with too many elements is given as its source, one that nests too deeply as its bare text, and
//! both are read on a thread of their own with a stack that such a page cannot use up.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dom_smoothie::{Config, Readability, TextMode};
use encoding_rs::{Encoding, UTF_8};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::exchange::Answer;
use super::target::Target;
use super::{Asked, failed};
use crate::tool::ToolError;

/// Parsing takes time quadratic in them for some pages.
const MAX_ELEMENTS: usize = 50_000;
const MAX_NESTING: usize = 400;
const STACK: usize = 64 * 1024 * 1024;
/// Elements that say nothing to a reader.
const NO_CONTENT: [&str; 6] = ["script", "style", "noscript", "template", "iframe", "svg"];
/// How far a page is looked into for its encoding.
const SNIFFED: usize = 1024;

/// A body, read.
struct Page {
    kind: &'static str,
    title: Option<String>,
    markdown: String,
}

/// The result of the call.
pub(super) async fn answer(
    asked: &Asked,
    target: &Target,
    hops: usize,
    answer: Answer,
) -> Result<Value, ToolError> {
    let length = answer.body.len();
    let mut result = json!({
        "url": asked.url,
        "final_url": target.shown(),
        "status": answer.status,
        "content_type": answer.content_type,
    });
    let mut base64 = None;
    let page = match Sort::of(answer.content_type.as_deref(), &answer.body) {
        Sort::Nothing => Page::plain("none", String::new()),
        Sort::Binary => {
            base64 = asked.raw.then(|| STANDARD.encode(&answer.body));
            Page::plain("binary", String::new())
        }
        Sort::Text => Page::plain("text", text(&answer, false)),
        Sort::Html if asked.raw => Page::plain("source", text(&answer, true)),
        Sort::Html => read(text(&answer, true), target.shown().to_owned()).await?,
    };
    if let Some(fields) = result.as_object_mut() {
        let title = page.title.filter(|title| !title.trim().is_empty());
        fields.insert("title".to_owned(), title.into());
        fields.insert("markdown".to_owned(), page.markdown.into());
        if let Some(base64) = base64 {
            fields.insert("base64".to_owned(), base64.into());
        }
        fields.insert("kind".to_owned(), page.kind.into());
        fields.insert("bytes".to_owned(), length.into());
        fields.insert("truncated".to_owned(), answer.truncated.into());
        fields.insert("redirects".to_owned(), hops.into());
        fields.insert("untrusted".to_owned(), true.into());
    }
    Ok(result)
}

impl Page {
    const fn plain(kind: &'static str, markdown: String) -> Self {
        Self { kind, title: None, markdown }
    }
}

/// What a body is.
enum Sort {
    Nothing,
    Html,
    Text,
    Binary,
}

impl Sort {
    fn of(content_type: Option<&str>, body: &[u8]) -> Self {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        let readable = ["application/json", "application/javascript", "application/xml", "application/yaml"];
        match &*essence {
            _ if body.is_empty() => Self::Nothing,
            "text/html" | "application/xhtml+xml" => Self::Html,
            "" if body.iter().take(SNIFFED).any(|byte| *byte == 0) => Self::Binary,
            "" if looks_like_html(body) => Self::Html,
            "" => Self::Text,
            other if other.starts_with("text/") || readable.contains(&other) => Self::Text,
            other if other.ends_with("+json") || other.ends_with("+xml") => Self::Text,
            _ => Self::Binary,
        }
    }
}

fn looks_like_html(body: &[u8]) -> bool {
    let start = String::from_utf8_lossy(body.get(..SNIFFED).unwrap_or(body)).to_ascii_lowercase();
    let start = start.trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// The body as text: by its byte order mark, its header or its own word, else as UTF-8.
fn text(answer: &Answer, html: bool) -> String {
    let said = answer.content_type.as_deref().and_then(|header| charset(header, ';'));
    let meta = || {
        let start = String::from_utf8_lossy(answer.body.get(..SNIFFED).unwrap_or(&answer.body)).into_owned();
        charset(&start, '<').filter(|_| html)
    };
    let encoding = said.or_else(meta).unwrap_or(UTF_8);
    encoding.decode(&answer.body).0.into_owned()
}

/// The encoding that follows `charset=` in one of the parts of a text.
fn charset(text: &str, between: char) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    lower.split(between).find_map(|part| {
        let (_, label) = part.split_once("charset=")?;
        let label = label.trim_start_matches(['"', '\'', ' ']);
        Encoding::for_label(label.split(['"', '\'', ' ', ';', '>', '/']).next()?.as_bytes())
    })
}

/// Reads a page on a thread of its own.
async fn read(html: String, url: String) -> Result<Page, ToolError> {
    let (done, wait) = oneshot::channel();
    let thread = std::thread::Builder::new().name("page".to_owned()).stack_size(STACK);
    let work = move || drop(done.send(extracted(html, &url)));
    thread.spawn(work).map_err(|error| failed(format!("the page cannot be read: {error}")))?;
    wait.await.map_err(|_| failed("the page cannot be read: its reader failed; try `raw`".to_owned()))
}

fn extracted(html: String, url: &str) -> Page {
    let elements = html
        .as_bytes()
        .windows(2)
        .filter(|pair| matches!(pair, [b'<', letter] if letter.is_ascii_alphabetic()));
    if elements.count() > MAX_ELEMENTS {
        return Page::plain("source", html);
    }
    let config =
        Config { max_elements_to_parse: MAX_ELEMENTS, text_mode: TextMode::Markdown, ..Default::default() };
    let Ok(mut reader) = Readability::new(html.as_str(), Some(url), Some(config)) else {
        return Page::plain("source", html);
    };
    if nests_deeper_than(MAX_NESTING, &reader) {
        return Page::plain("text", reader.doc.text().to_string());
    }
    let title = reader.get_article_title().to_string();
    let whole = reader.doc.md(Some(&NO_CONTENT)).to_string();
    match reader.parse() {
        Ok(article) if !article.text_content.trim().is_empty() => {
            Page { kind: "article", title: Some(article.title), markdown: article.text_content.to_string() }
        }
        _ => Page { kind: "page", title: Some(title), markdown: whole },
    }
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
