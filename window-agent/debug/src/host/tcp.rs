//! TCP connections to adapters and to programs that are attached to.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use baton_link::peer;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use crate::connection::{Connection, connect};
use crate::error::DebugError;

/// How long a connection to an adapter may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Connects to what is attached to, unless it is another user's.
pub(crate) async fn open(host: &str, port: u16) -> Result<TcpStream, DebugError> {
    let connected = async {
        let stream = TcpStream::connect((host, port)).await?;
        peer::check_server(&stream).await?;
        io::Result::Ok(stream)
    };
    let message = match tokio::time::timeout(CONNECT_TIMEOUT, connected).await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => format!(
            "{host}:{port} is not attached to: {error}, and could act as you; if that is meant, forward the port yourself, for example with ssh -L"
        ),
        Ok(Err(error)) => nothing_at(host, port, &error.to_string()),
        Err(_) => {
            format!("{host}:{port} did not accept a connection within {} s", CONNECT_TIMEOUT.as_secs())
        }
    };
    Err(DebugError::StartFailed { message })
}

/// That nobody listens there.
pub(crate) fn nothing_at(host: &str, port: u16, why: &str) -> String {
    format!(
        "nothing to attach to at {host}:{port} ({why}); is the program running with a debugger that listens there?"
    )
}

/// Messages over a TCP connection, none of which waits for an acknowledgement.
pub(super) fn from_tcp(stream: TcpStream) -> Connection {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::warn!(%error, "cannot set TCP_NODELAY on a connection to an adapter");
    }
    let (read, write) = stream.into_split();
    connect(QuickRead(read), write)
}

/// Acknowledges at once what it reads: an adapter that writes two messages in a row without TCP_NODELAY holds the
/// second one back until then, and by default that is 40 ms later. The option is not permanent.
pub(super) struct QuickRead(pub(super) OwnedReadHalf);

impl AsyncRead for QuickRead {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.0).poll_read(context, buffer);
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_quickack(self.0.as_ref(), true);
        poll
    }
}
