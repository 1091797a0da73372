//! Who is at the other end of a simulated connection: this user.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use super::Ends;
use crate::net::TcpStream;

impl Ends for TcpStream {
    fn ends(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        Ok((self.local_addr()?, self.peer_addr()?))
    }
}

pub(super) fn peer_uid(_stream: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    Ok(Some(rustix::process::geteuid().as_raw()))
}
