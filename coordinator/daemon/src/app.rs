//! Who answers what: `/mcp*` the edge, `/v1/*` the control routes, `/metrics` what is counted, the page its own name;
//! everything else is a plain 404.

use std::sync::Arc;
use std::time::Duration;

use baton_control::{Control, EdgeOrder};
use baton_edge::{Edge, ProfileError};
use baton_election::roster::Roster;
use baton_http::body::Body;
use baton_http::guard::{Route, TokenNews};
use baton_http::passes::Passes;
use baton_http::{Admitted, END_GRACE, End, Gate, Listeners, respond};
use baton_link::explain::Explanation;
use baton_metrics::Metrics;
use baton_page::Page;
use baton_proto::discovery::{Role, Secret};
use baton_proto::edge::{HEARD_HEADER, PORT_HEADER};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use tokio::sync::{mpsc, watch};

/// What of the grace is for the answers of those calls that did not end.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// What answers on the coordinator's port.
pub struct App {
    edge: Edge,
    control: Control,
    metrics: Arc<Metrics>,
    page: Page,
    roster: watch::Receiver<Arc<Roster>>,
    gate: Arc<Gate>,
    /// Those that answer, the current one first.
    ports: watch::Receiver<Vec<u16>>,
}

impl App {
    /// Puts the parts behind one guard, which says what it learns of the client token, and asks `passes` who may see the
    /// page.
    pub fn new(
        secret: Secret,
        roster: watch::Receiver<Arc<Roster>>,
        (edge, metrics): (Edge, Arc<Metrics>),
        control: Control,
        (page, passes): (Page, Passes),
        news: mpsc::Sender<TokenNews>,
        ports: watch::Receiver<Vec<u16>>,
    ) -> Arc<Self> {
        let gate = Gate::new(secret, roster.clone(), news, passes);
        Arc::new(Self { edge, control, metrics, page, roster, gate, ports })
    }

    /// Has the edge do what the routes ask of it. Whoever asked may have gone when there is a reply.
    pub fn carry_out(&self, order: EdgeOrder) {
        let edge = self.edge.clone();
        tokio::spawn(async move {
            match order {
                EdgeOrder::Profile(window, seconds, reply) => {
                    let taken = edge.profile(&window, seconds).await;
                    let _ = reply.send(taken.map_err(|error| explained(&error)));
                }
                EdgeOrder::Record(wish, reply) => {
                    let _ = reply.send(edge.record(wish).await);
                }
                EdgeOrder::Recording(reply) => {
                    let _ = reply.send(edge.recording());
                }
                EdgeOrder::Raw(wish, reply) => {
                    let _ = reply.send(edge.raw(&wish));
                }
            }
        });
    }

    /// See [`Gate::leave`].
    pub fn leave(&self) {
        self.gate.leave();
    }

    /// The coordinator ends with `closing`: calls that are held or still run get an answer.
    pub fn end(&self) {
        self.edge.end(END_GRACE - LAST_ANSWERS);
    }

    /// See [`Gate::hand_on`].
    pub fn hand_on(&self) {
        self.gate.hand_on();
    }

    /// Another coordinator answers on `port` from now on: what still comes here is passed to it.
    pub fn retire(&self, port: u16) {
        self.hand_on();
        self.edge.successor().appoint(port);
    }

    async fn answer(&self, admitted: Admitted) -> Response<Body> {
        match admitted.route {
            Route::Mcp => self.answer_client(admitted).await,
            Route::Control if self.edge.successor().is_appointed() => self.pass_control(admitted).await,
            Route::Control => self.control.answer(admitted).await,
            Route::Page if self.edge.successor().is_appointed() => respond::closed(),
            Route::Page => self.page.answer(admitted).await,
            Route::Metrics if admitted.parts.method == Method::GET => {
                let roster = self.roster.borrow().clone();
                self.metrics.answer(&roster)
            }
            Route::Metrics => respond::plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n"),
            Route::Unknown if admitted.parts.method == Method::OPTIONS => {
                respond::plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n")
            }
            Route::Unknown => respond::plain(StatusCode::NOT_FOUND, "not found\n"),
        }
    }

    /// A bridge, which tells what it heard, hears of our port.
    async fn answer_client(&self, Admitted { holder, parts, body, .. }: Admitted) -> Response<Body> {
        let is_bridge = parts.headers.contains_key(HEARD_HEADER);
        let mut response = self.edge.handle(holder, parts, body).await;
        let port = self.ports.borrow().first().copied();
        // What a successor answered names its own.
        if let Some(port) = port.filter(|_| is_bridge && !self.edge.successor().is_appointed()) {
            response.headers_mut().insert(HeaderName::from_static(PORT_HEADER), HeaderValue::from(port));
        }
        response
    }

    /// What comes for a coordinator that was replaced. The event stream of a window is opened with the new one.
    async fn pass_control(&self, Admitted { parts, body, .. }: Admitted) -> Response<Body> {
        let is_stream = parts.uri.path().ends_with("/events");
        let passed = async { self.edge.successor().pass(Role::Member, parts, body).await.ok() };
        let passed = if is_stream { None } else { passed.await };
        passed.unwrap_or_else(|| {
            respond::plain(StatusCode::SERVICE_UNAVAILABLE, "the coordinator was replaced\n")
        })
    }
}

/// Why a window has no profile, and what to try.
fn explained(error: &ProfileError) -> Explanation {
    let why = Explanation::new(error.to_string());
    if *error == ProfileError::Unable { why.with_hint("update Baton in that window") } else { why }
}

/// Answers on `listeners` until the end; see [`baton_http::serve`].
pub async fn serve(listeners: Listeners, app: Arc<App>, end: End) {
    let gate = app.gate.clone();
    let answer = move |admitted| {
        let app = app.clone();
        async move { app.answer(admitted).await }
    };
    baton_http::serve(listeners, gate, end, answer).await;
}
