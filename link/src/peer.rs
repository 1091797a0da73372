//! Which user is at the other end of a connection on this host.
//!
//! A token shows what somebody knows, not who they are: whoever took a port for a moment knows the token that a
//! client sent to it. The kernel knows whose the socket is.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

/// A TCP stream that knows its two ends: the system's, or a simulation's.
pub trait Ends: AsFd {
    /// Our own address and the other's.
    fn ends(&self) -> io::Result<(SocketAddr, SocketAddr)>;
}

impl Ends for TcpStream {
    fn ends(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((self.local_addr()?, self.peer_addr()?))
    }
}

/// Between two looks whether the other end was accepted.
const LOOK: Duration = Duration::from_millis(1);

/// The owner of the socket at the other end of a connected stream, TCP on loopback or Unix.
///
/// `None` where the system does not tell: then a token, and the folder that a Unix socket lies in, are all there is
/// to go by. An error means that nobody is there any more: the other end is closed, and the kernel calls what is
/// left of it root's.
pub fn peer_uid(stream: impl AsFd) -> io::Result<Option<u32>> {
    system::peer_uid(stream.as_fd())
}

/// True when the other end is this user's or root's, or the system does not tell whose it is.
pub fn is_trusted_peer(stream: impl AsFd) -> bool {
    peer_uid(stream).is_ok_and(|uid| uid.is_none_or(is_trusted_user))
}

/// For whoever connected: returns once it is known that nobody but this user, or root, holds the other end on this
/// machine. Waits until it is accepted: before that the kernel does not know whose it will be. On another machine
/// nobody knows.
pub async fn check_server(stream: &impl Ends) -> io::Result<()> {
    let (own, other) = stream.ends()?;
    let (own, other) = (own.ip(), other.ip());
    if !other.to_canonical().is_loopback() && own != other {
        return Ok(());
    }
    loop {
        match peer_uid(stream) {
            Ok(Some(uid)) if !is_trusted_user(uid) => {
                let message = format!("the program listening there is run by another user ({uid})");
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
            }
            Ok(_) => return Ok(()),
            Err(_) => sleep(LOOK).await,
        }
    }
}

/// True for the user of this process, and for root, who may do everything anyway.
pub fn is_trusted_user(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

#[cfg(all(target_os = "linux", not(sim)))]
mod system {
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::BorrowedFd;

    use rustix::net::{AddressFamily, getpeername, getsockname};

    pub(super) fn peer_uid(stream: BorrowedFd<'_>) -> io::Result<Option<u32>> {
        let own = getsockname(stream)?;
        if own.address_family() == AddressFamily::UNIX {
            return Ok(Some(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw()));
        }
        let to_socket =
            |address| SocketAddr::try_from(address).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        let peer = getpeername(stream)?.ok_or(io::ErrorKind::NotConnected)?;
        match baton_sock_diag::owner_of(to_socket(peer)?, to_socket(own)?) {
            // A sandbox without this kind of socket; nothing else tells at a price that a connection may have.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            result => result.map(Some),
        }
    }
}

#[cfg(sim)]
#[path = "sim/peer.rs"]
mod system;

#[cfg(all(not(target_os = "linux"), not(sim)))]
mod system {
    use std::io;
    use std::os::fd::BorrowedFd;

    pub(super) fn peer_uid(_stream: BorrowedFd<'_>) -> io::Result<Option<u32>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream as StdTcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_owner_of_the_other_end_is_told() {
        let us = cfg!(target_os = "linux").then(|| rustix::process::geteuid().as_raw());
        let (here, _there) = UnixStream::pair().unwrap();
        assert_eq!(peer_uid(&here).unwrap(), us);
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = StdTcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, _) = listener.accept().unwrap();
            assert_eq!(peer_uid(&server).unwrap(), us, "{address}");
            assert_eq!(peer_uid(&client).unwrap(), us, "{address}");
            assert!(is_trusted_peer(&server));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_end_that_nobody_holds_is_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = StdTcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(is_trusted_peer(&server), "it still reads");
        drop(client);
        assert!(peer_uid(&server).is_err() && !is_trusted_peer(&server));
    }
}
