//! Moves bytes between a connection and a pair of byte streams, such as a TCP socket.

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::forward::connection::{Connection, Receiver, Sender};
use crate::forward::inbox::Event;

/// Bytes read at once.
const READ: usize = 32 << 10;

/// How a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Both directions have ended.
    Closed,
    /// It was reset, on either side.
    Reset,
}

/// Serves a TCP connection until both directions have ended. If the connection is reset on the
/// other side, this one is reset too.
pub async fn tcp(connection: Connection, mut socket: TcpStream) -> Ended {
    // Small messages, such as keystrokes, do not wait for others.
    let _ = socket.set_nodelay(true);
    let ended = {
        let (reader, writer) = socket.split();
        pump(connection, reader, writer).await
    };
    if ended == Ended::Reset {
        // RFC 9293 3.10.4: closing without lingering sends a RST.
        let _ = socket.set_zero_linger();
    }
    ended
}

/// Serves a pair of byte streams until both directions have ended.
pub async fn pump(
    connection: Connection,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) -> Ended {
    let (mut sender, mut receiver) = connection.split();
    let is_closed = both(&mut sender, &mut receiver, reader, writer).await;
    if !is_closed {
        // Dropping the sender resets the other side.
        return Ended::Reset;
    }
    sender.over();
    Ended::Closed
}

/// Serves both directions; false if one of them is reset.
async fn both(
    sender: &mut Sender,
    receiver: &mut Receiver,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) -> bool {
    let up = send(sender, reader);
    let down = receive(receiver, writer);
    tokio::pin!(up, down);
    let (mut sent, mut received) = (false, false);
    while !(sent && received) {
        let done = tokio::select! {
            done = &mut up, if !sent => {
                sent = true;
                done
            }
            done = &mut down, if !received => {
                received = true;
                done
            }
        };
        if done.is_none() {
            return false;
        }
    }
    true
}

/// Sends everything up to the end; `None` if the connection is reset.
async fn send(sender: &mut Sender, mut reader: impl AsyncRead + Unpin) -> Option<()> {
    loop {
        let credit = sender.credit(READ).await;
        let mut buffer = BytesMut::with_capacity(credit);
        let count = (&mut reader).take(credit as u64).read_buf(&mut buffer).await.ok()?;
        if count == 0 {
            return sender.end().await.ok();
        }
        sender.give_back(credit - count);
        sender.data(buffer.freeze()).await.ok()?;
    }
}

/// Writes everything up to the end; `None` if the connection is reset.
async fn receive(receiver: &mut Receiver, mut writer: impl AsyncWrite + Unpin) -> Option<()> {
    loop {
        match receiver.next().await? {
            Event::Data(bytes) => {
                writer.write_all(&bytes).await.ok()?;
                writer.flush().await.ok()?;
                receiver.taken(bytes.len()).await.ok()?;
            }
            Event::End => {
                writer.shutdown().await.ok()?;
                break;
            }
            Event::Opened | Event::Failed(_) | Event::Reset(_) => return None,
        }
    }
    // The other side may still reset the direction of this side, until that has ended too.
    match receiver.next().await {
        None => Some(()),
        Some(_) => None,
    }
}
