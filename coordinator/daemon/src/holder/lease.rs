//! A coordinator's side: it finds the holder or starts one, and lets it go when it ends for good.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use baton_link::home::{HOME_VARIABLE, Home};
use baton_link::net::UnixStream;
use baton_link::{peer, socket, spawn};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

use super::{RELEASE, pass};

/// A holder that does not answer within this time is stopped, or no holder.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// What a holder has kept.
#[derive(Debug)]
pub struct Left {
    /// See [`Lease`].
    pub lease: Lease,
    /// The port.
    pub port: u16,
    /// They have been listening all the time.
    pub listeners: Vec<TcpListener>,
}

/// The holder knows that this coordinator lives as long as this does.
#[derive(Debug)]
pub struct Lease(UnixStream);

impl Lease {
    /// What the holder of this state folder keeps; `None` when there is no holder, or none that answers.
    pub async fn take(home: &Home) -> Option<Left> {
        timeout(ANSWER_TIMEOUT, take(home)).await.ok()?.ok()
    }

    /// Starts a holder for these listeners.
    pub fn start(home: &Home, port: u16, listeners: &[OwnedFd]) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let descriptors: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
        pass::send(&ours, port, &descriptors)?;
        let mut command = Command::new(program()?);
        command.arg("hold-port").env(HOME_VARIABLE, home.path()).current_dir("/");
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).stderr(Stdio::null());
        spawn::keep_descriptors();
        // It outlives us; the runtime reaps it when it does not.
        drop(command.spawn()?);
        ours.set_nonblocking(true)?;
        Ok(Self(UnixStream::from_std(ours)?))
    }

    /// Ends when the holder has ended.
    pub async fn gone(&mut self) {
        // It says nothing; an error is an end, too.
        let _ = self.0.read_u8().await;
    }

    /// Lets the port go: the user moved the coordinator.
    pub fn release(&self) {
        // One that has ended has let go.
        let _ = self.0.try_write(&[RELEASE]);
    }

    /// Lets the port go, and comes back when nobody but us listens on it: who connects to a listener that only the
    /// holder has left is reset when that ends.
    pub async fn end(mut self) {
        self.release();
        if timeout(ANSWER_TIMEOUT, self.gone()).await.is_err() {
            tracing::warn!("the process that holds the port did not release it");
        }
    }
}

/// The program of this process; the one that is installed beside it when it was replaced meanwhile.
fn program() -> io::Result<std::path::PathBuf> {
    let own = std::env::current_exe()?;
    if own.exists() { Ok(own) } else { spawn::program() }
}

async fn take(home: &Home) -> io::Result<Left> {
    let stream = socket::connect(home, socket::PORT_HOLDER).await?;
    if !peer::is_trusted_peer(&stream) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let (port, listeners) = stream.read_by(|stream| pass::receive(stream)).await?;
    let listeners: io::Result<Vec<TcpListener>> =
        listeners.into_iter().map(|listener| TcpListener::from_std(listener.into())).collect();
    Ok(Left { lease: Lease(stream), port, listeners: listeners? })
}
