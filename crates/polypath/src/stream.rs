//! A stream of an association as a sequence of bytes.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use polypath_proto::{CloseReason, Message, Ppid, StreamId};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::association::Association;
use crate::error::{ClosedError, SendError};

/// Payload protocol identifier of the message that ends a [`Stream`]: "end" in ASCII. Its payload
/// is one byte without a meaning.
///
/// SCTP has neither a half-close nor empty messages.
pub const STREAM_END: Ppid = Ppid(0x0065_6e64);

/// Default maximum size in bytes of the messages that writes send.
const WRITE_SIZE: usize = 64 << 10;

/// One stream of an association, both directions, as a sequence of bytes:
/// [`AsyncRead`] and [`AsyncWrite`].
///
/// Each write becomes one ordered message of at most 64 KiB
/// ([`set_write_size`](Self::set_write_size)). Reads return the bytes of consecutive messages
/// without their boundaries.
///
/// [`shutdown`](tokio::io::AsyncWriteExt::shutdown) ends this direction of this stream only: it
/// sends a last message with the payload protocol identifier [`STREAM_END`], at which the peer's
/// `Stream` reads end-of-file. Both sides should therefore use the stream through this type. A
/// graceful shutdown of the association is also an end-of-file; any other end is an error. Dropping
/// a `Stream` ends nothing.
///
/// Flushing does nothing: written bytes are already queued for sending. Operations are
/// cancellation-safe in the sense of tokio's own types (`read`, `write`; not `read_exact`,
/// `write_all`).
///
/// Several `Stream`s of the same number, or [`Association::recv`], compete for messages.
#[derive(Debug)]
pub struct Stream {
    association: Association,
    id: StreamId,
    ppid: Ppid,
    write_size: usize,
    /// Unread rest of the last message.
    unread: Bytes,
    ended: bool,
    finished: bool,
    reading: Waiting,
    writing: Waiting,
}

/// A registered notification that is kept across polls.
#[derive(Debug, Default)]
struct Waiting(Option<Pin<Box<OwnedNotified>>>);

impl Waiting {
    /// Registers for notifications from now on.
    fn begin(&mut self, notify: &Arc<Notify>) {
        self.0.get_or_insert_with(|| Box::pin(notify.clone().notified_owned()));
    }

    /// Ready when notified since [`begin`](Self::begin), which must then be called again.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(notified) = &mut self.0 {
            ready!(notified.as_mut().poll(cx));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

impl Association {
    /// A stream as a sequence of bytes, see [`Stream`].
    pub fn stream(&self, id: StreamId) -> Stream {
        Stream {
            association: self.clone(),
            id,
            ppid: Ppid(0),
            write_size: WRITE_SIZE,
            unread: Bytes::new(),
            ended: false,
            finished: false,
            reading: Waiting::default(),
            writing: Waiting::default(),
        }
    }
}

impl Stream {
    /// Number of the stream.
    pub const fn id(&self) -> StreamId {
        self.id
    }

    /// The association of the stream.
    pub const fn association(&self) -> &Association {
        &self.association
    }

    /// Sets the maximum size in bytes of the messages that writes send; at least 1. Default: 64
    /// KiB.
    pub const fn set_write_size(&mut self, bytes: usize) {
        self.write_size = if bytes == 0 { 1 } else { bytes };
    }

    /// Sets the payload protocol identifier of messages written from now on; not [`STREAM_END`].
    /// Default: 0.
    pub const fn set_ppid(&mut self, ppid: Ppid) {
        self.ppid = ppid;
    }

    /// Ready when unread bytes are available or the stream has ended.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let id = self.id;
        let mut waited = false;
        while self.unread.is_empty() && !self.ended {
            match self.association.take(&mut |association, now| association.stream(id).recv(now)) {
                Ok(Some(received)) if received.ppid == STREAM_END => self.ended = true,
                Ok(Some(received)) if received.aborted => {
                    let what = "the peer has given up a part of the stream";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
                }
                Ok(Some(received)) => self.unread = received.payload,
                Ok(None) if waited => {
                    ready!(self.reading.poll(cx));
                    waited = false;
                }
                Ok(None) => {
                    // Check once more after registering: a message may have arrived in between.
                    self.reading.begin(&self.association.wakes().readable);
                    waited = true;
                }
                Err(CloseReason::Graceful) => self.ended = true,
                Err(reason) => return Poll::Ready(Err(ClosedError(reason).into())),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        ppid: Ppid,
        payload: &[u8],
    ) -> Poll<io::Result<()>> {
        let payload = Bytes::copy_from_slice(payload);
        let mut waited = false;
        loop {
            let message = Message { ppid, ..Message::new(self.id, payload.clone()) };
            match self.association.try_send(message) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(SendError::WouldBlock) if waited => {
                    ready!(self.writing.poll(cx));
                    waited = false;
                }
                Err(SendError::WouldBlock) => {
                    self.writing.begin(&self.association.wakes().writable);
                    waited = true;
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_fill(cx))?;
        let count = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.unread[..count]);
        self.unread.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.finished {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let count = buf.len().min(self.write_size);
        let ppid = self.ppid;
        ready!(self.poll_send(cx, ppid, &buf[..count]))?;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.finished {
            ready!(self.poll_send(cx, STREAM_END, &[0]))?;
            self.finished = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl From<SendError> for io::Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Closed(reason) => ClosedError(reason).into(),
            SendError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            SendError::ShuttingDown => Self::new(io::ErrorKind::BrokenPipe, error),
            _ => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}
