//! Bodies that are looked at while they pass: nothing of a piece goes on before it was looked at.
//!
//! Fails closed when a body lies still for too long: it breaks off.
//!
//! Trailers are not passed on: no field behind a body was judged.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

/// Why a body ends before its end.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Any body.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, BodyError>;

/// What is done with each piece, and with the end.
pub(crate) type Step = Box<dyn FnMut(Option<&Bytes>) -> Result<Bytes, BodyError> + Send>;

/// A body whose pieces go through a step that keeps their total length.
struct Stepped<B> {
    inner: B,
    step: Step,
    is_over: bool,
    patience: Duration,
    /// When patience ends, once it was waited for.
    until: Option<Pin<Box<Sleep>>>,
}

/// The body with each piece gone through `step`. It breaks off when nothing came for as long as `patience`.
pub(crate) fn stepped<B>(inner: B, patience: Duration, step: Step) -> AnyBody
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    Stepped { inner, step, is_over: false, patience, until: None }.boxed_unsync()
}

/// A body of these bytes.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> AnyBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

impl<B> Body for Stepped<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        while !this.is_over {
            let piece = match Pin::new(&mut this.inner).poll_frame(cx) {
                Poll::Pending => {
                    let patience = this.patience;
                    let until = this.until.get_or_insert_with(|| Box::pin(sleep(patience)));
                    if until.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    this.is_over = true;
                    return Poll::Ready(Some(Err(BodyError::from("nothing came for too long"))));
                }
                Poll::Ready(Some(Err(fault))) => {
                    this.is_over = true;
                    return Poll::Ready(Some(Err(fault.into())));
                }
                Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
                Poll::Ready(None) => None,
            };
            this.is_over = piece.is_none();
            if let Some(until) = &mut this.until {
                until.as_mut().reset(Instant::now() + this.patience);
            }
            match (this.step)(piece.as_ref()) {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Err(fault) => {
                    this.is_over = true;
                    return Poll::Ready(Some(Err(fault)));
                }
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        // The step may hold bytes back until the end was seen.
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
