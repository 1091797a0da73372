//! How errors of `/v1` are answered: always a [`Failure`], never a bare status.

use std::fmt::Display;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use baton_proto::control::Failure;
use serde::de::DeserializeOwned;

use super::failure;
use crate::election::Refused;
use crate::keeper::KeeperError;
use crate::resolve::Unresolved;

/// An error of `/v1` with its status.
#[derive(Debug)]
pub(super) struct ControlError {
    status: StatusCode,
    failure: Failure,
}

impl ControlError {
    fn new(status: StatusCode, code: &str, message: String) -> Self {
        Self { status, failure: failure(code, message) }
    }

    /// A request that could be read and makes no sense.
    pub(super) fn invalid(message: String) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
    }

    /// A request that could not be read.
    pub(super) fn bad_request(cause: &impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", format!("the request cannot be read: {cause}"))
    }

    pub(super) fn conflict(code: &str, message: String) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    /// Says nothing about what was wrong with the credential.
    pub(super) fn unproven() -> Self {
        let message = "say hello with a credential made from the secret in the state folder, for this port";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message.to_owned())
    }

    pub(super) fn no_randomness() -> Self {
        let message = "the operating system gives no random numbers; try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no_randomness", message.to_owned())
    }

    /// A change that would not outlast this coordinator.
    pub(super) fn not_written(message: String) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "not_written", message)
    }

    pub(super) fn internal() -> Self {
        let message = "the coordinator could not form an answer; `baton logs` says more";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message.to_owned())
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
        Self::new(status, code, error.to_string())
    }
}

impl From<Unresolved> for ControlError {
    fn from(error: Unresolved) -> Self {
        let message = error.to_string();
        match error {
            Unresolved::Unknown { .. } => Self::new(StatusCode::NOT_FOUND, "unknown_window", message),
            Unresolved::Ambiguous { candidates, .. } => {
                let mut error = Self::new(StatusCode::CONFLICT, "ambiguous_window", message);
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
        Self::new(rejection.status(), code, format!("the request cannot be read: {}", rejection.body_text()))
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
    let message = "there is no such route; docs/openapi.json lists them";
    ControlError::new(StatusCode::NOT_FOUND, "unknown_route", message.to_owned())
}

/// A route with another method.
pub(super) async fn wrong_method() -> ControlError {
    let message = "this route has another method; docs/openapi.json lists them";
    ControlError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message.to_owned())
}
