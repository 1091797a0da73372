//! Proven connections to the coordinator, and requests on them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_link::connection::Connection;
use baton_link::find::{self, FindError, FindOptions};
use baton_proto::discovery::Role;
use baton_proto::edge::{BOUND_HEADER, HEARD_HEADER, PORT_HEADER};
use baton_proto::percent;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;

use crate::{Options, Stand};

/// Idle connections that are kept.
const IDLE_MAX: usize = 8;
/// How often it is looked whether a coordinator that has not answered yet does anything at all.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Where messages go.
pub(super) struct Upstream {
    find: FindOptions,
    target: String,
    stand: Option<Stand>,
    /// What the edge said of our window, and wants to be told again.
    remembered: Mutex<HeaderMap>,
    idle: Mutex<Vec<Connection>>,
    /// One search at a time: the others find what it found.
    search: tokio::sync::Mutex<()>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum SendError {
    /// Nothing was sent: there is no coordinator, and why.
    NoCoordinator(FindError),
    /// The connection ended; it may have been carried out.
    Lost,
}

/// An answer whose body is still to come on its connection.
pub(super) struct Incomplete {
    pub(super) response: Response<Incoming>,
    pub(super) connection: Connection,
}

impl Upstream {
    pub(super) fn new(options: Options) -> Self {
        let target = match &options.window {
            Some(window) => format!("/mcp/windows/{}", percent::encode(window)),
            None => "/mcp".to_owned(),
        };
        let heard = (HeaderName::from_static(HEARD_HEADER), HeaderValue::from_static(""));
        Self {
            find: options.find,
            target,
            stand: options.stand,
            remembered: Mutex::new(HeaderMap::from_iter([heard])),
            idle: Mutex::default(),
            search: tokio::sync::Mutex::default(),
        }
    }

    /// Sends a request with a body of JSON, on an idle connection or a new one.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: &HeaderMap,
        body: Bytes,
        may_start: bool,
    ) -> Result<Incomplete, SendError> {
        let mut connection = self.connection(may_start).await.map_err(SendError::NoCoordinator)?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.target.parse().unwrap_or_else(|_| http::Uri::from_static("/mcp"));
        let own = request.headers_mut();
        own.clone_from(headers);
        own.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        own.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        own.extend(self.remembered.lock().unwrap_or_else(PoisonError::into_inner).clone());
        if let Some(stand) = &self.stand {
            stand.describe(own);
        }
        let response = self.unless_hung(connection.send(request)).await.ok_or(SendError::Lost)?;
        let response = response.map_err(|error| {
            tracing::debug!(%error, "the coordinator exited");
            SendError::Lost
        })?;
        self.remember(response.headers());
        Ok(Incomplete { response, connection })
    }

    /// Keeps what the coordinator said of its port and the edge of our window. The window that a client was answered by
    /// first stays its own.
    fn remember(&self, told: &HeaderMap) {
        let port = told.get(PORT_HEADER).and_then(|port| port.to_str().ok()?.parse().ok());
        if let Some(port) = port {
            self.find.home.remember_port(port);
        }
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(heard) = told.get(HEARD_HEADER) {
            remembered.insert(HeaderName::from_static(HEARD_HEADER), heard.clone());
        }
        if let Some(bound) = told.get(BOUND_HEADER) {
            remembered.entry(HeaderName::from_static(BOUND_HEADER)).or_insert_with(|| bound.clone());
        }
    }

    /// Waits for what the coordinator is to say, which may take as long as a call takes; `None` when it was stopped or
    /// hangs. The next request ends it then, and starts another.
    pub(super) async fn unless_hung<T>(&self, said: impl Future<Output = T>) -> Option<T> {
        let hung = async {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                if let Err(FindError::Hung { .. }) = find::find(&self.find.home).await {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            said = said => Some(said),
            () = hung => {
                tracing::warn!("the coordinator is not responding");
                self.forget();
                None
            }
        }
    }

    /// A connection may be used again once its answer is complete.
    pub(super) fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }

    /// Forgets idle connections, for instance because their token is no longer good.
    pub(super) fn forget(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn connection(&self, may_start: bool) -> Result<Connection, FindError> {
        // The runtime looks at its sockets when a task yields: a coordinator that died before this call was made
        // is noticed before anything is written to it, and the call is not lost.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
        if let Some(connection) = self.idle_connection() {
            return Ok(connection);
        }
        let searching = self.search.lock().await;
        let mut connection = if may_start {
            find::find_or_start(&self.find).await?
        } else {
            find::find(&self.find.home).await?
        };
        drop(searching);
        let epoch = self.find.home.stored_state().client_epoch;
        connection.set_role(Role::Client { epoch });
        Ok(connection)
    }

    fn idle_connection(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if !connection.is_closed() {
                return Some(connection);
            }
        }
        None
    }
}
