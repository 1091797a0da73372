//! A look at a simulated connection, at what has been sent on it but has not arrived yet.

use std::io;

use baton_link::net;

use super::Stream;

/// What comes from the other side of a stream.
pub(super) struct Look(net::Look);

impl Look {
    pub(super) fn at(stream: &Stream) -> io::Result<Self> {
        Ok(Self(match stream {
            Stream::Left(stream) | Stream::Right(stream) => stream.look(),
        }))
    }

    /// The other side has sent nothing that is not read yet, and has not ended.
    pub(super) fn is_silent(&self) -> bool {
        self.0.is_silent()
    }
}
