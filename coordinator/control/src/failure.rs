//! How errors of `/v1` are answered: always a [`Failure`], never a bare status.

use std::fmt::Display;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use baton_election::election::Refused;
use baton_election::keeper::KeeperError;
use baton_election::resolve::Unresolved;
use baton_link::explain::Explanation;
use baton_proto::control::Failure;
use serde::de::DeserializeOwned;

use crate::failure;

/// An error of `/v1` with its status.
#[derive(Debug)]
pub(super) struct ControlError {
    status: StatusCode,
    failure: Failure,
}

impl ControlError {
    fn new(status: StatusCode, code: &str, why: Explanation) -> Self {
        Self { status, failure: failure(code, why) }
    }

    /// A request that could be read and makes no sense.
    pub(super) fn invalid(message: String) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", Explanation::new(message))
    }

    /// A request that could not be read.
    pub(super) fn bad_request(cause: &impl Display) -> Self {
        let why = Explanation::new(format!("malformed request: {cause}"));
        Self::new(StatusCode::BAD_REQUEST, "bad_request", why)
    }

    pub(super) fn conflict(code: &str, why: Explanation) -> Self {
        Self::new(StatusCode::CONFLICT, code, why)
    }

    /// Says nothing about what was wrong with the credential.
    pub(super) fn unproven() -> Self {
        let why = Explanation::new("unauthorized").with_hint(
            "call hello with a credential made from the secret in the state folder, for this port",
        );
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", why)
    }

    pub(super) fn no_randomness() -> Self {
        let why =
            Explanation::new("cannot get random numbers from the operating system").with_hint("try again");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no_randomness", why)
    }

    /// A change that would not outlast this coordinator.
    pub(super) fn not_written(why: Explanation) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "not_written", why)
    }

    pub(super) fn internal() -> Self {
        let why = Explanation::new("internal error in the coordinator").with_hint("check `baton logs`");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", why)
    }
}

impl IntoResponse for ControlError {
    fn into_response(self) -> Response {
        (self.status, Json(self.failure)).into_response()
    }
}

impl From<KeeperError> for ControlError {
    fn from(error: KeeperError) -> Self {
        let (status, code) = match &error {
            KeeperError::Refused(Refused::NotRegistered) => (StatusCode::NOT_FOUND, "not_registered"),
            KeeperError::Refused(Refused::StaleIncarnation) => (StatusCode::CONFLICT, "stale_incarnation"),
            KeeperError::Refused(Refused::TooManyWindows) => (StatusCode::CONFLICT, "too_many_windows"),
            KeeperError::Refused(Refused::ImpossibleTerm) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "impossible_term")
            }
            KeeperError::NobodyToAsk => (StatusCode::CONFLICT, "nobody_to_ask"),
            KeeperError::Ended => (StatusCode::SERVICE_UNAVAILABLE, "ending"),
        };
        Self::new(
            status,
            code,
            Explanation { message: error.to_string(), hint: error.hint().map(str::to_owned) },
        )
    }
}

impl From<Unresolved> for ControlError {
    fn from(error: Unresolved) -> Self {
        let why = Explanation::new(&error).with_hint(error.hint());
        match error {
            Unresolved::Unknown { .. } => Self::new(StatusCode::NOT_FOUND, "unknown_window", why),
            Unresolved::Ambiguous { candidates, .. } => {
                let mut error = Self::new(StatusCode::CONFLICT, "ambiguous_window", why);
                error.failure.candidates = candidates;
                error
            }
        }
    }
}

impl From<JsonRejection> for ControlError {
    fn from(rejection: JsonRejection) -> Self {
        let code = match &rejection {
            JsonRejection::JsonDataError(_) => "invalid",
            JsonRejection::MissingJsonContentType(_) => "not_json",
            _ if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => "too_large",
            _ => "bad_request",
        };
        let why = Explanation::new(format!("malformed request: {}", rejection.body_text()));
        Self::new(rejection.status(), code, why)
    }
}

/// A JSON body; what is wrong with it is answered as a [`Failure`].
#[derive(Debug)]
pub(super) struct Checked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Checked<T> {
    type Rejection = ControlError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ControlError> {
        let Json(body) = Json::<T>::from_request(request, state).await?;
        Ok(Self(body))
    }
}

/// What no route answers.
pub(super) async fn unknown_route() -> ControlError {
    let why = Explanation::new("unknown route").with_hint("see docs/openapi.json");
    ControlError::new(StatusCode::NOT_FOUND, "unknown_route", why)
}

/// A route with another method.
pub(super) async fn wrong_method() -> ControlError {
    let why = Explanation::new("method not allowed").with_hint("see docs/openapi.json");
    ControlError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", why)
}
