//! What leads others to this coordinator: its socket and its discovery file. Both can be lost while it runs, and are
//! made anew then.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use baton_link::home::Home;
use baton_link::net::UnixListener;
use baton_link::socket;
use baton_proto::discovery::Discovery;
use tracing::warn;

use crate::singleton;

/// See the module.
#[derive(Debug)]
pub(crate) struct Presence {
    home: Home,
    discovery: Option<Discovery>,
    /// The file that our socket is, and its listener once more, for a successor.
    socket: Option<((u64, u64), OwnedFd)>,
    /// What could not be made is told once.
    is_told: bool,
}

impl Presence {
    pub(crate) fn new(home: Home) -> Self {
        Self { home, discovery: None, socket: None, is_told: false }
    }

    /// Says in the discovery file where we are; without it we run, and are found by our socket.
    pub(crate) fn publish(&mut self, discovery: Discovery) {
        let written = singleton::publish(&self.home, &discovery);
        self.discovery = Some(discovery);
        self.tell("discovery.json", written);
    }

    /// Listens on our socket, or on the one of a predecessor.
    pub(crate) fn listen(&mut self, left: Option<OwnedFd>) -> Option<UnixListener> {
        let listening = match left {
            Some(left) => socket::adopt(left),
            None => socket::listen(&self.home, socket::COORDINATOR),
        };
        let opened = listening.and_then(|listener| {
            let again = listener.as_fd().try_clone_to_owned()?;
            let place = socket::identity(&self.home, socket::COORDINATOR).ok_or(io::ErrorKind::NotFound)?;
            self.socket = Some((place, again));
            UnixListener::from_std(listener)
        });
        match opened {
            Ok(listener) => Some(listener),
            Err(error) => {
                self.tell("the socket", Err(error));
                None
            }
        }
    }

    /// Our listener, for a successor.
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref().map(|(_, listener)| listener)
    }

    /// Makes anew what somebody removed or wrote over; a listener when the socket was lost.
    pub(crate) fn mend(&mut self) -> Option<UnixListener> {
        if let Some(discovery) =
            self.discovery.clone().filter(|ours| self.home.discovery().as_ref() != Some(ours))
        {
            self.publish(discovery);
        }
        let there = socket::identity(&self.home, socket::COORDINATOR);
        let is_ours = self.socket.as_ref().is_some_and(|(place, _)| Some(*place) == there);
        if is_ours { None } else { self.listen(None) }
    }

    /// Nobody finds us any more, unless a successor has taken our place already.
    pub(crate) fn withdraw(&mut self) {
        if let Some(discovery) = self.discovery.take() {
            singleton::withdraw(&self.home, &discovery.instance);
        }
        let there = socket::identity(&self.home, socket::COORDINATOR);
        if self.socket.take().is_some_and(|(place, _)| Some(place) == there) {
            socket::remove(&self.home, socket::COORDINATOR);
        }
    }

    fn tell(&mut self, what: &str, made: io::Result<()>) {
        match made {
            Ok(()) => self.is_told = false,
            Err(error) if !self.is_told => {
                self.is_told = true;
                warn!(
                    "cannot create {what}: {error}; retrying every second; free up disk space or make the state folder \
                     writable"
                );
            }
            Err(_) => {}
        }
    }
}
