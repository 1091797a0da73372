//! The end of a simulated listener: who is let in at the last moment.

use baton_link::net::{TcpListener, TcpStream};

/// Ends a listener, and gives the connections that wait in its queue.
pub(super) fn close(listener: TcpListener) -> Vec<TcpStream> {
    listener.drain()
}
