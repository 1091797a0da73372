//! Where a coordinator answers: its port, its socket, and who keeps the port when it is killed.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use baton_control::PortRefused;
use baton_http::{End, Listeners};
use baton_link::explain::Explanation;
use baton_link::home::Home;
use baton_link::net::TcpListener;
use baton_link::process::{is_own_listener, port_owner};
use baton_proto::start::Handshake;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Daemon, remember::not_written};
use crate::app;
use crate::holder::Lease;
use crate::singleton::{self, BindError, PortChoice};

/// How often a taken port is tried again.
const BIND_EVERY: Duration = Duration::from_millis(500);

/// A process of ours that has the port is most often one that is about to end: a coordinator that was killed, its
/// holder. It is not named before it had the time to.
const OWN_PATIENCE: Duration = Duration::from_millis(1_500);

/// How often a process of ours that has the port is looked at.
const OWN_EVERY: Duration = Duration::from_millis(20);

/// A holder that ends at once is not started in a loop.
const HOLD_EVERY: Duration = Duration::from_secs(1);

/// After a change of the port, clients of the old one have this long to notice; their calls may take longer.
const OLD_PORT_GRACE: Duration = Duration::from_secs(60);

impl Daemon {
    /// Answers on one more port, which is the current one from now on.
    pub(super) fn serve(&mut self, port: u16, listeners: Vec<TcpListener>) {
        // Without them nobody can follow without a pause; everything else goes on.
        self.listeners = listeners.iter().filter_map(|one| one.as_fd().try_clone_to_owned().ok()).collect();
        let (shutdown, server) = self.answer_on(Listeners { ports: listeners, socket: None });
        self.servers.push((port, shutdown, server));
        self.ports.send_modify(|ports| ports.insert(0, port));
    }

    /// Answers on the socket in the state folder: our own, or what a predecessor left.
    pub(super) fn serve_socket(&mut self, left: Option<OwnedFd>) {
        let opened = match left {
            Some(left) => self.presence.listen(Some(left)),
            None => self.presence.mend(),
        };
        let Some(listener) = opened else { return };
        if let Some((shutdown, _)) = self.socket.take() {
            // Its name leads to the new one, or nowhere; those who are connected stay.
            shutdown.cancel();
        }
        self.socket = Some(self.answer_on(Listeners { ports: Vec::new(), socket: Some(listener) }));
    }

    fn answer_on(&self, listeners: Listeners) -> (CancellationToken, JoinHandle<()>) {
        let shutdown = self.closing.child_token();
        let end = End { shutdown: shutdown.clone(), closing: self.closing.clone() };
        let serving = app::serve(listeners, self.app.clone(), end);
        (shutdown, tokio::spawn(serving))
    }

    /// Sees to it that somebody keeps the port when we are killed.
    pub(super) fn hold_port(&mut self) {
        let now = Instant::now();
        let is_early = self.held_at.is_some_and(|at| now.duration_since(at) < HOLD_EVERY);
        let Some(port) = self.ports.borrow().first().copied().filter(|_| !is_early) else { return };
        if self.lease.is_some() {
            return;
        }
        self.held_at = Some(now);
        match Lease::start(&self.home, port, &self.listeners) {
            Ok(lease) => self.lease = Some(lease),
            Err(error) => warn!(%error, "cannot keep the port if this coordinator is killed"),
        }
    }

    /// The old URL answers until clients had time to learn the new one.
    pub(super) fn change_port(&mut self, port: u16) -> Result<(), PortRefused> {
        if self.ports.borrow().first() == Some(&port) {
            return Ok(());
        }
        let old = self.servers.last().map(|(port, shutdown, _)| (*port, shutdown.clone()));
        if self.ports.borrow().contains(&port) {
            let why = Explanation::new(format!("port {port} was in use until a moment ago"));
            return Err(PortRefused(why.with_hint("try again in a minute")));
        }
        let (port, listeners) = singleton::bind(port).map_err(|error| {
            let by = matches!(error, BindError::Taken { .. }).then(|| port_owner(port));
            let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
            PortRefused(Explanation::new(format!("{error}{by}")).with_hint("choose another port"))
        })?;
        // Written before it is in force: whoever comes after us would answer on the old one.
        let written = self.state.update_or_undo(|state| state.port = Some(port));
        written.map_err(|error| PortRefused(not_written("port", &error)))?;
        self.serve(port, listeners);
        if let Some(lease) = self.lease.take() {
            lease.release();
        }
        self.held_at = None;
        self.hold_port();
        info!(port, "now listening on another port");
        if let Some((old, shutdown)) = old {
            let ports = self.ports.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = sleep(OLD_PORT_GRACE) => {}
                    () = shutdown.cancelled() => {}
                }
                shutdown.cancel();
                ports.send_modify(|ports| ports.retain(|port| *port != old));
            });
        }
        Ok(())
    }
}

/// Listens on the port of our choice; as long as a stranger has it, says so once and keeps trying.
pub(super) async fn bind_patiently(
    home: &Home,
    choice: PortChoice,
    announce: &mut impl FnMut(Handshake),
) -> Result<(u16, Vec<TcpListener>), BindError> {
    let mut is_announced = false;
    let since = Instant::now();
    loop {
        match (choice.bind(), choice) {
            (Err(BindError::Taken { port }), PortChoice::Fixed(_))
                if is_own_listener(port) && since.elapsed() < OWN_PATIENCE =>
            {
                sleep(OWN_EVERY).await;
            }
            (Err(BindError::Taken { port }), PortChoice::Fixed(_)) => {
                if !is_announced {
                    is_announced = true;
                    let by = port_owner(port);
                    warn!(port, by, "the port is in use; retrying until it is free");
                    if let Err(error) = singleton::publish_waiting(home, port) {
                        warn!("cannot write waiting.json: {error}");
                    }
                    announce(Handshake::PortTaken { port, by });
                }
                sleep(BIND_EVERY).await;
            }
            (result, _) => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of ours has the port for so long; what is told of it, and that the port is ours in the end.
    async fn told_when_ours_lets_go_after(time: Duration) -> Vec<Handshake> {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path()).unwrap();
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = other.local_addr().unwrap().port();
        let mut told = Vec::new();
        let mut announce = |said| told.push(said);
        let let_go = async {
            sleep(time).await;
            drop(other);
        };
        let bind = bind_patiently(&home, PortChoice::Fixed(wanted), &mut announce);
        let (bound, ()) = tokio::join!(bind, let_go);
        assert_eq!(bound.unwrap().0, wanted);
        told
    }

    #[tokio::test(start_paused = true)]
    #[cfg(target_os = "linux")]
    async fn a_process_of_ours_that_is_about_to_let_go_of_the_port_is_not_named() {
        assert!(told_when_ours_lets_go_after(OWN_PATIENCE / 2).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_of_ours_that_keeps_the_port_is_named_once() {
        let told = told_when_ours_lets_go_after(OWN_PATIENCE * 3).await;
        assert!(matches!(told.as_slice(), [Handshake::PortTaken { .. }]), "{told:?}");
    }
}
