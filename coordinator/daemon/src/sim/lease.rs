//! The port of a simulated coordinator is kept when it is killed, for as long as a real holder would.

use std::io;
use std::os::fd::OwnedFd;

use baton_link::home::Home;
use baton_link::net::{self, TcpListener};

/// What was kept.
#[derive(Debug)]
pub struct Left {
    /// See [`Lease`].
    pub lease: Lease,
    /// The port.
    pub port: u16,
    /// They have been listening all the time.
    pub listeners: Vec<TcpListener>,
}

/// The port is kept over the sudden end of this coordinator.
#[derive(Debug)]
pub struct Lease {
    port: u16,
}

impl Lease {
    /// What is kept; `None` when nothing is.
    pub async fn take(_home: &Home) -> Option<Left> {
        let (port, listener) = net::kept()?;
        Some(Left { lease: Self { port }, port, listeners: vec![listener] })
    }

    /// Has the port kept from now on.
    pub fn start(_home: &Home, port: u16, _listeners: &[OwnedFd]) -> io::Result<Self> {
        net::keep(port);
        Ok(Self { port })
    }

    /// Never: what keeps the port does not end.
    pub async fn gone(&mut self) {
        std::future::pending().await
    }

    /// Lets the port go.
    pub fn release(&self) {
        net::let_go(self.port);
    }

    /// Lets the port go.
    pub async fn end(self) {
        self.release();
    }
}
