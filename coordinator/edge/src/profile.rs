//! Asks a window's agent where it spends its time.

use baton_election::roster::Window;
use baton_proto::control::Profile;
use baton_proto::edge::PROFILE_PATH;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};

use super::upstream::Windows;

/// Largest profile that is taken from an agent.
const PROFILE_MAX: usize = 32 * 1024 * 1024;

/// Why a window has no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// It is not there, or does not listen.
    #[error("cannot reach the window: {0}")]
    Unreachable(String),
    /// Its agent is of another version.
    #[error("the agent of this window cannot take profiles")]
    Unable,
    /// It says so.
    #[error("{0}")]
    Refused(String),
}

/// Where the agent of a window spends its time, from now on for so many seconds.
pub(crate) async fn ask(windows: &Windows, window: &Window, seconds: u64) -> Result<Profile, ProfileError> {
    let upstream = windows.upstream(window);
    let unreachable = |why: &dyn std::fmt::Display| ProfileError::Unreachable(why.to_string());
    let (mut sender, _) = upstream.connection().await.map_err(|why| unreachable(&why))?;
    let request = Request::get(format!("{PROFILE_PATH}?seconds={seconds}"))
        .header(header::HOST, upstream.authority.clone())
        .header(header::AUTHORIZATION, upstream.bearer.clone())
        .body(Full::default())
        .map_err(|error| unreachable(&error))?;
    let answer = async {
        let response = sender.send(request).await.map_err(|error| unreachable(error.error()))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), PROFILE_MAX).collect().await;
        Ok((status, body.map_err(|error| unreachable(&error))?.to_bytes()))
    };
    let (status, body) = tokio::select! {
        answer = answer => answer?,
        () = upstream.gone.cancelled() => return Err(unreachable(&"it exited")),
    };
    match status {
        StatusCode::OK => serde_json::from_slice(&body).map_err(|error| unreachable(&error)),
        StatusCode::NOT_FOUND => Err(ProfileError::Unable),
        _ => Err(ProfileError::Refused(String::from_utf8_lossy(&body).trim().to_owned())),
    }
}
