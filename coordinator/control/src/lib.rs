//! `/v1`: registration, heartbeats and event streams of windows, commands of the user.
//!
//! What comes in is checked against named bounds before the keeper hears of it, and every refusal names the field
//! and what it must be. A route is a handler and nothing more: what it takes and answers are types of `baton-proto`,
//! and `docs/openapi.json` is generated from them. What only the owner of the process can do (end, move, be
//! replaced) is an [`Order`] to it. Who may call is decided before, by `baton-http`; only the hello checks its own
//! credential.
//!
//! The table of routes stands in [`baton_proto::control`], their paths in [`baton_link::api`].
//!
//! | module | what it does |
//! |---|---|
//! | `validate` | the bounds of what is believed |
//! | `failure` | errors as answers |
//! | `status` | the answer of `/v1/status` |
//! | `openapi` | the description of all routes |

mod failure;
mod openapi;
mod status;
#[cfg(test)]
mod tests;
mod validate;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use baton_election::keeper::{Events, Keeper, KeeperError};
use baton_election::resolve::{REGISTRATION, Unresolved, resolve_typed};
use baton_election::roster::Roster;
use baton_http::Admitted;
use baton_http::guard::Way;
use baton_link::explain::Explanation;
use baton_link::process::own_id;
use baton_link::routes;
use baton_page::Page;
use baton_page::holdings::Holds;
use baton_proto::control::{
    Done, Failure, Heartbeat, Leave, Outcome, PageLink, Pong, PortChange, PortChanged, Profile, ProfileWish,
    RawLook, RawWish, RecordWish, Recorded, Recording, Register, Registered, Replace, Replaced, Rotated,
    Settings, SettingsChange, Status, TokenHeard, WindowSettings, WindowStatus,
};
use baton_proto::discovery::{HelloAnswer, HelloCredential, Secret};
use baton_proto::ids::WindowId;
use baton_proto::page::Look;
use baton_proto::{PROTOCOL, PROTOCOL_MIN};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};
use tower::ServiceExt as _;

use failure::{Checked, ControlError};
use openapi::Routes;
pub use openapi::openapi_text;

/// Largest body of `/v1`: a registration with every list and text at its bound is smaller.
const BODY_LIMIT: usize = 1 << 20;

/// What the routes need.
#[derive(Clone, Debug)]
pub struct ControlState {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    started: Instant,
    keeper: Keeper,
    secret: Secret,
    ports: watch::Receiver<Vec<u16>>,
    orders: mpsc::Sender<Order>,
    warnings: watch::Receiver<Vec<String>>,
    page: Page,
}

/// What the routes ask of the owner of the process.
#[derive(Debug)]
pub enum Order {
    /// End gracefully; the answer is on its way already.
    Shutdown,
    /// Let this program follow; reply with the port once it answers, or why it does not.
    Replace(PathBuf, oneshot::Sender<Result<u16, Explanation>>),
    /// Listen on another port; reply once it answers, or why it cannot.
    ChangePort(u16, oneshot::Sender<Result<(), PortRefused>>),
    /// Change settings for good; reply with those in force, or why they did not change.
    ChangeSettings(Box<SettingsChange>, oneshot::Sender<Result<Settings, Explanation>>),
    /// Ask the edge.
    Edge(EdgeOrder),
    /// Make all client tokens worthless; reply with the new epoch once it is written down, or why it cannot be:
    /// a coordinator that starts from the file must not take the old token again.
    RotateToken(oneshot::Sender<Result<u32, Explanation>>),
    /// Revoke the token that another user showed; reply when it is done.
    TokenHeard(TokenHeard, oneshot::Sender<()>),
}

/// What the routes ask of the edge.
#[derive(Debug)]
pub enum EdgeOrder {
    /// Ask a window's agent for a profile of so many seconds; reply with it, or why there is none.
    Profile(WindowId, u64, oneshot::Sender<Result<Profile, Explanation>>),
    /// Start a record of calls, or end it; reply with it, or why there is none.
    Record(RecordWish, oneshot::Sender<Result<Recorded, Explanation>>),
    /// Reply with the record that runs.
    Recording(oneshot::Sender<Recording>),
    /// Reply with the events that went to clients, and keep them or not.
    Raw(RawWish, oneshot::Sender<RawLook>),
}

/// Why the port cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PortRefused(
    /// Why, and what to try.
    pub Explanation,
);

impl ControlState {
    /// `ports` are those that answer, the current one first; orders go to the owner of the process.
    pub fn new(
        keeper: Keeper,
        secret: Secret,
        ports: watch::Receiver<Vec<u16>>,
        orders: mpsc::Sender<Order>,
        warnings: watch::Receiver<Vec<String>>,
        page: Page,
    ) -> Self {
        Self {
            inner: Arc::new(Inner { started: Instant::now(), keeper, secret, ports, orders, warnings, page }),
        }
    }

    fn keeper(&self) -> &Keeper {
        &self.inner.keeper
    }

    /// Windows learn of a change of the port with their next heartbeat.
    fn with_port(&self, registered: Registered) -> Registered {
        Registered { port: Some(self.port()), ..registered }
    }

    fn port(&self) -> u16 {
        self.inner.ports.borrow().first().copied().unwrap_or_default()
    }

    /// Who we are, without a proof.
    fn hello_answer(&self, port: u16) -> HelloAnswer {
        let roster = self.keeper().roster();
        HelloAnswer {
            instance: roster.instance.clone(),
            generation: roster.generation,
            port,
            pid: own_id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: (PROTOCOL_MIN, PROTOCOL),
            nonce: String::new(),
            proof: String::new(),
        }
    }

    /// The window that `text` names; its id is asked of the keeper again, which may say that it has gone.
    ///
    /// Right after the coordinator was restarted, one that nobody knows may be one that has not registered again.
    async fn window(&self, text: &str) -> Result<WindowId, ControlError> {
        let until = self.inner.started + REGISTRATION;
        let mut rosters = self.keeper().watch();
        let is_heard_of =
            |roster: &Arc<Roster>| !matches!(resolve_typed(roster, text), Err(Unresolved::Unknown { .. }));
        // However the wait ends, what is known by then counts.
        let _ = timeout_at(until, rosters.wait_for(is_heard_of)).await;
        Ok(resolve_typed(&self.keeper().roster(), text)?.id.clone())
    }

    async fn order(&self, order: Order) -> Result<(), ControlError> {
        self.inner.orders.send(order).await.map_err(|_| ControlError::from(KeeperError::Ended))
    }
}

/// The routes under `/v1`; cheap to clone.
#[derive(Clone, Debug)]
pub struct Control(axum::Router);

impl Control {
    /// All of them.
    pub fn new(state: ControlState) -> Self {
        let router = routes()
            .router
            .fallback(failure::unknown_route)
            .method_not_allowed_fallback(failure::wrong_method)
            .layer(DefaultBodyLimit::max(BODY_LIMIT))
            .with_state(state);
        Self(router)
    }

    /// Answers one request.
    pub async fn answer(&self, admitted: Admitted) -> axum::http::Response<baton_http::body::Body> {
        let mut request = axum::http::Request::from_parts(admitted.parts, Body::from(admitted.body));
        request.extensions_mut().insert(admitted.way);
        let Ok(response) = self.0.clone().oneshot(request).await;
        response.map(baton_http::body::Body::other)
    }
}

/// Routes of one's own, for tests of what stands around them.
impl From<axum::Router> for Control {
    fn from(router: axum::Router) -> Self {
        Self(router)
    }
}

fn routes() -> Routes {
    Routes::default()
        .add(routes::HELLO, "hello", "Prove the coordinator to a holder of the secret", hello)
        .add(routes::PING, "ping", "Whether the coordinator answers", ping)
        .add(routes::REGISTER, "register", "Announce a window, again or newly", register)
        .add(routes::HEARTBEAT, "heartbeat", "A sign of life, and what changed", heartbeat)
        .add(routes::LEAVE, "leave", "End a window on purpose", leave)
        .add(routes::EVENTS, "events", "Notices to the window, one JSON a line", events)
        .add(routes::TAKE, "take", "Make a window live (R4)", take)
        .add(routes::START, "start", "The same as take (R4)", take)
        .add(routes::STOP, "stop", "Stop a window; nobody takes its place (R5)", stop)
        .add(routes::RESTART, "restart", "Restart the agent of a window (R7)", restart)
        .add(routes::WINDOW, "window", "One window", window)
        .add(routes::CHANGE_WINDOW, "change_window", "Change the settings of a window (R8)", change_window)
        .add(routes::SETTINGS, "settings", "Settings in force", settings)
        .add(routes::CHANGE_SETTINGS, "change_settings", "Change settings", change_settings)
        .add(routes::STATUS, "status", "The coordinator and all windows", status)
        .add(routes::ROTATE_TOKEN, "rotate_token", "Make all client tokens worthless", rotate)
        .add(
            routes::TOKEN_HEARD,
            "token_heard",
            "Revoke a client token that another user showed",
            token_heard,
        )
        .add(routes::CHANGE_PORT, "change_port", "Move to another port", change_port)
        .add(routes::LOOK, "look", "What the page shows", look)
        .add(routes::PAGE, "page", "A one-time link to the page, for a browser on this machine", page)
        .add(routes::PROFILE, "profile", "Where a window's agent or the coordinator spends its time", profile)
        .add(routes::RECORDING, "recording", "The record of calls that runs, or the last one", recording)
        .add(routes::RECORD, "record", "Start a record of calls, or end it", record)
        .add(routes::RAW, "raw", "The last events that went to clients", raw)
        .add(routes::REPLACE, "replace", "Hand everything over to another version", replace)
        .add(routes::SHUTDOWN, "shutdown", "Answer, then end the coordinator", shutdown)
}

/// The answer of every route.
type Answer<T> = Result<Json<T>, ControlError>;

async fn hello(
    State(state): State<ControlState>,
    way: Option<Extension<Way>>,
    headers: HeaderMap,
) -> Answer<HelloAnswer> {
    if matches!(way, Some(Extension(Way::Socket))) {
        // Who reaches the socket knows who we are, and we who they are.
        return Ok(Json(state.hello_answer(state.port())));
    }
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let ports = state.inner.ports.borrow().clone();
    let secret = &state.inner.secret;
    // Only a credential made for a port of ours counts: what a stranger captured on its own is worth nothing.
    let proven =
        ports.into_iter().find_map(|port| Some((port, HelloCredential::from_bearer(bearer, secret, port)?)));
    let Some((port, caller)) = proven else { return Err(ControlError::unproven()) };
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|_| ControlError::no_randomness())?;
    let nonce = nonce.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut answer = HelloAnswer { nonce, ..state.hello_answer(port) };
    answer.sign(secret, &caller.nonce);
    Ok(Json(answer))
}

async fn ping(State(state): State<ControlState>) -> Json<Pong> {
    Json(Pong { instance: state.keeper().roster().instance.clone() })
}

async fn register(
    State(state): State<ControlState>,
    Path(id): Path<String>,
    Checked(register): Checked<Register>,
) -> Answer<Registered> {
    let id = validate::window_id(id)?;
    validate::register(&register, &state.inner.ports.borrow())?;
    Ok(Json(state.with_port(state.keeper().register(id, register).await?)))
}

async fn heartbeat(
    State(state): State<ControlState>,
    Path(id): Path<String>,
    Checked(mut heartbeat): Checked<Heartbeat>,
) -> Answer<Registered> {
    let id = validate::window_id(id)?;
    validate::heartbeat(&heartbeat)?;
    let holds = Holds::take(&mut heartbeat);
    let registered = state.keeper().heartbeat(id.clone(), heartbeat).await?;
    state.inner.page.holdings().hear(&state.keeper().roster(), id, holds);
    Ok(Json(state.with_port(registered)))
}

async fn leave(
    State(state): State<ControlState>,
    Path(id): Path<String>,
    Checked(leave): Checked<Leave>,
) -> Answer<Done> {
    state.keeper().leave(validate::window_id(id)?, leave.incarnation).await?;
    Ok(Json(Done {}))
}

/// The query of the event stream.
#[derive(Debug, Deserialize, JsonSchema)]
struct EventsQuery {
    /// As registered.
    incarnation: u64,
}

async fn events(
    State(state): State<ControlState>,
    Path(id): Path<String>,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Response, ControlError> {
    let id = validate::window_id(id)?;
    let Query(EventsQuery { incarnation }) =
        query.map_err(|rejection| ControlError::bad_request(&rejection))?;
    let events = state.keeper().open_events(id, incarnation).await?;
    let body = Body::from_stream(futures_util::stream::unfold(events, next_line));
    let response = Response::builder()
        .header(header::CONTENT_TYPE, "application/x-ndjson")
        .header(header::CACHE_CONTROL, "no-store")
        .body(body);
    response.map_err(|_| ControlError::internal())
}

/// One notice as a line, with the rest of the stream.
async fn next_line(mut events: Events) -> Option<(Result<Bytes, Infallible>, Events)> {
    let notice = events.next().await?;
    let mut line = serde_json::to_vec(&notice).ok()?;
    line.push(b'\n');
    Some((Ok(line.into()), events))
}

async fn take(State(state): State<ControlState>, Path(window): Path<String>) -> Answer<Outcome> {
    Ok(Json(state.keeper().take(state.window(&window).await?).await?))
}

async fn stop(State(state): State<ControlState>, Path(window): Path<String>) -> Answer<Outcome> {
    Ok(Json(state.keeper().stop(state.window(&window).await?).await?))
}

async fn restart(State(state): State<ControlState>, Path(window): Path<String>) -> Answer<Outcome> {
    Ok(Json(state.keeper().restart(state.window(&window).await?).await?))
}

async fn window(State(state): State<ControlState>, Path(window): Path<String>) -> Answer<WindowStatus> {
    let roster = state.keeper().snapshot().await?;
    Ok(Json(status::window_status(resolve_typed(&roster, &window)?)))
}

async fn change_window(
    State(state): State<ControlState>,
    Path(window): Path<String>,
    Checked(change): Checked<WindowSettings>,
) -> Answer<Outcome> {
    let window = state.window(&window).await?;
    match change.auto_start {
        Some(on) => Ok(Json(state.keeper().set_auto_start(window, on).await?)),
        None => Err(ControlError::invalid("name something to change: auto_start".to_owned())),
    }
}

async fn settings(State(state): State<ControlState>) -> Json<Settings> {
    Json((*state.keeper().roster().settings).clone())
}

async fn change_settings(
    State(state): State<ControlState>,
    Checked(change): Checked<SettingsChange>,
) -> Answer<Settings> {
    validate::settings(&change)?;
    let (reply, changed) = oneshot::channel();
    state.order(Order::ChangeSettings(Box::new(change), reply)).await?;
    match changed.await {
        Ok(Ok(settings)) => Ok(Json(settings)),
        Ok(Err(why)) => Err(ControlError::not_written(why)),
        Err(_) => Err(KeeperError::Ended.into()),
    }
}

async fn status(State(state): State<ControlState>) -> Answer<Status> {
    let status = status::status(&*state.keeper().snapshot().await?, state.port());
    let warnings = state.inner.warnings.borrow().clone();
    Ok(Json(Status { warnings, ..status }))
}

async fn rotate(State(state): State<ControlState>) -> Answer<Rotated> {
    let (reply, rotated) = oneshot::channel();
    state.order(Order::RotateToken(reply)).await?;
    match rotated.await {
        Ok(Ok(epoch)) => Ok(Json(Rotated { epoch })),
        Ok(Err(why)) => Err(ControlError::not_written(why)),
        Err(_) => Err(KeeperError::Ended.into()),
    }
}

async fn token_heard(State(state): State<ControlState>, Checked(heard): Checked<TokenHeard>) -> Answer<Done> {
    let (reply, revoked) = oneshot::channel();
    state.order(Order::TokenHeard(heard, reply)).await?;
    revoked.await.map_err(|_| KeeperError::Ended)?;
    Ok(Json(Done {}))
}

async fn change_port(
    State(state): State<ControlState>,
    Checked(change): Checked<PortChange>,
) -> Answer<PortChanged> {
    validate::port(change.port)?;
    let (reply, changed) = oneshot::channel();
    state.order(Order::ChangePort(change.port, reply)).await?;
    match changed.await {
        Ok(Ok(())) => Ok(Json(PortChanged { url: status::url(change.port) })),
        Ok(Err(refused)) => Err(ControlError::conflict("port_refused", refused.0)),
        Err(_) => Err(KeeperError::Ended.into()),
    }
}

async fn look(State(state): State<ControlState>) -> Json<Look> {
    Json(state.inner.page.look())
}

async fn page(State(state): State<ControlState>) -> Json<PageLink> {
    Json(PageLink { url: state.inner.page.link() })
}

async fn profile(State(state): State<ControlState>, Checked(wish): Checked<ProfileWish>) -> Answer<Profile> {
    validate::profile(&wish)?;
    let Some(window) = wish.window else {
        let taken = baton_profile::take(wish.seconds).await;
        return taken.map(Json).map_err(|error| unprofiled(Explanation::new(error.to_string())));
    };
    let window = state.window(&window).await?;
    let (reply, taken) = oneshot::channel();
    state.order(Order::Edge(EdgeOrder::Profile(window, wish.seconds, reply))).await?;
    match taken.await {
        Ok(Ok(profile)) => Ok(Json(profile)),
        Ok(Err(why)) => Err(unprofiled(why)),
        Err(_) => Err(KeeperError::Ended.into()),
    }
}

fn unprofiled(why: Explanation) -> ControlError {
    ControlError::conflict("no_profile", why)
}

async fn record(State(state): State<ControlState>, Checked(wish): Checked<RecordWish>) -> Answer<Recorded> {
    let (reply, recorded) = oneshot::channel();
    state.order(Order::Edge(EdgeOrder::Record(wish, reply))).await?;
    match recorded.await {
        Ok(Ok(recorded)) => Ok(Json(recorded)),
        Ok(Err(why)) => Err(ControlError::conflict("no_record", why)),
        Err(_) => Err(KeeperError::Ended.into()),
    }
}

async fn recording(State(state): State<ControlState>) -> Answer<Recording> {
    let (reply, recording) = oneshot::channel();
    state.order(Order::Edge(EdgeOrder::Recording(reply))).await?;
    Ok(Json(recording.await.map_err(|_| KeeperError::Ended)?))
}

async fn raw(State(state): State<ControlState>, Checked(wish): Checked<RawWish>) -> Answer<RawLook> {
    let (reply, look) = oneshot::channel();
    state.order(Order::Edge(EdgeOrder::Raw(wish, reply))).await?;
    Ok(Json(look.await.map_err(|_| KeeperError::Ended)?))
}

async fn replace(State(state): State<ControlState>, Checked(replace): Checked<Replace>) -> Answer<Replaced> {
    let program = validate::program(replace.program)?;
    let (reply, replaced) = oneshot::channel();
    state.order(Order::Replace(program, reply)).await?;
    match replaced.await {
        Ok(Ok(port)) => Ok(Json(Replaced { port })),
        Ok(Err(why)) => Err(ControlError::conflict("not_replaced", why)),
        Err(_) => Err(KeeperError::Ended.into()),
    }
}

async fn shutdown(State(state): State<ControlState>) -> Answer<Done> {
    state.order(Order::Shutdown).await?;
    Ok(Json(Done {}))
}

/// A failure with the given code.
fn failure(code: &str, Explanation { message, hint }: Explanation) -> Failure {
    Failure { code: code.to_owned(), message, hint, candidates: Vec::new() }
}
