//! The server's tools, asked for by the relay itself before the first call of a client that did not list them: a call is held
//! to the definition that was pinned, whether or not its client looked at it.
//!
//! Requests have ids that no client can choose. Fails closed when the server does not answer: who keeps the pins is told, and
//! refuses tools that were pinned.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::consent::Caller;
use super::from_server::listed_page;
use super::message::{RequestKey, line};
use super::pins::ListKind;
use super::waiting::Reply;
use super::{MAX_RESULT, Shared};

/// How long the server may take for one page.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most pages of one list.
const MAX_PAGES: usize = 100;

/// Asks the server for its tools, once, if the client has not.
pub(super) async fn ensure_listed(shared: &Arc<Shared>, caller: &Caller) {
    if !shared.options.pins.needs_list() {
        return;
    }
    let ask = async {
        if all_pages(shared, caller).await.is_none() && shared.options.pins.needs_list() {
            shared.options.pins.list_failed();
        }
    };
    shared.listed.get_or_init(|| ask).await;
}

async fn all_pages(shared: &Arc<Shared>, caller: &Caller) -> Option<()> {
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = page(shared, caller, cursor.as_ref()).await?;
        match page {
            Some(next) => cursor = Some(next),
            None => return Some(()),
        }
    }
    None
}

/// One page: the cursor of the next, or `None` after the last. Nothing if it did not come.
async fn page(shared: &Arc<Shared>, caller: &Caller, cursor: Option<&Value>) -> Option<Option<Value>> {
    let id = RequestKey::Text(shared.desk.key_for_server()?.into());
    let (tell, answer) = oneshot::channel();
    shared.waiting.begin(&id, Reply::Own(tell)).ok()?;
    let mut params = Map::new();
    if !caller.meta.is_empty() {
        params.insert("_meta".to_owned(), Value::Object(caller.meta.clone()));
    }
    if let Some(cursor) = cursor {
        params.insert("cursor".to_owned(), cursor.clone());
    }
    let request = json!({ "jsonrpc": "2.0", "id": id.to_value(), "method": "tools/list", "params": params });
    shared.to_server.push(line(&request));
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    drop(shared.waiting.end(&id));
    let answer = answer.ok()?.ok().filter(|answer| answer.len() <= MAX_RESULT)?;
    let listed = listed_page(shared, ListKind::Tools, &answer)?;
    Some(listed.next.and_then(|next| serde_json::from_str(&next).ok()))
}
