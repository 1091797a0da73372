//! Where an agent is called: on a Unix socket in the state folder, which nobody but this user can reach or take; on a
//! loopback port where there can be no such socket, or for a coordinator that knows none.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use baton_link::home::{Home, random_hex};
use baton_link::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use baton_link::{peer, socket};
use baton_proto::ids::WindowId;
use tokio::time::MissedTickBehavior;
use tokio_util::either::Either;
use tracing::warn;

use super::Server;

/// Oldest control protocol whose coordinators know sockets.
const SOCKETS_SINCE: u32 = 2;
/// How often it is looked whether the socket is still there.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub struct Listening {
    server: Server,
    /// Name of the socket.
    socket: Option<String>,
    /// The port that is asked for, 0 for any.
    wanted_port: u16,
    port: Option<u16>,
}

/// What a coordinator is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A loopback port, or 0.
    pub port: u16,
    /// A name in the folder of the sockets.
    pub socket: Option<String>,
}

impl Listening {
    /// Serves on a socket of its own from now on, and on a port when one is asked for.
    pub fn open(home: &Home, window: &WindowId, wanted_port: u16, server: Server) -> io::Result<Self> {
        let nonce = random_hex()?;
        let name = format!("{}{window}-{}", socket::WINDOW_PREFIX, &nonce[..8]);
        let socket = match Socket::listen(home, &name) {
            Ok(socket) => {
                server.runtime.spawn(server.clone().serve(Listener::Socket(socket)));
                Some(name)
            }
            Err(error) => {
                warn!(%error, "no socket in the state folder; this window serves on a port");
                None
            }
        };
        let mut listening = Self { server, socket, wanted_port, port: None };
        if wanted_port != 0 {
            listening.port()?;
        }
        Ok(listening)
    }

    /// Serves on a port alone.
    pub fn on_port(wanted_port: u16, server: Server) -> io::Result<(Self, u16)> {
        let mut listening = Self { server, socket: None, wanted_port, port: None };
        let port = listening.port()?;
        Ok((listening, port))
    }

    /// What is served on now.
    pub fn current(&self) -> Address {
        Address { port: self.port.unwrap_or(0), socket: self.socket.clone() }
    }

    /// Where a coordinator calls this agent that speaks control protocols up to `newest`.
    pub fn address(&mut self, newest: u32) -> io::Result<Address> {
        match &self.socket {
            Some(socket) if newest >= SOCKETS_SINCE => Ok(Address { port: 0, socket: Some(socket.clone()) }),
            _ => Ok(Address { port: self.port()?, socket: None }),
        }
    }

    /// Whether the token of one incarnation is what a coordinator presents that speaks protocols up to `newest`.
    pub fn knows_incarnations(newest: u32) -> bool {
        newest >= SOCKETS_SINCE
    }

    /// The port that is served on, from now on if not before.
    pub fn port(&mut self) -> io::Result<u16> {
        if let Some(port) = self.port {
            return Ok(port);
        }
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, self.wanted_port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let _inside = self.server.runtime.enter();
        let listener = Listener::Port(TcpListener::from_std(listener)?, port);
        self.server.runtime.spawn(self.server.clone().serve(listener));
        self.port = Some(port);
        Ok(port)
    }
}

/// What an agent listens on.
pub(super) enum Listener {
    Socket(Socket),
    Port(TcpListener, u16),
}

/// What it accepts.
pub(super) type Stream = Either<TcpStream, UnixStream>;

impl Listener {
    /// The names by which it may be called in a request's Host.
    pub(super) fn authorities(&self) -> Vec<String> {
        match self {
            Self::Socket(_) => vec!["localhost".to_owned()],
            Self::Port(_, port) => vec![format!("127.0.0.1:{port}"), format!("localhost:{port}")],
        }
    }

    /// The next connection of this user; those of others are closed unheard.
    pub(super) async fn accept(&mut self) -> io::Result<Stream> {
        loop {
            let stream = match self {
                Self::Socket(socket) => Either::Right(socket.accept().await?),
                Self::Port(listener, _) => Either::Left(listener.accept().await?.0),
            };
            let is_trusted = match &stream {
                Either::Left(stream) => stream.set_nodelay(true).is_ok() && peer::is_trusted_peer(stream),
                Either::Right(stream) => peer::is_trusted_peer(stream),
            };
            if is_trusted {
                return Ok(stream);
            }
        }
    }
}

/// A socket that comes back when somebody removes it.
pub(super) struct Socket {
    home: Home,
    name: String,
    listener: UnixListener,
    place: Option<(u64, u64)>,
    look: tokio::time::Interval,
}

impl Socket {
    fn listen(home: &Home, name: &str) -> io::Result<Self> {
        let listener = UnixListener::from_std(socket::listen(home, name)?)?;
        let place = socket::identity(home, name);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self { home: home.clone(), name: name.to_owned(), listener, place, look })
    }

    async fn accept(&mut self) -> io::Result<UnixStream> {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => return Ok(accepted?.0),
                _ = self.look.tick() => self.mend(),
            }
        }
    }

    fn mend(&mut self) {
        if socket::identity(&self.home, &self.name) == self.place {
            return;
        }
        // The folder may be gone as well, until the next coordinator makes it; then it is tried again.
        let again = self.home.check().map_err(io::Error::other);
        let again = again.and_then(|()| UnixListener::from_std(socket::listen(&self.home, &self.name)?));
        if let Ok(listener) = again {
            self.listener = listener;
            self.place = socket::identity(&self.home, &self.name);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.place.is_some() && socket::identity(&self.home, &self.name) == self.place {
            socket::remove(&self.home, &self.name);
        }
    }
}
