//! Files of the log from a web server, each within its bounds: bytes, silence, and time in all.

use std::collections::BTreeMap;
use std::time::Duration;

use bailiwick_fleet::tile::{LogFile, MAX_BUNDLE, MAX_CHECKPOINT, WIDTH};
use bailiwick_remote::{Client, Endpoint, EndpointError, SendError};
use bytes::Bytes;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{Request, StatusCode};

/// How long a web server may say nothing.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long one file may take.
const WHOLE: Duration = Duration::from_secs(30);

/// The longest tag that is sent back.
const MAX_TAG: usize = 256;

/// The tags of checkpoints, by the base URL that they came from.
pub(crate) type Tags = BTreeMap<String, String>;

/// Why a file is not had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// There is no answer.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The URL may not be asked.
    #[error(transparent)]
    Url(#[from] EndpointError),
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(#[from] http::Error),
    /// Another status.
    #[error("`{0}` answers {1}")]
    Status(String, StatusCode),
    /// It takes too long.
    #[error("`{0}` took longer than {1} s")]
    Slow(String, u64),
}

/// A web server that has the log.
pub(crate) struct LogSource<'a> {
    client: &'a Client,
    pub(crate) base: &'a str,
}

/// A checkpoint, or that it is the one of the tag.
pub(crate) enum Polled {
    New(Vec<u8>, Option<String>),
    Unchanged,
}

impl<'a> LogSource<'a> {
    pub(crate) const fn new(client: &'a Client, base: &'a str) -> Self {
        Self { client, base }
    }

    /// The checkpoint, if it is another one than that of the tag.
    pub(crate) async fn poll(&self, tag: Option<&str>) -> Result<Polled, FetchError> {
        let (status, bytes, new_tag) = self.fetch(&LogFile::Checkpoint, MAX_CHECKPOINT, tag).await?;
        if status == StatusCode::NOT_MODIFIED {
            return Ok(Polled::Unchanged);
        }
        Ok(Polled::New(bytes, new_tag))
    }

    /// A tile or an entry bundle.
    pub(crate) async fn file(&self, file: LogFile) -> Result<Vec<u8>, FetchError> {
        let most = match file {
            LogFile::Checkpoint => MAX_CHECKPOINT,
            LogFile::Tile(tile) => usize::from(tile.width.min(WIDTH)) * 32,
            LogFile::Entries(_) => MAX_BUNDLE,
            LogFile::Heads(_) => bailiwick_fleet::tile::MAX_HEADS,
        };
        Ok(self.fetch(&file, most, None).await?.1)
    }

    async fn fetch(
        &self,
        file: &LogFile,
        most: usize,
        tag: Option<&str>,
    ) -> Result<(StatusCode, Vec<u8>, Option<String>), FetchError> {
        let url = format!("{}/{}", self.base, file.path());
        let endpoint = Endpoint::new(&url)?;
        let mut request = Request::get(endpoint.as_str());
        if let Some(tag) = tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        let request = request.body(Bytes::new())?;
        let whole = async {
            let answered = self.client.send(&endpoint, &request, PATIENCE).await?;
            let new_tag = answered.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
            let new_tag = new_tag.filter(|tag| tag.len() <= MAX_TAG).map(str::to_owned);
            let is_known = answered.status == StatusCode::NOT_MODIFIED && tag.is_some();
            if answered.status != StatusCode::OK && !is_known {
                return Err(FetchError::Status(url.clone(), answered.status));
            }
            let bytes = answered.body.read(if is_known { 0 } else { most }).await?;
            Ok((answered.status, bytes, new_tag))
        };
        tokio::time::timeout(WHOLE, whole)
            .await
            .map_err(|_| FetchError::Slow(url.clone(), WHOLE.as_secs()))?
    }
}
