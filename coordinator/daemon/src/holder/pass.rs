//! Listeners over a socket (SCM_RIGHTS), with the port that they listen on.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Descriptors in one message: a lock, and a listener for each address family.
const MAX_DESCRIPTORS: usize = 3;

/// Sends `descriptors` with the number of a port.
pub(crate) fn send(socket: impl AsFd, port: u16, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    sendmsg(socket, &[IoSlice::new(&port.to_be_bytes())], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives what [`send`] sent; the descriptors are not for programs that we start.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<(u16, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut port = [0; 2];
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut port)], &mut control, RecvFlags::empty())?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if received.bytes != port.len() || descriptors.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "received nothing"));
    }
    for descriptor in &descriptors {
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    Ok((u16::from_be_bytes(port), descriptors))
}
