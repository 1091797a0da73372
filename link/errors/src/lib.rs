//! Errors of a process of Baton, told to a service that speaks Sentry's protocol, when the user names one.
//!
//! Off unless the setting `error_dsn` says where: until then nothing of this runs, and no thread is there. What is told is
//! what the log says at level `error`, panics among it, without what is the user's: see [`scrubbed`]. There is no name of a
//! machine, a user or a window in it, no text that a client wrote, and no trace of what happened before.
//!
//! By the crate `sentry`, with none of its integrations: each of them tells more than we want to. Its requests are made on
//! a thread of its own, so that a service that hangs holds up nobody.
//!
//! | module | what |
//! |---|---|
//! | `scrub` | CORE: a text without what is the user's |

mod scrub;

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_link::logging;
use parking_lot::Mutex;
use sentry::protocol::{Event, Level};
use sentry::types::{Dsn, Scheme};
use sentry::{Client, ClientOptions};

pub use scrub::scrubbed;

/// Most errors of a process that are told within [`SPAN`]: what goes wrong all the time need not be told all the time.
const MAX_TOLD: u32 = 20;
/// See [`MAX_TOLD`].
const SPAN: Duration = Duration::from_secs(60 * 60);
/// How long a process that ends waits for what it has told to be sent.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Which process it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// The coordinator.
    Coordinator,
    /// The agent of a window.
    Window,
}

/// From now on the errors that this process logs are told to whom the settings name.
pub fn install(process: Process) {
    logging::tell_errors(Box::new(Reporter { process, told: Mutex::default() }));
}

/// Why a text cannot be the setting: it is neither empty nor a DSN.
pub fn check(dsn: &str) -> Result<(), String> {
    if dsn.is_empty() || Dsn::from_str(dsn).is_ok() {
        return Ok(());
    }
    Err("give the DSN that the service shows, as https://KEY@HOST/PROJECT; empty for none".to_owned())
}

/// Tells errors.
struct Reporter {
    process: Process,
    told: Mutex<Told>,
}

/// To whom, and how much was told lately.
#[derive(Default)]
struct Told {
    /// As the settings say it; none as long as they have not been read.
    dsn: Option<String>,
    client: Option<Arc<Client>>,
    /// When the present span began, and what was told in it.
    since: Option<Instant>,
    n_told: u32,
}

impl Told {
    /// Whether one more may be told now.
    fn takes_one(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= SPAN) {
            (self.since, self.n_told) = (Some(now), 0);
        }
        self.n_told += 1;
        self.n_told <= MAX_TOLD
    }
}

impl Reporter {
    fn send(&self, client: &Client, level: Level, part: &str, text: &str) {
        let event = Event {
            level,
            message: Some(scrubbed(text)),
            logger: Some(part.to_owned()),
            environment: Some(match self.process {
                Process::Coordinator => "coordinator".into(),
                Process::Window => "window".into(),
            }),
            ..Event::default()
        };
        client.capture_event(event, None);
    }
}

impl logging::Errors for Reporter {
    fn aim(&self, dsn: &str) {
        let mut told = self.told.lock();
        if told.dsn.as_deref() == Some(dsn) {
            return;
        }
        let is_start = told.dsn.replace(dsn.to_owned()).is_none();
        let earlier = std::mem::replace(&mut told.client, client(dsn));
        let current = told.client.clone();
        drop(told);
        // Outside: it may take a moment to end.
        drop(earlier);
        if let Some(client) = current.filter(|_| !is_start && self.process == Process::Coordinator) {
            // So that whoever switches it on sees that it works.
            self.send(
                &client,
                Level::Info,
                env!("CARGO_PKG_NAME"),
                "errors of Baton are told here from now on",
            );
        }
    }

    fn tell(&self, part: &str, text: &str) {
        let mut told = self.told.lock();
        let Some(client) = told.client.clone() else { return };
        if told.takes_one(Instant::now()) {
            drop(told);
            self.send(&client, Level::Error, part, text);
        }
    }

    fn flush(&self) {
        let client = self.told.lock().client.clone();
        if let Some(client) = client {
            client.flush(Some(LAST_WORDS));
        }
    }
}

fn client(dsn: &str) -> Option<Arc<Client>> {
    let dsn = Dsn::from_str(dsn).ok()?;
    let is_plain = dsn.scheme() == Scheme::Http;
    let mut options = ClientOptions::default();
    options.dsn = Some(dsn);
    options.release = Some(concat!("baton@", env!("CARGO_PKG_VERSION")).into());
    options.default_integrations = false;
    options.shutdown_timeout = Duration::ZERO;
    let mut options = sentry::apply_defaults(options);
    // Whatever the environment says: a certificate is looked at.
    options.accept_invalid_certs = false;
    if is_plain {
        // On this machine, or in a network that the user trusts: no proxy stands between.
        options.http_proxy = None;
    }
    Some(Arc::new(Client::with_options(options)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dsn_is_checked_and_nothing_is_one_too() {
        for right in
            ["", "https://abc@errors.example/4", "http://k@127.0.0.1:9000/1", "https://k@h.example/a/b/7"]
        {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for wrong in ["x", "https://errors.example/4", "ftp://k@h.example/1", "https://k@h.example/"] {
            assert!(check(wrong).unwrap_err().starts_with("give the DSN"), "{wrong}");
        }
    }

    #[test]
    fn what_goes_wrong_all_the_time_is_not_told_all_the_time() {
        let (mut told, start) = (Told::default(), Instant::now());
        let n_taken = (0..100).filter(|n| told.takes_one(start + Duration::from_secs(*n))).count();
        assert_eq!(n_taken, MAX_TOLD as usize);
        assert!(told.takes_one(start + SPAN), "the next hour is another one");
    }
}
