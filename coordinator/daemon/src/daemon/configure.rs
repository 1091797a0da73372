//! Settings: what the user wrote into `config.toml`, and what a command changes there.

use std::time::Instant;

use baton_link::explain::Explanation;
use baton_proto::control::{Settings, SettingsChange};
use tracing::{info, warn};

use super::Daemon;
use super::remember::save;
use crate::configuration::Found;

impl Daemon {
    /// Takes what the file says since it was changed.
    pub(super) async fn look_at_configuration(&mut self) {
        let settings = match self.configuration.look() {
            None => return,
            Some(Found::Broken(why)) => {
                warn!("{why}");
                self.tell_warnings();
                return;
            }
            Some(Found::Nothing) => Settings::default(),
            Some(Found::Settings(change)) => Settings::default().changed(*change),
        };
        if settings != self.saved.borrow().settings {
            info!(path = %self.configuration.path().display(), "takes the settings that were changed");
        }
        // Fails only when the keeper is gone, and the coordinator with it.
        let _ = self.keeper.change_settings(settings.into()).await;
        self.note_configuration();
        self.tell_warnings();
    }

    /// What is counted goes to whom the settings name, when it is time.
    pub(super) fn push_figures(&mut self) {
        let roster = self.keeper.watch().borrow().clone();
        let endpoint = self.saved.borrow().settings.otlp_endpoint.clone();
        if self.push.look(&endpoint, &roster, Instant::now()).is_some() {
            self.tell_warnings();
        }
    }

    /// What was counted since, once no call runs any more.
    pub(super) async fn push_last(&self) {
        let roster = self.keeper.watch().borrow().clone();
        let endpoint = self.saved.borrow().settings.otlp_endpoint.clone();
        if let Some(sending) = self.push.last(&endpoint, &roster) {
            // A panic of the sender's is in the log.
            let _ = tokio::task::spawn_blocking(move || sending.join()).await;
        }
    }

    /// For the next coordinator: whether a file that is not there any more was removed.
    pub(super) fn note_configuration(&self) {
        let is_there = self.configuration.is_there();
        if self.state.current().configured != is_there {
            save(&self.state, |state| state.configured = is_there);
        }
    }

    /// Writes a change down, and then makes it.
    pub(super) async fn change_settings(&mut self, change: SettingsChange) -> Result<Settings, Explanation> {
        self.configuration.write(&change, &self.saved.borrow().settings)?;
        self.keeper.change_settings(change).await.map_err(Explanation::new)
    }
}
