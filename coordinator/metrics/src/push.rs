//! Sends the figures to a collector that speaks OTLP over HTTP, while the user names one.
//!
//! While nobody is named nothing of this runs. A request is made on a thread of its own, which ends with it: a collector
//! that hangs holds up nobody.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baton_election::roster::Roster;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use parking_lot::Mutex;
use prost::Message as _;
use tracing::{info, warn};
use ureq::Agent;

use crate::Metrics;
use crate::otlp::{self, Source};
use crate::schedule::Schedule;

/// Longest that a request may take, names and all.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest that the last request of a coordinator that ends may take: somebody waits for it.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// Longest answer that is read.
const MAX_ANSWER: u64 = 64 * 1024;
/// Longest text of a collector's that is shown.
const MAX_SHOWN: usize = 200;

/// Sends figures.
#[derive(Debug)]
pub struct Push {
    metrics: Arc<Metrics>,
    source: Source,
    schedule: Schedule,
    outcome: Arc<Mutex<Outcome>>,
    /// The warning that was given last.
    told: Option<String>,
}

/// What became of the last request.
#[derive(Debug, Default)]
struct Outcome {
    endpoint: String,
    /// Why it failed.
    why: Option<String>,
}

impl Push {
    /// Of a coordinator with this ID that begins to count now.
    pub fn new(metrics: Arc<Metrics>, instance: &str) -> Self {
        let source = Source { instance: instance.to_owned(), since: now() };
        Self { metrics, source, schedule: Schedule::default(), outcome: Arc::default(), told: None }
    }

    /// To be called each second, with the collector of the settings: sends when it is time. Gives the warning for
    /// `baton status` when it has changed; `Some(None)` when nothing is wrong any more.
    pub fn look(&mut self, endpoint: &str, roster: &Roster, at: Instant) -> Option<Option<String>> {
        if self.schedule.is_due(endpoint, at) {
            self.send(endpoint, roster, PATIENCE);
        }
        let warning = self.outcome.lock().warning(endpoint);
        (warning != self.told).then(|| {
            self.told.clone_from(&warning);
            warning
        })
    }

    /// Sends what was counted since the last time, for a coordinator that ends; to be waited for, at most a second.
    pub fn last(&self, endpoint: &str, roster: &Roster) -> Option<JoinHandle<()>> {
        if endpoint.is_empty() { None } else { self.send(endpoint, roster, LAST_PATIENCE) }
    }

    fn send(&self, endpoint: &str, roster: &Roster, patience: Duration) -> Option<JoinHandle<()>> {
        let body = otlp::request(&self.metrics.families(roster), &self.source, now()).encode_to_vec();
        let (endpoint, outcome) = (endpoint.to_owned(), self.outcome.clone());
        let sent = std::thread::Builder::new().name("otlp".to_owned()).spawn(move || {
            let why = send(&endpoint, &body, patience).err();
            outcome.lock().is_now(endpoint, why);
        });
        sent.inspect_err(|error| warn!(%error, "cannot start a thread that sends the figures")).ok()
    }

    /// The warning of now.
    pub fn warning(&self) -> Option<&str> {
        self.told.as_deref()
    }
}

impl Outcome {
    fn is_now(&mut self, endpoint: String, why: Option<String>) {
        let is_same = self.endpoint == endpoint;
        match (&why, self.why.is_some() && is_same) {
            (Some(why), false) => warn!("{}", not_sent(&endpoint, why)),
            (None, true) => info!("figures reach {endpoint} again"),
            _ => {}
        }
        *self = Self { endpoint, why };
    }

    /// Of the collector that is named now.
    fn warning(&self, endpoint: &str) -> Option<String> {
        let why = self.why.as_ref().filter(|_| !endpoint.is_empty() && self.endpoint == endpoint)?;
        Some(not_sent(endpoint, why))
    }
}

fn not_sent(endpoint: &str, why: &str) -> String {
    format!("cannot send figures to {endpoint}, the setting `otlp_endpoint`: {why}")
}

fn send(endpoint: &str, body: &[u8], patience: Duration) -> Result<(), String> {
    let url = format!("{}/v1/metrics", endpoint.trim_end_matches('/'));
    let mut config = Agent::config_builder()
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        .max_redirects(0)
        .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")));
    if url.starts_with("http:") {
        // On this machine, or in a network that the user trusts: no proxy stands between.
        config = config.proxy(None);
    }
    let request = config.build().new_agent().post(&url).header("content-type", "application/x-protobuf");
    let mut answer = request.send(body).map_err(|error| match error {
        ureq::Error::Timeout(_) => "it did not respond in time".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    })?;
    if !answer.status().is_success() {
        return Err(format!("it answered {}", answer.status()));
    }
    let said = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().unwrap_or_default();
    let refused =
        ExportMetricsServiceResponse::decode(said.as_slice()).ok().and_then(|said| said.partial_success);
    match refused.filter(|refused| refused.rejected_data_points > 0) {
        None => Ok(()),
        Some(refused) => {
            let shown: String =
                refused.error_message.chars().filter(|char| !char.is_control()).take(MAX_SHOWN).collect();
            Err(format!("it refused {} of them: {shown}", refused.rejected_data_points))
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_of_the_collector_that_is_named() {
        let mut outcome = Outcome::default();
        outcome.is_now("http://a".to_owned(), Some("no".to_owned()));
        assert_eq!(
            outcome.warning("http://a").as_deref(),
            Some("cannot send figures to http://a, the setting `otlp_endpoint`: no")
        );
        assert_eq!([outcome.warning("http://b"), outcome.warning("")], [None, None]);
        outcome.is_now("http://a".to_owned(), None);
        assert_eq!(outcome.warning("http://a"), None);
    }

    #[test]
    fn a_collector_that_is_silent_or_gone_is_told_as_such() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let send = || send(&endpoint, b"figures", Duration::from_millis(50));
        assert_eq!(send(), Err("it did not respond in time".to_owned()));
        drop(listener);
        let gone = send().unwrap_err();
        assert!(gone.starts_with("Connection refused"), "{gone}");
    }
}
