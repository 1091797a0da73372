//! `baton serve`: run the coordinator, in the foreground or for whoever needed one.

use std::fs::OpenOptions;
use std::future::poll_fn;
use std::task::Poll;

use baton_daemon::daemon::{self, Options, RunError};
use baton_daemon::succession;
use baton_link::home::Home;
use baton_link::logging::LastWords;
use baton_link::spawn::{PORT_ALIAS, port_of_env};
use baton_proto::start::{EXIT_ALREADY_RUNNING, Handshake};
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::network::{self, NetworkOptions};
use super::outcome::{Done, Failed, exit};
use super::output;
use super::reach::{parse_port, url};
use crate::logging;

/// Descriptors that the coordinator asks for: each window takes three, each client one or two, and many systems
/// allow a process no more than 256 or 1024 unless it asks.
const DESCRIPTORS: u64 = 8_192;

#[derive(Debug, Args)]
#[command(after_help = "\
With --listen this process stands before the coordinator: it starts one if needed, and survives its end and its replacement.
It refuses anyone who comes from no network of --allow, speaks no TLS, calls it by a name that is not in the certificate,
or does not show the client token; nothing but /mcp is there. A certificate that is renewed is used within seconds.")]
pub(crate) struct Serve {
    /// Port to listen on (0 for any free port); remembered for later starts
    #[arg(long, env = "BATON_PORT", value_parser = parse_port)]
    port: Option<u16>,
    /// Port for a state folder that knows none: the one that agents remember
    #[arg(long, hide = true, value_parser = parse_port)]
    fallback_port: Option<u16>,
    /// Leave the terminal, and say on standard output how the start went
    #[arg(long, hide = true)]
    detached: bool,
    /// Follow the coordinator that started this one, on the lock and the listeners it hands over
    #[arg(long, hide = true, requires = "detached")]
    inherit: bool,
    #[command(flatten)]
    network: NetworkOptions,
}

/// The port by the name that another tool gives it.
fn port_of_alias() -> Result<Option<u16>, Failed> {
    let Some(text) = port_of_env() else { return Ok(None) };
    let port = parse_port(&text);
    port.map(Some).map_err(|why| Failed::new(exit::USAGE, format!("{PORT_ALIAS} is '{text}': {why}")))
}

pub(super) async fn run(mut serve: Serve) -> Done {
    if serve.detached {
        // It fails only for a leader of a process group, who has left the terminal already.
        let _ = rustix::process::setsid();
    }
    // Whatever is created from here on is for this user alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    if let Some(wanted) = std::mem::take(&mut serve.network).wanted() {
        raise_descriptor_limit();
        return network::run(wanted, serve.port, ending_signal()).await;
    }
    let _told = LastWords;
    let home = match Home::from_env() {
        Ok(home) => home,
        Err(error) => return Err(fail(&serve, error.into())),
    };
    logging::start_daemon(&home, !serve.detached);
    raise_descriptor_limit();
    let inheritance = match serve.inherit.then(succession::receive).transpose() {
        Ok(inheritance) => inheritance,
        Err(error) => return Err(fail(&serve, Failed::new(exit::UNAVAILABLE, error.to_string()))),
    };
    let port = match serve.port.map_or_else(port_of_alias, |port| Ok(Some(port))) {
        Ok(port) => port,
        Err(failed) => return Err(fail(&serve, failed)),
    };
    let options = Options { home, port, fallback_port: serve.fallback_port, inheritance };
    let announce =
        |handshake: Handshake| if serve.detached { shake_hands(&handshake) } else { tell(&handshake) };
    daemon::run(options, announce, ending_signal()).await.map_err(|error| fail(&serve, error.into()))
}

impl From<RunError> for Failed {
    fn from(error: RunError) -> Self {
        let code = match &error {
            RunError::AlreadyRunning => EXIT_ALREADY_RUNNING.try_into().unwrap_or(exit::ALREADY_RUNNING),
            RunError::Stopped | RunError::Home(_) | RunError::Lock(_) | RunError::Bind(_) => {
                exit::UNAVAILABLE
            }
        };
        Self::from_error(code, &error, error.hint())
    }
}

/// Up to what the system lets us have; with less the accept loop pauses when they run out.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(DESCRIPTORS, |maximum| maximum.min(DESCRIPTORS));
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }) {
        tracing::warn!(%error, "cannot raise the open file limit");
    }
}

/// A detached coordinator has nobody to tell but whoever waits for its handshake.
fn fail(serve: &Serve, failed: Failed) -> Failed {
    // To have lost a race is nothing that a person must act on.
    if failed.code != exit::ALREADY_RUNNING {
        tracing::error!("{}", failed.why);
    }
    if !serve.detached {
        return failed;
    }
    shake_hands(&match failed.code {
        exit::ALREADY_RUNNING => Handshake::AlreadyRunning,
        _ => Handshake::Error { message: failed.why.message, hint: failed.why.hint },
    });
    Failed::silently(failed.code)
}

/// The first handshake is the only one: afterwards standard output leads nowhere.
fn shake_hands(handshake: &Handshake) {
    output::line(serde_json::to_string(handshake).unwrap_or_default());
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        // Should it fail, the starter sees no end of the pipe, but it reads one line only.
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

fn tell(handshake: &Handshake) {
    match handshake {
        Handshake::Ready { port } => output::line(format!("Baton is running at {}", url(*port))),
        Handshake::PortTaken { port, by } => {
            output::warning(format!("waiting for port {port}, which is in use by {by}"));
            output::hint("stop that program, or choose another port with `baton serve --port N`");
        }
        Handshake::AlreadyRunning | Handshake::Error { .. } => {}
    }
}

/// Ends with SIGTERM, SIGINT, or the end of the terminal, from now on.
fn ending_signal() -> impl Future<Output = ()> {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut signals: Vec<Signal> = Vec::new();
    for kind in kinds {
        match signal(kind) {
            Ok(signal) => signals.push(signal),
            Err(error) => tracing::warn!("cannot listen for signals: {error}"),
        }
    }
    poll_fn(move |cx| {
        let is_there = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if is_there { Poll::Ready(()) } else { Poll::Pending }
    })
}
