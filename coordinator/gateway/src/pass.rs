//! One request: whether it may go on, its way to the coordinator, and its answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use baton_bridge::pool::Pool;
use baton_http::body::{self, Body, BodyError, Budget};
use baton_http::guard::{self, Refusal};
use baton_http::{MCP_BODY_MAX, respond};
use baton_link::connection::Connection;
use baton_link::home::Home;
use baton_proto::control::TokenHeard;
use baton_proto::discovery::{Role, Token};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, Uri};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};

use crate::identity::Identity;

/// Headers that are about one connection, or that the coordinator and its own programs tell each other.
const OWN_HEADERS: &str = "baton-";
/// See RFC 9110, section 7.6.1; the last two are set anew.
const OF_A_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::AUTHORIZATION,
    header::HOST,
];
/// How often a request that was not run is sent again, and after which pause: a coordinator that follows another one is
/// there at once, and one that is started is within seconds.
const TRIES: usize = 25;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(200);

/// How much of a body that nobody wants is read, and for how long.
const READ_OUT_MAX: usize = 2 * MCP_BODY_MAX;
/// See [`READ_OUT_MAX`].
const READ_OUT_TIME: Duration = Duration::from_secs(2);

/// Answers one request of a client far away.
pub(crate) async fn answer(
    (pool, budget): (&Arc<Pool>, &Budget),
    identity: &Identity,
    request: Request<Incoming>,
) -> Response<Body> {
    let Some((client, _)) = client_token(pool.home()) else { return unavailable() };
    if let Err(refusal) = guard::check_remote(&request, |host| identity.is_our_name(host), &client) {
        read_out(request.into_body()).await;
        return respond::refused(refusal);
    }
    let (parts, incoming) = request.into_parts();
    if incoming.size_hint().lower() > MCP_BODY_MAX as u64 {
        read_out(incoming).await;
        return respond::body_error(&BodyError::TooLarge(MCP_BODY_MAX));
    }
    match body::collect(incoming, MCP_BODY_MAX, budget).await {
        Ok(body) => pass(pool, parts, body).await,
        Err(error) => respond::body_error(&error),
    }
}

/// The token of clients, and how often it was rotated. Read for each request: one of before is worth nothing from that
/// moment on.
fn client_token(home: &Home) -> Option<(Token, u32)> {
    let epoch = home.stored_state().client_epoch;
    Some((home.secret().ok()?.token(Role::Client { epoch }), epoch))
}

/// Answers another user of this machine, as the port of the coordinator does: a token that they know leaked, and is revoked.
pub(crate) async fn refuse_stranger(pool: &Pool, uid: u32, request: Request<Incoming>) -> Response<Body> {
    let token = client_token(pool.home());
    if let Some((_, epoch)) = token.filter(|(client, _)| guard::shows(&request, client))
        && let Err(error) = tell_heard(pool, TokenHeard { uid, epoch }).await
    {
        tracing::error!(
            uid,
            "another user showed the client token, which could not be revoked: {error}; run `baton token --rotate`"
        );
    }
    read_out(request.into_body()).await;
    respond::refused(Refusal::Forbidden)
}

async fn tell_heard(pool: &Pool, heard: TokenHeard) -> Result<(), String> {
    let mut connection = pool.connection(true).await.map_err(|error| error.to_string())?;
    connection.set_role(Role::Member);
    let told = pool.unless_hung(connection.token_heard(heard)).await;
    // It is not used again: as a member it may do more than a client.
    told.ok_or("the coordinator hangs")?.map(drop).map_err(|error| error.to_string())
}

/// Reads a body that nobody wants, for a while: a client that is still writing when its connection ends does not read why.
async fn read_out(mut incoming: Incoming) {
    let read = async {
        let mut n_bytes = 0;
        while let Some(Ok(frame)) = incoming.frame().await {
            n_bytes += frame.data_ref().map_or(0, Bytes::len);
            if n_bytes > READ_OUT_MAX {
                break;
            }
        }
    };
    // Who is slower has lost the answer.
    let _ = timeout(READ_OUT_TIME, read).await;
}

async fn pass(pool: &Arc<Pool>, mut parts: Parts, body: Bytes) -> Response<Body> {
    drop_own_headers(&mut parts.headers);
    for _ in 0..TRIES {
        let Ok(mut connection) = pool.connection(true).await else { return unavailable() };
        let sent = pool.unless_hung(connection.send(to_coordinator(&parts, &body))).await;
        let Some(Ok(response)) = sent else { return lost() };
        if response.status() == StatusCode::UNAUTHORIZED {
            // Its token is an earlier one; ours has just been looked at.
            pool.forget();
        } else if !is_not_run(&response) {
            return back(pool, response, connection);
        }
        sleep(PAUSE).await;
    }
    unavailable()
}

fn to_coordinator(parts: &Parts, body: &Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body.clone()));
    let path = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/mcp"));
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = Uri::from(path);
    request.headers_mut().clone_from(&parts.headers);
    request
}

/// The coordinator says that it did nothing, because it ends or has no room.
fn is_not_run(response: &Response<Incoming>) -> bool {
    response.status() == StatusCode::SERVICE_UNAVAILABLE
        && response.headers().contains_key(header::RETRY_AFTER)
}

/// An answer on its way back; its connection is used again when it is complete.
fn back(pool: &Arc<Pool>, response: Response<Incoming>, connection: Connection) -> Response<Body> {
    let (mut parts, incoming) = response.into_parts();
    drop_own_headers(&mut parts.headers);
    let body = Passing { incoming, connection: Some(connection), pool: pool.clone() };
    Response::from_parts(parts, Body::other(body))
}

fn drop_own_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').filter_map(|name| name.trim().parse().ok()))
        .collect();
    let own = headers.keys().filter(|name| name.as_str().starts_with(OWN_HEADERS)).cloned();
    for name in own.chain(named).chain(OF_A_CONNECTION).collect::<Vec<_>>() {
        headers.remove(name);
    }
}

fn unavailable() -> Response<Body> {
    respond::plain(
        StatusCode::SERVICE_UNAVAILABLE,
        "the coordinator is not running; the request was not run; see 'baton status' on that machine\n",
    )
}

fn lost() -> Response<Body> {
    respond::plain(
        StatusCode::BAD_GATEWAY,
        "the coordinator exited before it answered; whether the request was run is unknown\n",
    )
}

/// The body of an answer, with what it comes on.
struct Passing {
    incoming: Incoming,
    connection: Option<Connection>,
    pool: Arc<Pool>,
}

impl http_body::Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        if frame.is_none()
            && let Some(connection) = self.connection.take()
        {
            self.pool.keep(connection);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        // The end is to be seen, so that the connection is kept.
        self.connection.is_none() && self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_a_connection_or_our_own_goes_no_further() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("authorization", "Bearer t"),
            ("host", "build.example"),
            ("baton-heard", "a"),
            ("baton-bound", "b"),
            ("accept", "text/event-stream"),
            ("mcp-session-id", "s"),
        ] {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        drop_own_headers(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "mcp-session-id"]);
    }
}
