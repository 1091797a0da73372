//! One coordinator follows another without a pause: the old one starts the new one and gives it its lock and its
//! listeners, as descriptors over a socket that the new one finds as its standard input.
//!
//! Whoever connects in between waits in the listeners' queue; nobody is refused.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use baton_link::explain::Explanation;
use baton_link::home::Home;
use baton_link::net::TcpListener;
use baton_link::spawn::{self, Spawn};
use baton_proto::start::Handshake;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::holder::pass;

/// What a predecessor left.
#[derive(Debug)]
pub struct Inheritance {
    /// See [`crate::singleton::Lock::adopt`].
    pub lock: OwnedFd,
    /// The port of the listeners.
    pub port: u16,
    /// They have been listening all the time.
    pub listeners: Vec<TcpListener>,
    /// The listener of the socket in the state folder, likewise.
    pub socket: Option<OwnedFd>,
}

/// Starts `program` with what there is to inherit, and waits until it answers. The program is gone when this
/// fails.
pub async fn start(
    home: &Home,
    program: &Path,
    lock: BorrowedFd<'_>,
    (port, listeners): (u16, &[OwnedFd]),
    socket: Option<BorrowedFd<'_>>,
) -> Result<(), Explanation> {
    let (ours, theirs) = UnixStream::pair().map_err(|error| {
        Explanation::new(format!("cannot create a socket for the new coordinator: {error}"))
    })?;
    let mut descriptors = vec![lock];
    descriptors.extend(listeners.iter().map(AsFd::as_fd));
    pass::send(&ours, port, &descriptors)
        .and_then(|()| socket.map_or(Ok(()), |socket| pass::send(&ours, port, &[socket])))
        .map_err(|error| Explanation::new(format!("cannot hand over the lock: {error}")))?;
    let spawn = Spawn { home, program, port: None, inheritance: Some(theirs.into()) };
    match spawn::spawn(spawn).await {
        Ok(Handshake::Ready { .. }) => Ok(()),
        Ok(Handshake::Error { message, hint }) => Err(Explanation { message, hint }),
        Ok(other) => Err(Explanation::new(format!("{} did not take over ({other:?})", program.display()))),
        Err(error) => Err(Explanation { message: error.to_string(), hint: error.hint() }),
    }
}

/// Takes what a predecessor left at our standard input, which leads nowhere afterwards.
pub fn receive() -> io::Result<Inheritance> {
    let inheritance = receive_from(rustix::stdio::stdin())?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(inheritance)
}

/// Takes what a predecessor left at this socket.
pub fn receive_from(socket: BorrowedFd<'_>) -> io::Result<Inheritance> {
    let (port, mut descriptors) = pass::receive(socket)?;
    if descriptors.len() < 2 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "received nothing from the previous \
                                                               coordinator",
        ));
    }
    let lock = descriptors.remove(0);
    let listeners: io::Result<Vec<TcpListener>> =
        descriptors.into_iter().map(|listener| TcpListener::from_std(listener.into())).collect();
    // Sent by itself, so that a version that knows of no socket does not take it for a port.
    let is_there = {
        let mut wait = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        poll(&mut wait, Some(&Timespec::default())).is_ok_and(|n_ready| n_ready > 0)
    };
    let left = is_there.then(|| pass::receive(socket).ok()).flatten();
    let socket = left.and_then(|(_, mut descriptors)| descriptors.pop());
    Ok(Inheritance { lock, port, listeners: listeners?, socket })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_is_what_arrives() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lock = tempfile::tempfile().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        pass::send(&ours, address.port(), &[lock.as_fd(), listener.as_fd()]).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
        pass::send(&ours, address.port(), &[socket.as_fd()]).unwrap();
        drop(listener);
        // It listens all the time: a connection made meanwhile waits for the heir.
        let _client = std::net::TcpStream::connect(address).unwrap();
        let inheritance = receive_from(theirs.as_fd()).unwrap();
        assert_eq!(inheritance.port, address.port());
        assert_eq!((inheritance.listeners.len(), inheritance.socket.is_some()), (1, true));
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
