//! Who may ask: Host, Origin, content type and token of every request, before anything else is looked at.
//!
//! On the socket in the state folder the folder is the token: who can reach it is this user. On a port everything
//! wants one, and a token that another user of this machine shows was heard where it should not have been.
//!
//! **Invariant:** on a port nothing but `/.well-known/*` (a plain 404, for clients that probe it) answers without a
//! token, nothing answers another user, and every refusal of a kind is the same bytes, whatever the path.
//!
//! The page has a name of its own ([`Passes::host`]), and is at no other: cookies do not know of ports, so that those of
//! `127.0.0.1` go to every server there. At its name there is nothing else, and nobody is let in by a token: a browser
//! shows the cookie that it got for a one-time link, and with whatever changes something also what stands in the page
//! itself. No page of another origin gets an answer.

use std::sync::Arc;
use std::time::Duration;

use baton_election::roster::Roster;
use baton_link::routes;
use baton_proto::discovery::{HelloCredential, Role, Secret, Token};
use http::{HeaderMap, Method, Request, header};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::passes::Passes;

/// Path of what is counted.
const METRICS: &str = "/metrics";
/// Where a one-time link leads, before the link itself.
pub const OPEN: &str = "/open/";
/// The cookie of an open page.
pub const PAGE_COOKIE: &str = "baton-page";
/// The header of what stands in the page itself.
pub const FORM_HEADER: &str = "baton-form";
/// Rotations that a coordinator which lost its state can learn of from a client.
const LATER_EPOCHS: u32 = 64;
/// How long a request waits for what it tells to be known.
const LEARN_WITHIN: Duration = Duration::from_secs(2);

/// Which part answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The MCP edge.
    Mcp,
    /// The control router.
    Control,
    /// What is counted.
    Metrics,
    /// The page.
    Page,
    /// Nobody.
    Unknown,
}

/// How a connection came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// On a port of ours, which anybody on this machine can dial.
    Port(u16),
    /// On the socket in the state folder, which only this user can reach.
    Socket,
}

/// Who holds connections of MCP clients: each of these has its own share of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// The programs that know the client token of that many rotations; the earlier ones come first.
    Token {
        /// Rotations of the token.
        epoch: u32,
    },
    /// Processes of this user that need no token, on the socket in the state folder: `baton stdio`.
    Socket,
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its Host is not ours, or it was made by a web page.
    Forbidden,
    /// A path that clients probe and that we do not have.
    NotFound,
    /// No token, or one for something else.
    Unauthorized,
    /// Its body is not JSON.
    NotJson,
    /// It comes from a page that is not open (any longer).
    Closed,
}

/// Checks every request.
pub struct Guard {
    secret: Secret,
    member: Token,
    metrics: Token,
    /// The client token and the epoch it was derived for.
    client: Mutex<(u32, Token)>,
    roster: watch::Receiver<Arc<Roster>>,
    news: mpsc::Sender<TokenNews>,
    passes: Passes,
    /// See [`Passes::host`].
    page_host: Arc<str>,
}

/// What requests tell of the client token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenNews {
    /// Another user of this machine showed it.
    Heard {
        /// That user.
        uid: u32,
        /// Rotations of the token that was shown.
        epoch: u32,
    },
    /// A client has one of a later rotation than this coordinator knows.
    Rotated {
        /// Rotations of the token that was shown.
        epoch: u32,
    },
}

impl Guard {
    /// `news` is what it learns of the client token; `passes` say who may see the page.
    pub fn new(
        secret: Secret,
        roster: watch::Receiver<Arc<Roster>>,
        news: mpsc::Sender<TokenNews>,
        passes: Passes,
    ) -> Self {
        let epoch = roster.borrow().client_epoch;
        let client = Mutex::new((epoch, secret.token(Role::Client { epoch })));
        let (member, metrics) = (secret.token(Role::Member), secret.token(Role::Metrics));
        let page_host = passes.host();
        Self { member, metrics, secret, client, roster, news, passes, page_host }
    }

    /// Says who answers `request`, which came in that way, or why nobody does. `stranger` is the other user of this
    /// machine who sent it.
    pub fn check<B>(&self, request: &Request<B>, way: Way, stranger: Option<u32>) -> Result<Route, Refusal> {
        let headers = request.headers();
        if let Some(uid) = stranger {
            self.on_stranger(uid, headers);
            return Err(Refusal::Forbidden);
        }
        if let Some(origin) = self.page_origin(request, way) {
            return self.check_page(request, &origin);
        }
        if !is_our_authority(request, way) || is_from_a_page(headers) {
            return Err(Refusal::Forbidden);
        }
        let path = request.uri().path();
        if is_below(path, "/.well-known") {
            return Err(Refusal::NotFound);
        }
        let route = if is_below(path, "/mcp") {
            Route::Mcp
        } else if is_below(path, "/v1") {
            Route::Control
        } else if path == METRICS {
            Route::Metrics
        } else {
            Route::Unknown
        };
        let is_authorized = match way {
            Way::Socket => true,
            Way::Port(port) => bearer(headers).is_some_and(|bearer| match route {
                Route::Mcp => self.is_client(bearer),
                Route::Control if path == routes::HELLO.path => self.is_hello(bearer, port),
                Route::Control => self.member.matches(bearer),
                Route::Metrics => self.metrics.matches(bearer),
                Route::Page | Route::Unknown => self.is_client(bearer) | self.member.matches(bearer),
            }),
        };
        if !is_authorized {
            return Err(Refusal::Unauthorized);
        }
        let has_body = !matches!(*request.method(), Method::GET | Method::DELETE | Method::OPTIONS);
        if matches!(route, Route::Mcp | Route::Control) && has_body && !is_json(headers) {
            return Err(Refusal::NotJson);
        }
        Ok(route)
    }

    /// The origin of the page, when the request is for it.
    fn page_origin<B>(&self, request: &Request<B>, way: Way) -> Option<String> {
        let Way::Port(port) = way else { return None };
        let authority = format!("{}:{port}", self.page_host);
        (only(request.headers(), &header::HOST)? == authority.as_bytes()
            && request.uri().authority().is_none_or(|target| target.as_str() == authority))
        .then(|| format!("http://{authority}"))
    }

    /// Whether the browser that asks for something of the page may have it.
    fn check_page<B>(&self, request: &Request<B>, origin: &str) -> Result<Route, Refusal> {
        let (headers, path) = (request.headers(), request.uri().path());
        let is_get = *request.method() == Method::GET;
        if path.starts_with(OPEN) {
            // The link itself is looked at by the page; whatever page led to it, the person sees where it leads.
            let is_led_there = |name, wanted: &str| headers.get(name).is_none_or(|value| value == wanted);
            let is_person =
                is_led_there("sec-fetch-mode", "navigate") && is_led_there("sec-fetch-dest", "document");
            let is_taken = is_get && is_person && !headers.contains_key(header::ORIGIN);
            return if is_taken { Ok(Route::Page) } else { Err(Refusal::Forbidden) };
        }
        let is_same_site = headers
            .get_all("sec-fetch-site")
            .iter()
            .all(|site| site == "same-origin" || (site == "none" && is_get));
        let is_own_origin = headers.get_all(header::ORIGIN).iter().all(|told| told == origin);
        if !is_same_site || !is_own_origin {
            return Err(Refusal::Forbidden);
        }
        let epoch = self.roster.borrow().client_epoch;
        let form = cookies(headers).find_map(|cookie| self.passes.form(cookie, epoch, Instant::now()));
        let form = form.ok_or(Refusal::Closed)?;
        if is_get {
            return Ok(Route::Page);
        }
        let is_meant = headers.contains_key(header::ORIGIN)
            && headers.get(FORM_HEADER).is_some_and(|told| form.matches(told.as_bytes()));
        match (is_meant, is_json(headers)) {
            (false, _) => Err(Refusal::Forbidden),
            (true, false) => Err(Refusal::NotJson),
            (true, true) => Ok(Route::Page),
        }
    }

    /// Whose request it is, of an MCP client that may ask: another token than the present one is refused.
    pub(crate) fn holder(&self, way: Way) -> Holder {
        match way {
            Way::Port(_) => Holder::Token { epoch: self.roster.borrow().client_epoch },
            Way::Socket => Holder::Socket,
        }
    }

    /// True once the refused `request` may be checked again: its client token is of a rotation that this coordinator
    /// knew nothing of, because the state was lost. Nobody but a coordinator with our secret can have made it.
    pub async fn learn_epoch<B>(&self, request: &Request<B>) -> bool {
        let is_mcp = is_below(request.uri().path(), "/mcp");
        let Some(epoch) = bearer(request.headers()).filter(|_| is_mcp).and_then(|it| self.later_epoch(it))
        else {
            return false;
        };
        let mut roster = self.roster.clone();
        let learned = async {
            self.news.send(TokenNews::Rotated { epoch }).await.ok()?;
            roster.wait_for(|roster| roster.client_epoch >= epoch).await.ok().map(drop)
        };
        tokio::time::timeout(LEARN_WITHIN, learned).await.is_ok_and(|learned| learned.is_some())
    }

    fn later_epoch(&self, bearer: &[u8]) -> Option<u32> {
        let epoch = self.roster.borrow().client_epoch;
        let mut later = epoch.saturating_add(1)..=epoch.saturating_add(LATER_EPOCHS);
        later.find(|epoch| self.secret.token(Role::Client { epoch: *epoch }).matches(bearer))
    }

    /// Another user knows nothing of ours, unless somebody heard what a client said to a port that was not ours for a
    /// moment.
    fn on_stranger(&self, uid: u32, headers: &HeaderMap) {
        if bearer(headers).is_some_and(|bearer| self.is_client(bearer)) {
            let epoch = self.roster.borrow().client_epoch;
            // One that waits is enough.
            let _ = self.news.try_send(TokenNews::Heard { uid, epoch });
        }
    }

    fn is_client(&self, bearer: &[u8]) -> bool {
        let epoch = self.roster.borrow().client_epoch;
        let mut client = self.client.lock();
        if client.0 != epoch {
            *client = (epoch, self.secret.token(Role::Client { epoch }));
        }
        client.1.matches(bearer)
    }

    fn is_hello(&self, bearer: &[u8], local_port: u16) -> bool {
        std::str::from_utf8(bearer)
            .is_ok_and(|text| HelloCredential::from_bearer(text, &self.secret, local_port).is_some())
    }
}

/// Says whether a request from another machine may go on, to the MCP edge, which is all that there is from afar. It came over
/// TLS; `is_ours` knows the names that we are called by there, `client` is the present client token.
pub fn check_remote<B>(
    request: &Request<B>,
    is_ours: impl FnOnce(&[u8]) -> bool,
    client: &Token,
) -> Result<(), Refusal> {
    let headers = request.headers();
    let host = only(headers, &header::HOST).ok_or(Refusal::Forbidden)?;
    let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    if target.is_some_and(|target| target != host) || !is_ours(host) || is_from_a_page(headers) {
        return Err(Refusal::Forbidden);
    }
    let path = request.uri().path();
    if is_below(path, "/.well-known") {
        return Err(Refusal::NotFound);
    }
    if !shows(request, client) {
        return Err(Refusal::Unauthorized);
    }
    if !is_below(path, "/mcp") {
        return Err(Refusal::NotFound);
    }
    let has_body = !matches!(*request.method(), Method::GET | Method::DELETE | Method::OPTIONS);
    if has_body && !is_json(headers) { Err(Refusal::NotJson) } else { Ok(()) }
}

/// True when `request` shows that token.
pub fn shows<B>(request: &Request<B>, token: &Token) -> bool {
    bearer(request.headers()).is_some_and(|bearer| token.matches(bearer))
}

/// True when `path` is `prefix` or lies below it.
fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True when the one Host header, and the target if it is absolute, are exactly ours with the port dialled.
fn is_our_authority<B>(request: &Request<B>, way: Way) -> bool {
    let Some(host) = only(request.headers(), &header::HOST) else { return false };
    let target = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let is_ours = match way {
        Way::Port(port) => is_authority(host, port),
        Way::Socket => host == b"localhost",
    };
    target.is_none_or(|target| target == host) && is_ours
}

fn is_authority(host: &[u8], local_port: u16) -> bool {
    let port =
        [&b"127.0.0.1:"[..], b"localhost:", b"[::1]:"].iter().find_map(|name| host.strip_prefix(*name));
    // A second spelling of the number ("07717", "+7717") is not ours.
    port.is_some_and(|port| port == local_port.to_string().as_bytes())
}

/// The one value of a header.
fn only<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    Some(value.as_bytes())
}

/// The cookies of pages of ours.
pub fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let pairs =
        headers.get_all(header::COOKIE).iter().flat_map(|all| all.as_bytes().split(|byte| *byte == b';'));
    pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(PAGE_COOKIE.as_bytes())?.strip_prefix(b"="))
}

/// True when a browser sent it. Node's fetch sends `Sec-Fetch-Mode` alone, which is fine.
fn is_from_a_page(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN)
        || headers.contains_key(header::REFERER)
        || headers.get_all("sec-fetch-site").iter().any(|site| site != "none")
}

/// The one bearer token, without a look at the query.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = only(headers, &header::AUTHORIZATION)?.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = only(headers, &header::CONTENT_TYPE).and_then(|value| std::str::from_utf8(value).ok());
    let Some(value) = value else { return false };
    let essence = value.split_once(';').map_or(value, |(essence, _)| essence);
    essence.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_authority_passes() {
        let port = 7717;
        for ours in ["127.0.0.1:7717", "localhost:7717", "[::1]:7717"] {
            assert!(is_authority(ours.as_bytes(), port), "{ours}");
        }
        let foreign = "evil.com evil.com:7717 127.0.0.1.evil.com 127.0.0.1.evil.com:7717 localhost. \
             localhost.:7717 0.0.0.0:7717 127.1:7717 2130706433:7717 [::ffff:127.0.0.1]:7717 127.0.0.1 localhost \
             127.0.0.1:07717 127.0.0.1:7718 127.0.0.1:77170 127.0.0.1: LOCALHOST.evil:7717 user@127.0.0.1:7717";
        for host in foreign.split_whitespace() {
            assert!(!is_authority(host.as_bytes(), port), "{host}");
        }
    }

    #[test]
    fn paths_are_told_apart_at_slashes() {
        assert!(is_below("/mcp", "/mcp") && is_below("/mcp/windows/x", "/mcp"));
        assert!(!is_below("/mcpx", "/mcp") && !is_below("/", "/mcp"));
    }
}
