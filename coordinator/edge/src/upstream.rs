//! Connections to the windows' agents, and how long calls at each are waited for.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use baton_election::roster::{Address, Roster, Window};
use baton_http::sender::{Sender, Stream};
use baton_link::home::Home;
use baton_link::net::TcpStream;
use baton_link::{peer, socket};
use baton_proto::control::DRAIN_MS;
use baton_proto::discovery::Secret;
use baton_proto::ids::WindowId;
use http::header::HeaderValue;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long an idle connection to a window is used again; shorter than any server's own patience, so that a call
/// is not written to a connection that is being closed.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(4);
/// Idle connections kept for one window.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// How long connecting to a window on this host may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// All windows that calls were sent to.
pub(crate) struct Windows {
    secret: Secret,
    /// The state folder, in which the windows' sockets lie.
    home: Option<Home>,
    upstreams: Mutex<HashMap<WindowId, Arc<Upstream>>>,
    /// The coordinator ends now.
    pub(crate) cut: CancellationToken,
}

/// One run of one window's agent.
pub(crate) struct Upstream {
    incarnation: u64,
    address: Address,
    home: Option<Home>,
    pub(crate) authority: HeaderValue,
    pub(crate) bearer: HeaderValue,
    idle: Mutex<Vec<(Instant, Sender)>>,
    pub(crate) gone: CancellationToken,
    /// Ends the calls that were routed to the live window, a while after a handover.
    drained: Mutex<CancellationToken>,
    standing: Mutex<Standing>,
}

/// Where a window stands, as far as draining is concerned.
#[derive(Default)]
struct Standing {
    is_live: bool,
    /// Counts, so that the limit of an earlier handover does not end calls of a later one.
    n_handovers: u64,
}

impl Windows {
    pub(crate) fn new(secret: Secret, home: Option<Home>, cut: CancellationToken) -> Self {
        Self { secret, home, upstreams: Mutex::default(), cut }
    }

    /// Follows the roster: ends calls of windows that are gone, and starts the drain limit of one that handed
    /// over.
    pub(crate) fn on_roster(&self, roster: &Roster) {
        let mut upstreams = self.upstreams.lock();
        let live = roster.live_window().map(|(window, _)| window.id.clone());
        upstreams.retain(|id, upstream| {
            let is_there = roster.windows.get(id).is_some_and(|window| upstream.is_of(window));
            if !is_there {
                upstream.gone.cancel();
                return false;
            }
            upstream.on_live(live.as_ref() == Some(id));
            true
        });
    }

    /// Closes connections that have idled for so long that no call would be sent on them.
    pub(crate) fn close_idle(&self) {
        for upstream in self.upstreams.lock().values() {
            let mut idle = upstream.idle.lock();
            idle.retain(|(since, _)| since.elapsed() < IDLE_MAX);
        }
    }

    pub(crate) fn upstream(&self, window: &Window) -> Arc<Upstream> {
        let mut upstreams = self.upstreams.lock();
        if let Some(upstream) = upstreams.get(&window.id) {
            if upstream.is_of(window) {
                return upstream.clone();
            }
            upstream.gone.cancel();
        }
        let upstream = Arc::new(Upstream::new(window, &self.secret, self.home.clone()));
        upstreams.insert(window.id.clone(), upstream.clone());
        upstream
    }
}

impl Upstream {
    fn new(window: &Window, secret: &Secret, home: Option<Home>) -> Self {
        let (authority, incarnation) = match window.address {
            Address::Socket(_) => ("localhost".to_owned(), Some(window.incarnation)),
            Address::Port(port) => (format!("127.0.0.1:{port}"), Some(window.incarnation)),
            Address::OldPort(port) => (format!("127.0.0.1:{port}"), None),
        };
        let bearer = format!("Bearer {}", secret.window_token(&window.id, incarnation).expose());
        let value = |text: &str| HeaderValue::from_str(text).expect("invariant: digits, letters and dots");
        let gone = CancellationToken::new();
        let mut bearer = value(&bearer);
        bearer.set_sensitive(true);
        Self {
            incarnation: window.incarnation,
            address: window.address.clone(),
            home,
            authority: value(&authority),
            bearer,
            idle: Mutex::default(),
            drained: Mutex::new(gone.child_token()),
            gone,
            standing: Mutex::default(),
        }
    }

    /// What ends a call that is sent because this window is live, from now on.
    pub(crate) fn drained_as_live(&self) -> CancellationToken {
        self.standing.lock().is_live = true;
        self.drained.lock().clone()
    }

    fn is_of(&self, window: &Window) -> bool {
        self.incarnation == window.incarnation && self.address == window.address
    }

    fn on_live(self: &Arc<Self>, is_live: bool) {
        let mut standing = self.standing.lock();
        let was_live = std::mem::replace(&mut standing.is_live, is_live);
        if !was_live || is_live {
            return;
        }
        standing.n_handovers += 1;
        let (upstream, n_handovers) = (self.clone(), standing.n_handovers);
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(DRAIN_MS)) => upstream.on_drained(n_handovers),
                () = upstream.gone.cancelled() => {}
            }
        });
    }

    fn on_drained(&self, n_handovers: u64) {
        let standing = self.standing.lock();
        // A window that came back in the meantime keeps its calls.
        if !standing.is_live && standing.n_handovers == n_handovers {
            let fresh = self.gone.child_token();
            std::mem::replace(&mut *self.drained.lock(), fresh).cancel();
        }
    }

    /// A connection, and whether it was used before.
    pub(crate) async fn connection(&self) -> Result<(Sender, bool), &'static str> {
        loop {
            let idle = self.idle.lock().pop();
            let Some((since, mut sender)) = idle else { break };
            if since.elapsed() < IDLE_MAX && sender.is_usable().await {
                return Ok((sender, true));
            }
        }
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, self.connect()).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, address = ?self.address, "window refused a connection");
                return Err("connection refused");
            }
            Err(_) => return Err("timed out connecting"),
        };
        let sender = Sender::open(stream).await.map_err(|_| "connection refused")?;
        Ok((sender, false))
    }

    async fn connect(&self) -> io::Result<Stream> {
        match (&self.address, &self.home) {
            (Address::Socket(name), Some(home)) => Ok(Stream::Right(socket::connect(home, name).await?)),
            (Address::Socket(_), None) => Err(io::ErrorKind::NotFound.into()),
            (Address::Port(port) | Address::OldPort(port), _) => {
                let stream = TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, *port)).await?;
                // Another user may have taken the port of an agent that ended.
                peer::check_server(&stream).await?;
                // Nagle would hold back the second segment of a call.
                stream.set_nodelay(true)?;
                Ok(Stream::Left(stream))
            }
        }
    }

    pub(crate) fn keep(&self, sender: Sender) {
        let mut idle = self.idle.lock();
        if !sender.is_closed() && !self.gone.is_cancelled() && idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push((Instant::now(), sender));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baton_proto::control::WindowState;
    use baton_proto::discovery::KEY_LEN;
    use baton_proto::ids::Term;

    use super::*;
    use crate::route::tests::{roster, window};

    #[tokio::test(start_paused = true)]
    async fn calls_of_a_window_that_handed_over_have_the_drain_limit() {
        let windows = Windows::new(Secret::new([1; KEY_LEN]), None, CancellationToken::new());
        let mut roster = roster();
        let upstream = windows.upstream(&window("a", WindowState::Live));
        windows.on_roster(&roster);
        let running = upstream.drained.lock().clone();
        let to = |id: &str, seq| Some((id.parse().unwrap(), Term { generation: 1, seq }));

        // It hands over and comes back in time: its calls go on, and the next handover has a limit of its own.
        roster.live = to("b", 2);
        windows.on_roster(&roster);
        tokio::time::sleep(Duration::from_millis(DRAIN_MS - 1000)).await;
        roster.live = to("a", 3);
        windows.on_roster(&roster);
        roster.live = to("b", 4);
        windows.on_roster(&roster);
        tokio::time::sleep(Duration::from_millis(DRAIN_MS - 1)).await;
        assert!(!running.is_cancelled());
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(running.is_cancelled() && !upstream.gone.is_cancelled());
        assert!(!upstream.drained.lock().is_cancelled(), "later calls have a limit of their own");
    }

    #[tokio::test]
    async fn another_run_of_an_agent_is_another_upstream() {
        let windows = Windows::new(Secret::new([1; KEY_LEN]), None, CancellationToken::new());
        let mut roster = roster();
        let first = windows.upstream(&window("a", WindowState::Live));
        let mut again = window("a", WindowState::Live);
        again.incarnation = 2;
        roster.windows.insert(again.id.clone(), Arc::new(again.clone()));
        windows.on_roster(&roster);
        assert!(first.gone.is_cancelled());
        let second = windows.upstream(&again);
        assert!(!second.gone.is_cancelled() && !Arc::ptr_eq(&first, &second));
    }
}
