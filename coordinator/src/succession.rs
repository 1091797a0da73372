//! One coordinator follows another without a pause: the old one starts the new one and gives it its lock and its
//! listeners, as descriptors over a socket that the new one finds as its standard input.
//!
//! Whoever connects in between waits in the listeners' queue; nobody is refused.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use baton_link::home::Home;
use baton_link::spawn::{self, Spawn};
use baton_proto::start::Handshake;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use tokio::net::TcpListener;

/// Descriptors in one inheritance: the lock, and a listener for each address family.
const MAX_DESCRIPTORS: usize = 3;

/// What a predecessor left.
#[derive(Debug)]
pub struct Inheritance {
    /// See [`crate::singleton::Lock::adopt`].
    pub lock: OwnedFd,
    /// The port of the listeners.
    pub port: u16,
    /// They have been listening all the time.
    pub listeners: Vec<TcpListener>,
}

/// Starts `program` with what there is to inherit, and waits until it answers. The program is gone when this
/// fails.
pub async fn start(
    home: &Home,
    program: &Path,
    lock: BorrowedFd<'_>,
    (port, listeners): (u16, &[OwnedFd]),
) -> Result<(), String> {
    let (ours, theirs) =
        UnixStream::pair().map_err(|error| format!("no socket for a successor ({error})"))?;
    let mut descriptors = vec![lock];
    descriptors.extend(listeners.iter().map(AsFd::as_fd));
    send(&ours, port, &descriptors).map_err(|error| format!("the lock cannot be handed over ({error})"))?;
    let spawn = Spawn { home, program, port: None, inheritance: Some(theirs.into()) };
    match spawn::spawn(spawn).await {
        Ok(Handshake::Ready { .. }) => Ok(()),
        Ok(Handshake::Error { message }) => Err(message),
        Ok(other) => Err(format!("{} did not take over ({other:?})", program.display())),
        Err(error) => Err(error.to_string()),
    }
}

fn send(socket: &UnixStream, port: u16, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many listeners"));
    }
    sendmsg(socket, &[IoSlice::new(&port.to_be_bytes())], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Takes what a predecessor left at our standard input, which leads nowhere afterwards.
pub fn receive() -> io::Result<Inheritance> {
    let inheritance = receive_from(rustix::stdio::stdin())?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(inheritance)
}

fn receive_from(socket: BorrowedFd<'_>) -> io::Result<Inheritance> {
    let nothing = || io::Error::new(io::ErrorKind::InvalidData, "no predecessor left anything");
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
    if received.bytes != port.len() || descriptors.len() < 2 {
        return Err(nothing());
    }
    for descriptor in &descriptors {
        // Not for the programs that we start.
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    let lock = descriptors.remove(0);
    let listeners: io::Result<Vec<TcpListener>> =
        descriptors.into_iter().map(|listener| TcpListener::from_std(listener.into())).collect();
    Ok(Inheritance { lock, port: u16::from_be_bytes(port), listeners: listeners? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_is_what_arrives() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lock = tempfile::tempfile().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        send(&ours, address.port(), &[lock.as_fd(), listener.as_fd()]).unwrap();
        drop(listener);
        // It listens all the time: a connection made meanwhile waits for the heir.
        let _client = std::net::TcpStream::connect(address).unwrap();
        let inheritance = receive_from(theirs.as_fd()).unwrap();
        assert_eq!(inheritance.port, address.port());
        assert_eq!(inheritance.listeners.len(), 1);
        inheritance.listeners[0].accept().await.unwrap();
    }

    #[tokio::test]
    async fn nothing_left_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert!(receive_from(theirs.as_fd()).is_err());
        assert!(receive_from(tempfile::tempfile().unwrap().as_fd()).is_err());
    }
}
