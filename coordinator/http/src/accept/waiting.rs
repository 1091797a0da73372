//! The end of a listener: who is let in at the last moment.

use baton_link::net::{TcpListener, TcpStream};
#[cfg(target_os = "linux")]
use socket2::{SockFilter, SockRef};

use crate::connection::CONNECTIONS_MAX;

/// Ends a listener, and gives the connections that wait in its queue.
pub(super) fn close(listener: TcpListener) -> Vec<TcpStream> {
    #[cfg(target_os = "linux")]
    if let Err(error) = SockRef::from(&listener).attach_filter(&[NOTHING]) {
        tracing::debug!(%error, "who connects in this moment is not kept waiting");
    }
    // What waits is known to the system, not yet to the runtime.
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    let waiting = std::iter::from_fn(|| listener.accept().ok());
    let streams = waiting.take(CONNECTIONS_MAX).filter_map(|(stream, _)| {
        stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)).ok()
    });
    streams.collect()
}

/// A filter that lets nothing in: who connects while a port is closed asks again after a second, and is refused.
/// (Without it somebody can be let in between the last accept and the end of the listener.)
#[cfg(target_os = "linux")]
const NOTHING: SockFilter = SockFilter::new(RETURN, 0, 0, 0);
/// `BPF_RET | BPF_K`: so many bytes of the packet are let through.
#[cfg(target_os = "linux")]
const RETURN: u16 = 0x06;
