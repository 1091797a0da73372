//! Requests of one client to the coordinator.

use std::ops::Deref;

use baton_link::connection::Connection;
use baton_link::find::FindError;
use baton_proto::edge::{BOUND_HEADER, HEARD_HEADER, PORT_HEADER};
use baton_proto::percent;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use parking_lot::Mutex;

use crate::pool::Pool;
use crate::{Options, Stand};

/// Where messages go.
pub(super) struct Upstream {
    pool: Pool,
    target: String,
    stand: Option<Stand>,
    /// What the edge said of our window, and wants to be told again.
    remembered: Mutex<HeaderMap>,
}

impl Deref for Upstream {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
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
            pool: Pool::new(options.find),
            target,
            stand: options.stand,
            remembered: Mutex::new(HeaderMap::from_iter([heard])),
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
        own.extend(self.remembered.lock().clone());
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
            self.home().remember_port(port);
        }
        let mut remembered = self.remembered.lock();
        if let Some(heard) = told.get(HEARD_HEADER) {
            remembered.insert(HeaderName::from_static(HEARD_HEADER), heard.clone());
        }
        if let Some(bound) = told.get(BOUND_HEADER) {
            remembered.entry(HeaderName::from_static(BOUND_HEADER)).or_insert_with(|| bound.clone());
        }
    }
}
