//! The process: `baton hold-port`, started by a coordinator with the listeners at its standard input.
//!
//! One thread and no runtime: it waits for one of a few sockets, and costs next to nothing.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use baton_link::home::Home;
use baton_link::{peer, socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{RELEASE, pass};

/// How long the port is kept without a coordinator: windows start the next one within a second.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether this process can still be found.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// Coordinators at once: the one that runs, its successor, and starters that lose a race.
const LEASES_MAX: usize = 64;

/// Holds the port until a coordinator releases it, none has come for a while, or nobody can find this process.
pub fn run(home: &Home) -> io::Result<()> {
    let (port, listeners) = pass::receive(rustix::stdio::stdin())?;
    // It keeps no terminal, no pipe and no folder of whoever started it.
    let _ = rustix::process::setsid();
    let first = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    let listener = socket::listen(home, socket::PORT_HOLDER)?;
    let place = socket::identity(home, socket::PORT_HOLDER);
    let holder = Holder { port, listeners, listener, leases: vec![first] };
    holder.hold(|| socket::identity(home, socket::PORT_HOLDER) == place);
    if socket::identity(home, socket::PORT_HOLDER) == place {
        socket::remove(home, socket::PORT_HOLDER);
    }
    Ok(())
}

struct Holder {
    port: u16,
    listeners: Vec<OwnedFd>,
    listener: UnixListener,
    /// One for each coordinator that lives.
    leases: Vec<UnixStream>,
}

impl Holder {
    fn hold(mut self, is_to_be_found: impl Fn() -> bool) {
        let mut last_lease = Instant::now();
        while is_to_be_found() {
            if !self.leases.is_empty() {
                last_lease = Instant::now();
            } else if last_lease.elapsed() >= PATIENCE {
                return;
            }
            let ready = {
                let all = std::iter::once(self.listener.as_fd()).chain(self.leases.iter().map(AsFd::as_fd));
                let mut waits: Vec<PollFd<'_>> =
                    all.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)).collect();
                // An interrupted wait is one that found nothing.
                let _ = poll(&mut waits, Some(&LOOK_EVERY));
                waits.iter().map(|wait| !wait.revents().is_empty()).collect::<Vec<_>>()
            };
            if self.is_released(&ready[1..]) {
                return;
            }
            if ready[0] {
                self.admit();
            }
        }
    }

    /// Lets go of coordinators that have ended; true when one of them says that the port is to be free.
    fn is_released(&mut self, ready: &[bool]) -> bool {
        let mut is_released = false;
        let mut ready = ready.iter();
        self.leases.retain_mut(|lease| {
            let mut said = [0; 1];
            match ready.next() {
                Some(true) => match lease.read(&mut said) {
                    Ok(1) => {
                        is_released |= said[0] == RELEASE;
                        true
                    }
                    Err(error) => error.kind() == io::ErrorKind::WouldBlock,
                    Ok(_) => false,
                },
                _ => true,
            }
        });
        is_released
    }

    /// A coordinator wants the port.
    fn admit(&mut self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        let descriptors: Vec<_> = self.listeners.iter().map(AsFd::as_fd).collect();
        let is_admitted = peer::is_trusted_peer(&stream)
            && self.leases.len() < LEASES_MAX
            && stream.set_nonblocking(true).is_ok()
            && pass::send(&stream, self.port, &descriptors).is_ok();
        if is_admitted {
            self.leases.push(stream);
        }
    }
}
