//! Decides whether a request runs at all: token, Host, Origin, size, term.

use std::convert::Infallible;
use std::sync::Arc;

use baton_proto::discovery::Token;
use baton_proto::edge::{PIN_HEADER, REFUSED_ENDING, REFUSED_HEADER, TERM_HEADER};
use baton_proto::ids::Term;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use tokio::sync::watch;
use tracing::info;

use super::Access;
use baton_agent_tools::calls::Running;
use baton_agent_tools::window::Window;

/// See the module.
#[derive(Debug)]
pub struct Gate {
    window: Arc<Window>,
    /// Follows the secret: after that was made anew, the coordinator presents another token.
    token: watch::Receiver<Token>,
    authorities: Vec<String>,
    access: Access,
}

/// Whether a call may run now.
pub(super) enum Verdict {
    /// It counts as running from now on.
    Admitted(Running),
    Refused(Response<BoxBody<Bytes, Infallible>>),
}

pub(super) type Refusal = Response<BoxBody<Bytes, Infallible>>;

impl Gate {
    /// A gate for requests to one of `authorities`.
    pub fn new(
        window: Arc<Window>,
        token: watch::Receiver<Token>,
        authorities: Vec<String>,
        access: Access,
    ) -> Self {
        Self { window, token, authorities, access }
    }

    #[expect(clippy::result_large_err, reason = "the error is the answer")]
    pub(super) fn check_head(&self, parts: &Parts) -> Result<(), Refusal> {
        self.check_caller(parts)?;
        if parts.uri.path() != "/mcp" {
            return Err(plain(StatusCode::NOT_FOUND, "MCP is served on /mcp."));
        }
        if parts.method != Method::POST {
            return Err(plain(StatusCode::METHOD_NOT_ALLOWED, "A window takes calls by POST."));
        }
        Ok(())
    }

    /// Whether it is the coordinator who asks.
    #[expect(clippy::result_large_err, reason = "the error is the answer")]
    pub(super) fn check_caller(&self, parts: &Parts) -> Result<(), Refusal> {
        if !self.has_right_host(parts) || parts.headers.contains_key(ORIGIN) {
            return Err(plain(StatusCode::FORBIDDEN, "This address is for the coordinator of Baton alone."));
        }
        let presented = single(&parts.headers, AUTHORIZATION.as_str()).map(HeaderValue::as_bytes);
        let presented = presented.and_then(|value| value.strip_prefix(b"Bearer ")).unwrap_or_default();
        if !self.token.borrow().matches(presented) {
            return Err(plain(StatusCode::UNAUTHORIZED, "The token of this window is missing or wrong."));
        }
        Ok(())
    }

    fn enter(&self) -> Verdict {
        match self.window.calls.enter() {
            Some(running) => Verdict::Admitted(running),
            None => Verdict::Refused(unrun(REFUSED_ENDING)),
        }
    }

    fn has_right_host(&self, parts: &Parts) -> bool {
        let host = single(&parts.headers, HOST.as_str()).and_then(|value| value.to_str().ok());
        host.is_some_and(|host| self.authorities.iter().any(|ours| ours == host))
    }

    /// The last thing before a call runs.
    pub(super) fn check_term(&self, headers: &HeaderMap) -> Verdict {
        if headers.contains_key(TERM_HEADER) {
            let term =
                single(headers, TERM_HEADER).and_then(|value| value.to_str().ok()?.parse::<Term>().ok());
            let Some(term) = term else {
                return Verdict::Refused(plain(StatusCode::BAD_REQUEST, "baton-term is not generation.seq."));
            };
            return match self.window.admit(term) {
                Ok(()) => self.enter(),
                Err(refusal) => {
                    info!(%term, why = refusal.header_value(), "refused a call");
                    Verdict::Refused(unrun(refusal.header_value()))
                }
            };
        }
        if headers.contains_key(PIN_HEADER) || self.access == Access::Standalone {
            return self.enter();
        }
        Verdict::Refused(plain(StatusCode::BAD_REQUEST, "A call needs the header baton-term or baton-pin."))
    }
}

/// Refuses a call, provably unrun.
pub(super) fn unrun(why: &'static str) -> Refusal {
    let mut response = plain(StatusCode::CONFLICT, "The call was not run.");
    response.headers_mut().insert(REFUSED_HEADER, HeaderValue::from_static(why));
    response
}

/// The value of a header that is there exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

pub(super) fn plain(status: StatusCode, text: &'static str) -> Refusal {
    answer(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

pub(super) fn json(status: StatusCode, text: String) -> Refusal {
    answer(status, "application/json", Bytes::from(text))
}

fn answer(status: StatusCode, kind: &'static str, bytes: Bytes) -> Refusal {
    let mut response = Response::new(Full::new(bytes).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
