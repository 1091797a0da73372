//! A look at a connection past the runtime, at what the kernel knows of it.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::Stream;

/// The socket of a stream once more.
pub(super) struct Look(OwnedFd);

impl Look {
    pub(super) fn at(stream: &Stream) -> io::Result<Self> {
        Ok(Self(match stream {
            Stream::Left(stream) => stream.as_fd().try_clone_to_owned()?,
            Stream::Right(stream) => stream.as_fd().try_clone_to_owned()?,
        }))
    }

    /// The other side has sent nothing that is not read yet, and has not ended.
    pub(super) fn is_silent(&self) -> bool {
        let look = rustix::net::recv(&self.0, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(look, Err(Errno::AGAIN))
    }
}
