//! Where this agent spends its time, for the coordinator.

use baton_profile::take;
use baton_proto::control::MAX_PROFILE_S;
use hyper::StatusCode;

use super::gate::{self, Refusal};

/// Answers when the time has passed that the query names.
pub(super) async fn answer(query: Option<&str>) -> Refusal {
    let seconds = query.and_then(|query| query.strip_prefix("seconds=")?.parse().ok());
    let Some(seconds) = seconds.filter(|seconds| (1..=MAX_PROFILE_S).contains(seconds)) else {
        return gate::plain(StatusCode::BAD_REQUEST, "seconds must be 1 to 300");
    };
    match take(seconds).await {
        Ok(profile) => gate::json(StatusCode::OK, serde_json::to_string(&profile).unwrap_or_default()),
        Err(error) => gate::json(StatusCode::CONFLICT, error.to_string()),
    }
}
