//! What a body says: the main content of a page as markdown, other text as it is.
//!
//! Pages are hostile: what makes sense of their HTML is [`Page`]'s crate, here or in a process of its own.

use bailiwick_launch::Recorder;
use bailiwick_page::Page;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8};
use serde_json::{Value, json};

use super::exchange::Answer;
use super::reader::{FetchedPage, PageReader, Reader};
use super::target::Target;
use super::{FetchRequest, failed};
use crate::offload::CancelFlag;
use crate::tool::ToolError;

/// How far a page is looked into for its encoding.
const SNIFFED: usize = 1024;

/// A body, read.
struct Content {
    kind: &'static str,
    title: Option<String>,
    markdown: String,
    reader: PageReader,
}

/// The result of the call.
pub(super) async fn answer(
    asked: &FetchRequest,
    target: &Target,
    hops: usize,
    answer: Answer,
    (reader, recorder): (&Reader, Recorder),
) -> Result<Value, ToolError> {
    let length = answer.body.len();
    let mut result = json!({
        "url": asked.url,
        "final_url": target.shown(),
        "status": answer.status,
        "content_type": answer.content_type.clone().map(harmless),
    });
    let mut base64 = None;
    let page = match Sort::detect(answer.content_type.as_deref(), &answer.body) {
        Sort::Nothing => Content::plain("none", String::new()),
        Sort::Binary => {
            base64 = asked.raw.then(|| STANDARD.encode(&answer.body));
            Content::plain("binary", String::new())
        }
        Sort::Text => Content::plain("text", text(&answer, false)),
        Sort::Html if asked.raw => Content::plain("source", text(&answer, true)),
        Sort::Html => {
            let (html, url) = (text(&answer, true), target.shown().to_owned());
            let fetched = FetchedPage { html, url, recorder, cancelled: CancelFlag::default() };
            read(fetched, reader.clone()).await?
        }
    };
    if let Some(fields) = result.as_object_mut() {
        let title = page.title.map(harmless).filter(|title| !title.trim().is_empty());
        fields.insert("title".to_owned(), title.into());
        let markdown = if asked.raw { page.markdown } else { harmless(page.markdown) };
        fields.insert("markdown".to_owned(), markdown.into());
        if let Some(base64) = base64 {
            fields.insert("base64".to_owned(), base64.into());
        }
        fields.insert("kind".to_owned(), page.kind.into());
        fields.insert("reader".to_owned(), page.reader.name().into());
        fields.insert("bytes".to_owned(), length.into());
        fields.insert("truncated".to_owned(), answer.truncated.into());
        fields.insert("redirects".to_owned(), hops.into());
        fields.insert("untrusted".to_owned(), true.into());
    }
    Ok(result)
}

impl Content {
    const fn plain(kind: &'static str, markdown: String) -> Self {
        Self { kind, title: None, markdown, reader: PageReader::None }
    }
}

/// The text without what acts on whoever shows it: control characters, letters that turn the direction of a line, and
/// those that nobody sees.
fn harmless(text: String) -> String {
    if !text.contains(acts) {
        return text;
    }
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    text.replace(acts, "")
}

fn acts(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
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
    fn detect(content_type: Option<&str>, body: &[u8]) -> Self {
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

/// Reads a page. Reading may block; its reader is told when the call is cancelled or its time is over.
async fn read(fetched: FetchedPage, reader: Reader) -> Result<Content, ToolError> {
    let _on_drop = fetched.cancelled.set_on_drop();
    let why = match tokio::task::spawn_blocking(move || reader.read(fetched)).await {
        Ok(Ok(read)) => {
            let Page { kind, title, markdown } = read.page;
            return Ok(Content { kind: kind.name(), title, markdown, reader: read.reader });
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its reader failed".to_owned(),
    };
    Err(failed(format!("the page cannot be read: {why}; try `raw`")))
}
