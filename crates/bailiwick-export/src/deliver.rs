//! Delivery to a collector: OTLP over HTTP, protobuf, one request for logs, one for traces and one for metrics.
//!
//! What the collector cannot take now is tried again as it is. What it will never take (400, 413, 422) is halved until the one
//! record stands alone that it refuses; that one is counted. Every other answer may be a mistake in the settings: it is tried again.

use std::time::Duration;

use bailiwick_remote::{Client, Endpoint, EndpointError, SendError};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message;

use crate::batch::Batch;
use crate::logs::log_record;
use crate::metrics::metrics;
use crate::value::{attribute, text};

/// How long the collector may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// No answer is larger.
const MOST_ANSWER: usize = 64 * 1024;

/// The longest wait that a collector may ask for.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// The URL of a collector that is not asked.
#[derive(Debug, thiserror::Error)]
pub enum CollectorUrlError {
    /// The URL cannot be asked.
    #[error(transparent)]
    Url(#[from] EndpointError),
    /// What stands behind the path would be lost.
    #[error("the URL of a collector has no query and no fragment: `{0}`")]
    Query(String),
    /// A header that HTTP cannot carry.
    #[error("the header `{0}` cannot be sent: its name or value has characters that headers do not have")]
    Header(String),
}

/// Why a batch was not delivered. It is kept, and sent again.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// There was no answer.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The request cannot be written.
    #[error("the request cannot be written: {0}")]
    Request(#[from] http::Error),
    /// The collector said something other than that it has it.
    #[error("the collector answers {status} to {path}")]
    Refused {
        /// Its answer.
        status: StatusCode,
        /// What was asked.
        path: String,
        /// How long it wants to be left alone.
        wait: Option<Duration>,
    },
    /// The file or pipe takes no more.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
}

impl DeliverError {
    /// How long the collector wants to be left alone, if it says so.
    pub(crate) const fn wait(&self) -> Option<Duration> {
        match self {
            Self::Refused { wait, .. } => *wait,
            Self::Send(_) | Self::Request(_) | Self::Write(_) => None,
        }
    }

    /// Whether the same request will never be taken.
    fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status, .. } if matches!(status.as_u16(), 400 | 413 | 422))
    }
}

/// A collector.
pub struct Collector {
    client: Client,
    logs: Endpoint,
    traces: Endpoint,
    metrics: Endpoint,
    headers: HeaderMap,
    resource: Resource,
}

impl Collector {
    /// The collector at `base`, below which are `v1/logs`, `v1/traces` and `v1/metrics`. `resource` says who sends. The values
    /// of `headers` are secrets: no error shows them.
    ///
    /// # Errors
    /// If the URL may not be asked, or a header cannot be sent.
    pub fn new(
        client: Client,
        base: &str,
        headers: impl IntoIterator<Item = (String, Vec<u8>)>,
        resource: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, CollectorUrlError> {
        if base.contains(['?', '#']) {
            return Err(CollectorUrlError::Query(base.chars().take(200).collect()));
        }
        let base = base.trim_end_matches('/');
        let below = |path: &str| Endpoint::new(&format!("{base}/{path}"));
        let mut map = HeaderMap::new();
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        for (name, value) in headers {
            let header = HeaderName::try_from(name.as_str()).ok().filter(|header| *header != CONTENT_TYPE);
            let value = HeaderValue::from_bytes(&value).ok();
            let (Some(header), Some(mut value)) = (header, value) else {
                return Err(CollectorUrlError::Header(name));
            };
            value.set_sensitive(true);
            map.insert(header, value);
        }
        let attributes = resource.into_iter().map(|(key, value)| attribute(key, text(value))).collect();
        Ok(Self {
            client,
            logs: below("v1/logs")?,
            traces: below("v1/traces")?,
            metrics: below("v1/metrics")?,
            headers: map,
            resource: Resource { attributes, ..Resource::default() },
        })
    }

    /// Sends a batch; says how much of it the collector refused for good.
    pub(crate) async fn deliver(&self, batch: &Batch, now_us: u64) -> Result<u64, DeliverError> {
        let mut rejected = self
            .halving(
                &self.logs,
                &batch.events,
                |events| self.logs_request(events.iter().map(log_record).collect()),
                |answer| {
                    let partial = ExportLogsServiceResponse::decode(answer).ok()?.partial_success?;
                    Some(partial.rejected_log_records)
                },
            )
            .await?;
        rejected += self
            .halving(
                &self.traces,
                &batch.spans,
                |spans| self.spans_request(spans.to_vec()),
                |answer| {
                    let partial = ExportTraceServiceResponse::decode(answer).ok()?.partial_success?;
                    Some(partial.rejected_spans)
                },
            )
            .await?;
        let mut counts = batch.counts.clone();
        counts.rejected += rejected;
        let request = self.metrics_request(metrics(&counts, now_us));
        match self.post(&self.metrics, request).await {
            Err(why) if why.is_final() => Ok(rejected),
            answer => answer.map(|_| rejected),
        }
    }

    /// Sends all of `items`; those that the collector will never take are counted.
    async fn halving<T>(
        &self,
        to: &Endpoint,
        items: &[T],
        request: impl Fn(&[T]) -> Vec<u8>,
        rejected: impl Fn(Bytes) -> Option<i64>,
    ) -> Result<u64, DeliverError> {
        let (mut waiting, mut refused) = (vec![items], 0);
        while let Some(part) = waiting.pop() {
            if part.is_empty() {
                continue;
            }
            match self.post(to, request(part)).await {
                Ok(answer) => {
                    refused += rejected(answer).map_or(0, |count| u64::try_from(count).unwrap_or_default())
                }
                Err(why) if why.is_final() && part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([second, first]);
                }
                Err(why) if why.is_final() => refused += 1,
                Err(why) => return Err(why),
            }
        }
        Ok(refused)
    }

    async fn post(&self, to: &Endpoint, body: Vec<u8>) -> Result<Bytes, DeliverError> {
        let mut request = Request::builder().method(Method::POST).uri(to.as_str());
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.headers.clone());
        }
        let answered = self.client.send(to, &request.body(Bytes::from(body))?, PATIENCE).await?;
        let (status, wait) = (answered.status, wait(&answered.headers));
        let body = answered.body.read(MOST_ANSWER).await;
        if status.is_success() {
            Ok(body?.into())
        } else {
            Err(DeliverError::Refused { status, path: to.path().to_owned(), wait })
        }
    }

    fn scope(&self) -> (Option<Resource>, Option<InstrumentationScope>) {
        let (name, version) = ("bailiwick".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let scope = InstrumentationScope { name, version, ..InstrumentationScope::default() };
        (Some(self.resource.clone()), Some(scope))
    }

    fn logs_request(&self, log_records: Vec<opentelemetry_proto::tonic::logs::v1::LogRecord>) -> Vec<u8> {
        let (resource, scope) = self.scope();
        let scope_logs = vec![ScopeLogs { scope, log_records, ..ScopeLogs::default() }];
        let resource_logs = vec![ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }];
        ExportLogsServiceRequest { resource_logs }.encode_to_vec()
    }

    fn spans_request(&self, spans: Vec<opentelemetry_proto::tonic::trace::v1::Span>) -> Vec<u8> {
        let (resource, scope) = self.scope();
        let scope_spans = vec![ScopeSpans { scope, spans, ..ScopeSpans::default() }];
        let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
        ExportTraceServiceRequest { resource_spans }.encode_to_vec()
    }

    fn metrics_request(&self, metrics: Vec<opentelemetry_proto::tonic::metrics::v1::Metric>) -> Vec<u8> {
        let (resource, scope) = self.scope();
        let scope_metrics = vec![ScopeMetrics { scope, metrics, ..ScopeMetrics::default() }];
        let resource_metrics =
            vec![ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() }];
        ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
    }
}

/// How long an answer asks to wait, in seconds; dates are not read.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}
