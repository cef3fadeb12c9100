//! SOCKS 5 (RFC 1928): the requests of programs that use `-D`. Only CONNECT, without
//! authentication.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::forward::message::{Failure, Target};

const VERSION: u8 = 5;

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// Reads a request; answers what is not supported.
///
/// # Errors
///
/// The connection has failed, or the program speaks another protocol.
pub async fn request<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut S) -> io::Result<Target> {
    // RFC 1928 3: the client lists methods, the server selects one.
    if socket.read_u8().await? != VERSION {
        return Err(wrong("it is not SOCKS 5"));
    }
    let mut methods = vec![0; usize::from(socket.read_u8().await?)];
    socket.read_exact(&mut methods).await?;
    if !methods.contains(&0) {
        // 0xFF: no acceptable methods.
        socket.write_all(&[VERSION, 0xff]).await?;
        return Err(wrong("it requires authentication"));
    }
    socket.write_all(&[VERSION, 0]).await?;
    // RFC 1928 4: version, command, reserved, type of the address.
    let mut head = [0; 4];
    socket.read_exact(&mut head).await?;
    let [version, command, _, kind] = head;
    if version != VERSION {
        return Err(wrong("it is not SOCKS 5"));
    }
    let host = match kind {
        1 => {
            let mut bytes = [0; 4];
            socket.read_exact(&mut bytes).await?;
            Ipv4Addr::from(bytes).to_string()
        }
        3 => {
            let mut bytes = vec![0; usize::from(socket.read_u8().await?)];
            socket.read_exact(&mut bytes).await?;
            String::from_utf8(bytes).map_err(|_| wrong("the name is not text"))?
        }
        4 => {
            let mut bytes = [0; 16];
            socket.read_exact(&mut bytes).await?;
            Ipv6Addr::from(bytes).to_string()
        }
        _ => {
            reply(socket, 8).await?;
            return Err(wrong("unknown type of address"));
        }
    };
    let port = socket.read_u16().await?;
    if command != 1 {
        reply(socket, 7).await?;
        return Err(wrong("only CONNECT is supported"));
    }
    Ok(Target { host, port })
}

/// Reports the result of a request.
///
/// # Errors
///
/// The connection has failed.
pub async fn answer<S: AsyncWrite + Unpin>(
    socket: &mut S,
    result: Result<(), Failure>,
) -> io::Result<()> {
    // RFC 1928 6.
    let code = match result {
        Ok(()) => 0,
        Err(Failure::NotAllowed) => 2,
        Err(Failure::Unreachable | Failure::UnknownHost) => 4,
        Err(Failure::Refused) => 5,
        Err(Failure::TimedOut) => 6,
        Err(_) => 1,
    };
    reply(socket, code).await
}

/// A reply; the address that the server has bound is not known here.
async fn reply<S: AsyncWrite + Unpin>(socket: &mut S, code: u8) -> io::Result<()> {
    socket.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn asked(bytes: &[u8]) -> (io::Result<Target>, Vec<u8>) {
        let (mut client, mut server) = tokio::io::duplex(1024);
        client.write_all(bytes).await.unwrap();
        client.shutdown().await.unwrap();
        let target = request(&mut server).await;
        drop(server);
        let mut replies = Vec::new();
        client.read_to_end(&mut replies).await.unwrap();
        (target, replies)
    }

    /// The examples follow the layout of RFC 1928 3 to 6.
    #[tokio::test]
    async fn requests_are_read() {
        let (target, replies) = asked(b"\x05\x01\x00\x05\x01\x00\x03\x04host\x00\x16").await;
        assert_eq!(target.unwrap(), Target { host: "host".into(), port: 22 });
        assert_eq!(replies, [5, 0]);
        let (target, _) = asked(b"\x05\x02\x02\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb").await;
        assert_eq!(target.unwrap(), Target { host: "127.0.0.1".into(), port: 443 });
        let six = b"\x05\x01\x00\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x50";
        assert_eq!(asked(six).await.0.unwrap().host, "::1");
    }

    #[tokio::test]
    async fn what_is_not_supported_is_answered() {
        assert_eq!(asked(b"\x05\x01\x02").await.1, [5, 0xff]);
        let (target, replies) = asked(b"\x05\x01\x00\x05\x02\x00\x01\x7f\0\0\x01\0\x50").await;
        assert!(target.is_err());
        assert_eq!(replies[..4], [5, 0, 5, 7]);
        assert!(asked(b"GET / HTTP/1.1\r\n").await.0.is_err());
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _ = runtime.block_on(asked(&bytes));
        }
    }
}
