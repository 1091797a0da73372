//! The token of MCP clients: rotated by the user, and revoked when another user of the machine shows it.

use std::time::{SystemTime, UNIX_EPOCH};

use baton_http::guard::TokenNews;
use baton_link::explain::Explanation;
use tracing::{error, info, warn};

use super::{
    Daemon,
    remember::{not_written, save},
};
use crate::state::HeardBy;

/// How long a revocation is warned of, in seconds; `baton token --rotate` ends it, too.
const WARN_FOR: u64 = 7 * 24 * 60 * 60;

impl Daemon {
    pub(super) async fn on_token_news(&mut self, news: TokenNews) {
        match news {
            TokenNews::Heard { uid, epoch } => self.on_heard(uid, epoch).await,
            TokenNews::Rotated { epoch } => self.on_rotated(epoch).await,
        }
    }

    /// A client knows of a rotation that went with our state; the keeper's next change of the file has it again.
    async fn on_rotated(&mut self, epoch: u32) {
        warn!(epoch, "the state misses the last rotation of the client token, which a client knows");
        let _ = self.keeper.set_client_epoch(epoch).await;
    }

    /// A token that another user shows was heard where it should not have been: it is worth nothing from now on.
    pub(super) async fn on_heard(&mut self, uid: u32, epoch: u32) {
        if self.state.current().client_epoch != epoch {
            return;
        }
        error!(
            target: "audit",
            uid, "another user on this machine used the client token, so it was revoked; run `baton config CLIENT --write` for each client"
        );
        let seen = HeardBy { uid, unix_seconds: unix_seconds() };
        save(&self.state, |state| state.heard_by = Some(seen));
        if let Err(why) = self.rotate_token().await {
            error!("{why}");
            // Refused for as long as this coordinator lives, at least.
            let _ = self.keeper.set_client_epoch(epoch.saturating_add(1)).await;
        }
        self.tell_warnings();
    }

    /// The user rotates the token, and so knows of what he was warned of.
    pub(super) async fn rotate_as_told(&self) -> Result<u32, Explanation> {
        let epoch = self.rotate_token().await?;
        save(&self.state, |state| state.heard_by = None);
        self.tell_warnings();
        Ok(epoch)
    }

    /// What `baton status` warns of.
    pub(super) fn tell_warnings(&self) {
        let heard_by = self.state.current().heard_by;
        let recent = heard_by.filter(|heard| unix_seconds().saturating_sub(heard.unix_seconds) < WARN_FOR);
        let warnings = recent.map(|heard| {
            format!(
                "user {} on this machine used the client token, so it was revoked; run `baton config CLIENT --write` \
                 for each client, then `baton token --rotate` to clear this warning",
                heard.uid
            )
        });
        let of_file = self.configuration.warning().map(str::to_owned);
        let of_figures = self.push.warning().map(str::to_owned);
        self.warnings.send_replace(warnings.into_iter().chain(of_file).chain(of_figures).collect());
    }

    /// Written before it is in force: whoever is refused with the old token finds the new epoch in the file.
    async fn rotate_token(&self) -> Result<u32, Explanation> {
        let epoch = self.state.current().client_epoch.saturating_add(1);
        let written = self.state.update_or_undo(|state| state.client_epoch = epoch);
        written.map_err(|error| not_written("token", &error))?;
        self.keeper.set_client_epoch(epoch).await.map_err(Explanation::new)?;
        info!(epoch, "the client token was rotated");
        Ok(epoch)
    }
}

/// Only for people to read, and to forget old warnings by.
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
