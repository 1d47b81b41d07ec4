//! What a running call says, as progress notifications: collected while one is on its way, at most ten a second.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bailiwick_guard::{Listener, News};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::Notify;

/// The shortest time between two notifications.
const PAUSE: Duration = Duration::from_millis(100);

/// The most text of one notification; of more, the end is kept.
const MAX_TEXT: usize = 8 * 1024;

/// What was heard and not yet told.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Inner>);

#[derive(Default)]
struct Inner {
    said: Mutex<Said>,
    more: Notify,
}

#[derive(Default)]
struct Said {
    /// How many bytes so far: what progress counts.
    total: usize,
    text: String,
}

impl Heard {
    /// Who listens to the call. Never waits.
    pub(crate) fn listener(&self) -> Listener {
        let heard = self.clone();
        Arc::new(move |news: News| {
            let mut said = heard.0.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.add(&news.text);
            heard.0.more.notify_one();
        })
    }

    /// Tells the client until the call is over.
    pub(crate) async fn report(self, peer: &Peer<RoleServer>, token: ProgressToken) -> Infallible {
        let mut told = 0;
        loop {
            self.0.more.notified().await;
            let (total, text) = self.0.said.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Progress only grows, and a number of this size is still exact.
            let progress = u32::try_from(total).unwrap_or(u32::MAX);
            if progress > told {
                told = progress;
                let param = ProgressNotificationParam::new(token.clone(), f64::from(progress));
                // A client that has gone hears nothing; the call goes on until it is cut off.
                drop(peer.notify_progress(param.with_message(text)).await);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Said {
    fn add(&mut self, text: &str) {
        self.total = self.total.saturating_add(text.len());
        self.text += text;
        if self.text.len() > 2 * MAX_TEXT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let from = self.text.ceil_char_boundary(self.text.len().saturating_sub(MAX_TEXT));
        drop(self.text.drain(..from));
    }

    fn take(&mut self) -> (usize, String) {
        if self.text.len() > MAX_TEXT {
            self.cut();
        }
        (self.total, std::mem::take(&mut self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_much_text_is_kept() {
        let mut said = Said::default();
        for _ in 0..10_000 {
            said.add("é-");
        }
        said.add("end");
        let (total, text) = said.take();
        assert_eq!(total, 30_003);
        assert!(text.len() <= MAX_TEXT && text.ends_with("é-end"), "{}", text.len());
        assert_eq!(said.take(), (30_003, String::new()));
    }
}
