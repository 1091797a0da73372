//! Looks every two seconds at what the processes of sessions take, as long as there are any, and ends those that take
//! more than they may.
//!
//! Not by the kernel's own limits: that of address space counts what node and Java only reserve, that of processes
//! counts all of the user's, and a control group must have been given to us by whoever started the window.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_agent_base::process::{self, Taken};
use baton_link::blocking;
use tokio::sync::{mpsc, watch};

use super::Engine;
use super::limits::{Verdict, judge, near_of};
use crate::breakpoints::SessionKey;
use crate::host::inbox::FromHost;
use crate::types::SessionSummary;
use crate::types::control::{Limits, News, What};

/// Between two looks. A look reads a file of every process of the machine.
const EVERY: Duration = Duration::from_secs(2);
/// What is told of no session in particular.
const NO_SESSION: SessionKey = 0;

/// Looks, and tells the engine, until that is gone. A simulation has no processes.
pub(super) async fn run(
    prefix: String,
    mut sessions: watch::Receiver<Vec<SessionSummary>>,
    limits: watch::Receiver<Limits>,
    inbox: mpsc::WeakSender<(SessionKey, FromHost)>,
) {
    while !cfg!(sim) && sessions.wait_for(|all| !all.is_empty()).await.is_ok() {
        tokio::time::sleep(EVERY).await;
        let limit = *limits.borrow();
        if limit.memory.is_none() && limit.processes.is_none() {
            continue;
        }
        let (beginning, enough) = (format!("{prefix}-"), limit.memory.map_or(u64::MAX, near_of));
        let Ok(taken) = blocking::run(move || process::taken(&beginning, enough)).await else { return };
        let Some(inbox) = inbox.upgrade() else { return };
        if inbox.send((NO_SESSION, FromHost::Taken(taken))).await.is_err() {
            return;
        }
    }
}

impl Engine {
    /// This is what the processes take, by their marks.
    pub(super) fn on_taken(&mut self, taken: &BTreeMap<String, Taken>) {
        let limits = *self.limits.borrow();
        let mut by_root: BTreeMap<SessionKey, Taken> = BTreeMap::new();
        for live in self.sessions.values() {
            let Some(of_live) = live.mark.as_ref().and_then(|mark| taken.get(mark)) else { continue };
            let sum = by_root.entry(live.root).or_default();
            sum.bytes += of_live.bytes;
            sum.n_processes += of_live.n_processes;
        }
        for (root, Taken { bytes, n_processes }) in by_root {
            let Some(live) = self.sessions.get_mut(&root).filter(|live| live.end_reason.is_none()) else {
                continue;
            };
            match judge(&limits, bytes, n_processes) {
                Verdict::Fine => {}
                Verdict::Near(_) if live.was_warned => {}
                Verdict::Near(text) => {
                    live.was_warned = true;
                    tracing::warn!(session = %live.id, bytes, n_processes, "near a limit");
                    let what = What::Limit(text);
                    let news = News { session: live.id.clone(), name: live.name.clone(), what };
                    self.untold.note(live.owner.as_deref().unwrap_or_default(), news);
                }
                Verdict::Over(why) => {
                    tracing::warn!(session = %live.id, bytes, n_processes, "takes too much and is ended");
                    live.end_reason = Some(why);
                    self.stop_tree(root);
                }
            }
        }
    }
}
