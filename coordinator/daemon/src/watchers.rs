//! Who hears of each tool call: what is counted, and what the page shows.

use std::sync::Arc;

use baton_edge::{End, Named, Observer};
use baton_link::home::Home;
use baton_metrics::Metrics;
use baton_page::Seen;
use baton_page::holdings::Holdings;
use baton_page::journal::Journal;
use baton_proto::ids::WindowId;
use baton_proto::page::CallState;

/// See the module.
#[derive(Debug)]
pub struct Watchers {
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What the page shows.
    pub journal: Arc<Journal>,
    /// What windows hold, which is counted and shown.
    pub holdings: Holdings,
}

impl Watchers {
    /// Nobody has called yet.
    pub fn new() -> Self {
        let holdings = Holdings::default();
        Self { metrics: Metrics::new(holdings.clone()), journal: Arc::default(), holdings }
    }

    /// What a page shows of it.
    pub fn seen(&self, home: &Home) -> Seen {
        let (journal, holdings) = (self.journal.clone(), self.holdings.clone());
        Seen { journal, holdings, logs: Some(home.logs_path()), ..Seen::default() }
    }
}

impl Default for Watchers {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for Watchers {
    fn came(&self, call: &Named<'_>, arguments: Option<&str>) {
        self.metrics.came(call, arguments);
        self.journal.came(call.id, call.tool, call.client, arguments);
    }

    fn held(&self, id: &str, is_held: bool) {
        self.metrics.held(id, is_held);
        self.journal.held(id, is_held);
    }

    fn sent(&self, id: &str, window: &WindowId) {
        self.journal.sent(id, window);
    }

    fn over(&self, call: &Named<'_>, end: Option<End>) {
        self.metrics.over(call, end);
        let state = end.map_or(CallState::PassedOn, |End { error, took, n_bytes }| CallState::Done {
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            error: error.map(str::to_owned),
            n_bytes: n_bytes as u64,
        });
        self.journal.over(call.id, state);
    }
}
