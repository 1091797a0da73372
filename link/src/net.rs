//! Streams and listeners of this machine. A simulation (`--cfg sim`) has its own in their place.

mod local;

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::TcpSocket;
pub use tokio::net::{TcpListener, TcpStream};

pub use local::{UnixListener, UnixStream};

/// Listens on a port. Never SO_REUSEPORT: it would let another process of this user share the port.
pub fn listen(address: IpAddr, port: u16, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Connections of a predecessor that linger in TIME_WAIT do not hold the port.
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(address, port))?;
    socket.listen(backlog)
}
