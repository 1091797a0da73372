//! What still comes to a coordinator that was replaced is passed to its successor.
//!
//! Clients keep connections open and may write to them at any moment: such a request is neither answered from a
//! roster that is no longer true nor torn by closing its connection.

use std::sync::OnceLock;
use std::time::Duration;

use baton_link::connection::{CallError, Connection};
use baton_proto::discovery::{Role, Secret};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{self, HeaderName};
use http::request::Parts;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::body::Body;

/// How long the successor may take to answer: it may have been replaced itself, or killed.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two attempts.
const EVERY: Duration = Duration::from_millis(50);
/// Headers that are about one connection.
const NOT_PASSED: [HeaderName; 7] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
];

/// Who answers in our place, once there is somebody.
pub struct Successor {
    secret: Secret,
    port: OnceLock<u16>,
    appointed: CancellationToken,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassError {
    /// Nothing was sent.
    Unreachable,
    /// It may have been carried out.
    Lost,
}

impl Successor {
    /// Nobody yet.
    pub fn none(secret: Secret) -> Self {
        Self { secret, port: OnceLock::new(), appointed: CancellationToken::new() }
    }

    /// From now on whoever answers on `port` does.
    pub fn appoint(&self, port: u16) {
        // Only a second appointment fails, and then the first one is in force.
        let _ = self.port.set(port);
        self.appointed.cancel();
    }

    /// Whether there is one.
    pub fn is_appointed(&self) -> bool {
        self.port.get().is_some()
    }

    /// Ends when there is one.
    pub async fn appointed(&self) {
        self.appointed.cancelled().await;
    }

    /// Passes a request, and the answer piece by piece. The other side proves itself before it hears anything.
    pub async fn pass(&self, role: Role, parts: Parts, body: Bytes) -> Result<Response<Body>, PassError> {
        let mut connection = self.connect().await.ok_or(PassError::Unreachable)?;
        connection.set_role(role);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = parts.method;
        // Whatever it was, its authority is ours.
        *request.uri_mut() = match parts.uri.path_and_query() {
            Some(target) => Uri::from(target.clone()),
            None => Uri::from_static("/"),
        };
        *request.headers_mut() = parts.headers;
        NOT_PASSED.iter().for_each(|name| _ = request.headers_mut().remove(name));
        request.headers_mut().remove(header::CONTENT_LENGTH);
        let response = connection.send(request).await.map_err(|error| match error {
            CallError::Malformed(_) => PassError::Unreachable,
            _ => PassError::Lost,
        })?;
        let (mut parts, incoming) = response.into_parts();
        NOT_PASSED.iter().for_each(|name| _ = parts.headers.remove(name));
        // The connection lives as long as the answer.
        let pieces = incoming.into_data_stream().map(move |piece| {
            let _connection = &connection;
            piece.map(Frame::data)
        });
        Ok(Response::from_parts(parts, Body::other(StreamBody::new(pieces))))
    }

    async fn connect(&self) -> Option<Connection> {
        let port = *self.port.get()?;
        let until = Instant::now() + PATIENCE;
        loop {
            match Connection::open(&self.secret, port).await {
                Ok(connection) => return Some(connection),
                Err(error) if Instant::now() >= until => {
                    tracing::warn!(%error, "the new coordinator is not responding");
                    return None;
                }
                Err(_) => sleep(EVERY).await,
            }
        }
    }
}
