//! The page: which window is live and why, what happened, who calls what; and what a person can do about it.
//!
//! It is one document with its style and its script, made of nothing but what stands in `assets`: no build step, no
//! framework, nothing from a network. It lives by server-sent events ([`baton_proto::page`]). Who may see it is
//! decided before, by [`baton_http::guard`]; only the one-time link is looked at here.
//!
//! **Invariant:** whatever it shows of clients and windows is text to the browser, and never markup. It shows no argument
//! of a call unless the user sets `show_arguments`, and no answer unless the user has the events of streams kept.
//!
//! | module | what it does |
//! |---|---|
//! | [`holdings`] | what windows hold: breakpoints, adapters, language servers |
//! | [`journal`] | the calls: those that run, and the last thousand |
//! | `story` | what happened to the windows |
//! | `overview` | all that there is to see, at one moment |
//! | `events` | the stream of an open page |
//! | `logs` | lines of the log |
//! | `assets` | the document, its style and its script |
//! | [`streams`] | the events of streams to clients |

mod assets;
mod events;
pub mod holdings;
pub mod journal;
mod logs;
mod overview;
mod story;
pub mod streams;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::SystemTime;

use baton_election::keeper::{Keeper, KeeperError};
use baton_http::Admitted;
use baton_http::body::Body;
use baton_http::guard::{OPEN, PAGE_COOKIE};
use baton_http::passes::{PAGE_LIFE, Passes};
use baton_http::respond;
use baton_proto::control::{Outcome, RawWish};
use baton_proto::ids::WindowId;
use baton_proto::page::{Look, Overview};
use http::header::{self, HeaderValue};
use http::{Method, Response, StatusCode};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use assets::HTML;
use events::Stream;
use holdings::Holdings;
use journal::Journal;
use story::Story;
use streams::Streams;

/// Calls that one answer of older ones has.
const OLDER: usize = 100;

/// The page of one coordinator; cheap to clone.
#[derive(Clone, Debug)]
pub struct Page(Arc<Shared>);

/// What a page shows beside the windows.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The calls.
    pub journal: Arc<Journal>,
    /// What windows hold.
    pub holdings: Holdings,
    /// The folder of the log files.
    pub logs: Option<PathBuf>,
    /// The events of streams to clients.
    pub streams: Streams,
}

#[derive(Debug)]
struct Shared {
    keeper: Keeper,
    passes: Passes,
    /// Those that answer, the current one first.
    ports: watch::Receiver<Vec<u16>>,
    journal: Arc<Journal>,
    holdings: Holdings,
    logs: Option<PathBuf>,
    streams: Streams,
    story: watch::Receiver<Arc<Story>>,
    since: SystemTime,
    /// Streams that are open.
    n_streams: Arc<AtomicUsize>,
    closing: CancellationToken,
}

impl Page {
    /// A page of the windows of `keeper` and what was `seen` of them, on the runtime it is called in. Its streams end with
    /// `closing`.
    pub fn new(
        keeper: Keeper,
        passes: Passes,
        ports: watch::Receiver<Vec<u16>>,
        seen: Seen,
        closing: CancellationToken,
    ) -> Self {
        let story = story::follow(keeper.watch(), closing.clone());
        let since = SystemTime::now();
        let n_streams = Arc::default();
        let Seen { journal, holdings, logs, streams } = seen;
        Self(Arc::new(Shared {
            keeper,
            passes,
            ports,
            journal,
            holdings,
            logs,
            streams,
            story,
            since,
            n_streams,
            closing,
        }))
    }

    /// An address of the page that a browser on this machine can open once.
    pub fn link(&self) -> String {
        let link = self.0.passes.link(Instant::now());
        format!("http://{}:{}{OPEN}{}", self.0.passes.host(), self.port(), link.expose())
    }

    /// What windows hold.
    pub fn holdings(&self) -> &Holdings {
        &self.0.holdings
    }

    /// All that there is to see but the calls.
    pub(crate) fn overview(&self) -> Overview {
        overview::overview(&self.0, self.port())
    }

    /// All that there is to see at this moment.
    pub fn look(&self) -> Look {
        Look { overview: self.overview(), calls: self.0.journal.changed_after(0, OLDER).0 }
    }

    fn port(&self) -> u16 {
        self.0.ports.borrow().first().copied().unwrap_or_default()
    }

    /// Answers a request that the guard let in.
    pub async fn answer(&self, admitted: Admitted) -> Response<Body> {
        let Admitted { parts, .. } = admitted;
        let path = parts.uri.path();
        if let Some(link) = path.strip_prefix(OPEN) {
            return self.open(link);
        }
        if parts.method == Method::POST {
            return self.command(path).await;
        }
        if parts.method != Method::GET {
            return respond::plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
        }
        let query = parts.uri.query();
        match path {
            "/events" => {
                Stream::open(self).map_or_else(too_many, |stream| respond::events(Body::stream(stream.run())))
            }
            "/calls" => self.older(query.and_then(|query| query.strip_prefix("before=")?.parse().ok())),
            "/logs" => match logs::lines(self.0.logs.clone(), query.unwrap_or_default()).await {
                Some(lines) => json(StatusCode::OK, &lines),
                None => respond::empty(StatusCode::NO_CONTENT),
            },
            "/streams" => {
                let after = query.and_then(|query| query.strip_prefix("after=")?.parse().ok());
                self.streams(RawWish { on: None, after: after.unwrap_or_default() })
            }
            "/" => {
                let epoch = self.0.keeper.roster().client_epoch;
                let mut cookies = baton_http::guard::cookies(&parts.headers);
                let form = cookies.find_map(|cookie| self.0.passes.form(cookie, epoch, Instant::now()));
                // It has expired since the guard looked.
                let Some(form) = form else { return respond::closed() };
                assets::document(form.expose())
            }
            _ => assets::asset(path, &parts.headers)
                .unwrap_or_else(|| respond::plain(StatusCode::NOT_FOUND, "not found\n")),
        }
    }

    /// Takes a link, and has the browser go on to the page: as a step of its own, which begins here, so that it shows
    /// the cookie wherever the person came from.
    fn open(&self, link: &str) -> Response<Body> {
        const GO_ON: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Baton</title>\n\
                             <link rel=\"icon\" href=\"/icon.svg\">\
                             <meta http-equiv=\"refresh\" content=\"0;url=/\"><a href=\"/\">Baton</a>\n";
        let epoch = self.0.keeper.roster().client_epoch;
        let Some(cookie) = self.0.passes.redeem(link.as_bytes(), epoch, Instant::now()) else {
            return respond::closed();
        };
        let mut response = respond::document(StatusCode::OK, HTML, GO_ON);
        let (cookie, life) = (cookie.expose(), PAGE_LIFE.as_secs());
        let cookie = format!("{PAGE_COOKIE}={cookie}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Does what the person wants: to a window, `/windows/ID/VERB`, or with the events of streams.
    async fn command(&self, path: &str) -> Response<Body> {
        match path {
            "/streams/on" => return self.streams(RawWish { on: Some(true), after: 0 }),
            "/streams/off" => return self.streams(RawWish { on: Some(false), after: 0 }),
            _ => {}
        }
        let words: Vec<&str> = path.split('/').collect();
        let ["", "windows", id, verb] = words[..] else { return unknown() };
        let Ok(id) = id.parse::<WindowId>() else { return unknown() };
        let keeper = &self.0.keeper;
        let done: Result<Outcome, KeeperError> = match verb {
            "take" => keeper.take(id).await,
            "stop" => keeper.stop(id).await,
            "restart" => keeper.restart(id).await,
            _ => return unknown(),
        };
        match done {
            Ok(outcome) => json(StatusCode::OK, &outcome),
            Err(error) => json(StatusCode::CONFLICT, &json!({ "message": error.to_string() })),
        }
    }

    fn streams(&self, wish: RawWish) -> Response<Body> {
        json(StatusCode::OK, &self.0.streams.look(&wish))
    }

    /// The calls before that change, the latest first.
    fn older(&self, before: Option<u64>) -> Response<Body> {
        json(StatusCode::OK, &self.0.journal.done_before(before.unwrap_or(u64::MAX), OLDER))
    }
}

fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Body> {
    let text = serde_json::to_vec(value).unwrap_or_default();
    respond::document(status, "application/json", text)
}

fn unknown() -> Response<Body> {
    json(StatusCode::NOT_FOUND, &json!({ "message": "unknown window or command" }))
}

fn too_many() -> Response<Body> {
    respond::plain(StatusCode::SERVICE_UNAVAILABLE, "too many open pages; close some\n")
}

/// A moment of the monotonic clock as one of the wall clock, in milliseconds since 1970.
fn to_ms(at: Instant) -> u64 {
    SystemTime::now().checked_sub(at.elapsed()).map_or(0, since_1970)
}

fn since_1970(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
