//! Heads of HTTP requests: the guard's verdict is the one that the lines of the head give, whatever the pieces.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use baton_election::roster::Roster;
use baton_election::stand::Stand;
use baton_http::body::{self, Budget};
use baton_http::guard::Way;
use baton_http::guard::{Guard, Refusal, Route};
use baton_http::passes::Passes;
use baton_proto::control::Settings;
use baton_proto::discovery::{Role, Secret};
use baton_proto::ids::InstanceId;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use crate::endpoint::Endpoint;
use crate::route;

const PORT: u16 = 7717;
/// The secret of the tokens that stand in the corpus.
const SECRET: [u8; 32] = [7; 32];

/// A request as the service saw it.
struct Seen {
    verdict: Result<Route, Refusal>,
    endpoint: Option<Endpoint>,
    body: Option<Bytes>,
}

/// The first byte is the length of the pieces, 0 for one piece.
pub(super) fn run(bytes: &[u8]) {
    let Some((size, stream)) = bytes.split_first() else { return };
    let seen = serve(stream, if *size == 0 { stream.len() } else { usize::from(*size) });
    let Some(first) = seen.into_iter().next() else { return };
    let head = Head::read(stream);
    let expected = head.verdict();
    if head.target.starts_with('/') {
        assert_eq!(first.verdict, expected, "{}", String::from_utf8_lossy(stream));
    } else if first.verdict.is_ok() {
        // Whatever the form of the target: nobody gets past the guard without these.
        assert!(head.is_ours() && !head.is_from_a_page() && head.bearer().is_some());
    }
    if first.verdict != Ok(Route::Mcp) || !head.target.starts_with('/') {
        return;
    }
    let found = first.endpoint.as_ref().map(|endpoint| &endpoint.pin);
    assert_eq!(found, head.pin().as_ref(), "{}", head.target);
    let is_plain = head.all("transfer-encoding").is_empty();
    if let ([length], true, Some(body)) = (head.all("content-length").as_slice(), is_plain, first.body) {
        let length: usize = length.parse().expect("hyper takes no other length");
        assert_eq!(body, head.rest[..length], "the body is what stands behind the head");
    }
}

/// What hyper and the guard make of a stream, set up as the accept loop does.
fn serve(stream: &[u8], size: usize) -> Vec<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let (_keep, roster) = watch::channel(Arc::new(roster()));
    let passes = Passes::new(&Secret::new(SECRET), &InstanceId("i".to_owned()));
    let guard = Guard::new(Secret::new(SECRET), roster, tokio::sync::mpsc::channel(1).0, passes);
    let seen = RefCell::new(Vec::new());
    let service = service_fn(|request: Request<Incoming>| {
        let (guard, seen) = (&guard, &seen);
        async move {
            let verdict = guard.check(&request, Way::Port(PORT), None);
            let endpoint = Endpoint::from_request(request.uri(), request.headers());
            let body = body::collect(request.into_body(), 64 * 1024, &Budget::default()).await.ok();
            seen.borrow_mut().push(Seen { verdict, endpoint, body });
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let io = TokioIo::new(Pieces { bytes: Bytes::copy_from_slice(stream), size: size.max(1) });
    let served = hyper::server::conn::http1::Builder::new()
        .header_read_timeout(None)
        .max_header_size(16 * 1024)
        .serve_connection(io, service);
    // A broken stream ends in an error.
    let _ = runtime.block_on(served);
    seen.into_inner()
}

fn roster() -> Roster {
    Roster {
        instance: InstanceId("i".to_owned()),
        generation: 1,
        live: None,
        awaiting: None,
        departed: Vec::new(),
        windows: BTreeMap::new(),
        settings: Arc::new(Settings::default()),
        client_epoch: 0,
        granted: BTreeMap::new(),
        grants: Arc::default(),
    }
}

/// A head as its lines tell it.
struct Head<'a> {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    rest: &'a [u8],
}

impl<'a> Head<'a> {
    fn read(stream: &'a [u8]) -> Self {
        let mut rest = stream;
        let mut line = || {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line: String = rest[..end].iter().map(|byte| char::from(*byte)).collect();
            rest = rest.get(end + 1..).unwrap_or_default();
            line.strip_suffix('\r').map(str::to_owned).unwrap_or(line)
        };
        let mut first = line();
        while first.is_empty() && !stream.is_empty() {
            first = line();
        }
        let mut words = first.split(' ').filter(|word| !word.is_empty()).map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = Vec::new();
        loop {
            let line = line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()));
        }
        Self { method, target, headers, rest }
    }

    fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect()
    }

    fn path(&self) -> &str {
        self.target.split(['?', '#']).next().unwrap_or_default()
    }

    fn is_ours(&self) -> bool {
        let ours = ["127.0.0.1:7717", "localhost:7717", "[::1]:7717"];
        matches!(self.all("host").as_slice(), [host] if ours.contains(host))
    }

    fn is_from_a_page(&self) -> bool {
        let is_foreign = self.all("sec-fetch-site").iter().any(|site| *site != "none");
        !self.all("origin").is_empty() || !self.all("referer").is_empty() || is_foreign
    }

    fn bearer(&self) -> Option<&str> {
        let values = self.all("authorization");
        let [value] = values.as_slice() else { return None };
        let (scheme, token) = (value.get(..7)?, value.get(7..)?);
        scheme.eq_ignore_ascii_case("bearer ").then_some(token)
    }

    fn verdict(&self) -> Result<Route, Refusal> {
        let is_below = |prefix: &str| self.path() == prefix || self.path().starts_with(&format!("{prefix}/"));
        if !self.is_ours() || self.is_from_a_page() {
            return Err(Refusal::Forbidden);
        }
        if is_below("/.well-known") {
            return Err(Refusal::NotFound);
        }
        let secret = Secret::new(SECRET);
        let is = |role| self.bearer() == Some(secret.token(role).expose());
        let (is_client, is_member) = (is(Role::Client { epoch: 0 }), is(Role::Member));
        let (route, may) = match () {
            () if is_below("/mcp") => (Route::Mcp, is_client),
            () if self.path() == "/v1/hello" => (Route::Control, self.bearer().is_some_and(is_hello)),
            () if is_below("/v1") => (Route::Control, is_member),
            () if self.path() == "/metrics" => (Route::Metrics, is(Role::Metrics)),
            () => (Route::Unknown, is_client || is_member),
        };
        let types = self.all("content-type");
        let is_json = matches!(types.as_slice(), [kind] if is_json(kind));
        let has_body = !["GET", "DELETE", "OPTIONS"].contains(&self.method.as_str());
        match route {
            _ if !may => Err(Refusal::Unauthorized),
            Route::Mcp | Route::Control if has_body && !is_json => Err(Refusal::NotJson),
            route => Ok(route),
        }
    }

    fn pin(&self) -> Option<route::Pin> {
        use baton_proto::edge::{BOUND_HEADER, FOLDER_HEADER, NESTED_HEADER, TREE_HEADER};
        // Of a header that is there and is no text nothing is made.
        let text = |name: &str| {
            self.all(name).first().map(|text| decoded(text)).map_or(Some(None), |text| text.map(Some))
        };
        let (folder, tree, bound) = (text(FOLDER_HEADER)?, text(TREE_HEADER)?, text(BOUND_HEADER)?);
        let is_nested = !self.all(NESTED_HEADER).is_empty();
        let stand = folder.map(|folder| Stand { folder, tree, is_nested, bound: bound.clone() });
        match self.path() {
            "/mcp" | "/mcp/" => Some(stand.map_or(route::Pin::Live, route::Pin::Folder)),
            path => {
                let name = path.strip_prefix("/mcp/windows/")?;
                let text = decoded(name.strip_suffix('/').unwrap_or(name)).filter(|name| !name.is_empty())?;
                Some(route::Pin::Window(route::Named { text, bound, stand }))
            }
        }
    }
}

/// Nothing else is a hello but a nonce and what the secret makes of it.
fn is_hello(bearer: &str) -> bool {
    use baton_proto::discovery::HelloCredential;
    let nonce = bearer.split('.').next().unwrap_or_default().to_owned();
    let is_nonce = nonce.len() == 32 && nonce.chars().all(|digit| digit.is_ascii_hexdigit());
    is_nonce && HelloCredential { nonce }.to_bearer(&Secret::new(SECRET), PORT) == bearer
}

fn is_json(kind: &str) -> bool {
    let is_text = kind.chars().all(|char| matches!(char, ' '..='~' | '\t'));
    is_text && kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Percent-encoding undone by hand; None for what is no text.
fn decoded(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let (mut bytes, mut at) = (Vec::new(), 0);
    while let Some(char) = chars.get(at) {
        at += 1;
        // The head was read byte by byte.
        let mut byte = u8::try_from(u32::from(*char)).ok()?;
        if byte == b'%' {
            let digit = |at: usize| chars.get(at).and_then(|char| char.to_digit(16));
            byte = u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()?;
            at += 2;
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

/// A connection on which the stream arrives piece by piece, and that takes every answer.
struct Pieces {
    bytes: Bytes,
    size: usize,
}

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let len = self.size.min(self.bytes.len()).min(buffer.remaining());
        buffer.put_slice(&self.bytes.split_to(len));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
