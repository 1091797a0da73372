//! What happened to the windows, told from one roster to the next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use baton_election::roster::{Grant, Roster, Window};
use baton_proto::control::WindowState;
use baton_proto::ids::{Term, WindowId};
use baton_proto::page::{Happening, What};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::to_ms;

/// What is remembered; the oldest goes first.
const STORY_MAX: usize = 200;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    told: VecDeque<Arc<Happening>>,
    windows: BTreeMap<WindowId, Arc<Window>>,
    last_term: Option<Term>,
}

/// Follows the roster until `closing`; a new story is published with whatever happens.
pub(crate) fn follow(
    mut roster: watch::Receiver<Arc<Roster>>,
    closing: CancellationToken,
) -> watch::Receiver<Arc<Story>> {
    let (sender, receiver) = watch::channel(Arc::default());
    tokio::spawn(async move {
        let mut story = Story::default();
        loop {
            let current = roster.borrow_and_update().clone();
            if story.go_on(&current, Instant::now()) {
                sender.send_replace(Arc::new(story.clone()));
            }
            tokio::select! {
                changed = roster.changed() => if changed.is_err() { return },
                () = closing.cancelled() => return,
            }
        }
    });
    receiver
}

impl Story {
    /// All of it, the latest last.
    pub(crate) fn happenings(&self) -> Vec<Happening> {
        self.told.iter().map(|happening| (**happening).clone()).collect()
    }

    /// Tells what is new in `roster`; true when there is anything.
    fn go_on(&mut self, roster: &Roster, now: Instant) -> bool {
        let mut news: Vec<(Instant, String, What)> = Vec::new();
        let grants = roster.grants.iter().filter(|grant| self.last_term.is_none_or(|last| grant.term > last));
        news.extend(grants.map(|Grant { at, window, rule, why, .. }| {
            let (rule, why) = ((*rule).to_owned(), (*why).to_owned());
            (*at, window.name.clone(), What::Live { rule, why })
        }));
        self.last_term = roster.grants.last().map(|grant| grant.term).max(self.last_term);
        for (id, window) in &roster.windows {
            let before = self.windows.get(id);
            news.extend(
                changes(before.map(|window| &**window), window)
                    .into_iter()
                    .map(|what| (now, window.name.clone(), what)),
            );
        }
        let gone = self.windows.iter().filter(|(id, _)| !roster.windows.contains_key(*id));
        news.extend(gone.map(|(_, window)| (now, window.name.clone(), What::Closed)));
        self.windows.clone_from(&roster.windows);
        // A window opens before it becomes live.
        news.sort_by_key(|(at, _, what)| (*what != What::Opened, *at));
        for (at, window, what) in &news {
            if self.told.len() >= STORY_MAX {
                self.told.pop_front();
            }
            self.told.push_back(Arc::new(Happening {
                at_ms: to_ms(*at),
                window: window.clone(),
                what: what.clone(),
            }));
        }
        !news.is_empty()
    }
}

/// What happened to one window; that it became live is told by the grant.
fn changes(before: Option<&Window>, window: &Window) -> Vec<What> {
    let mut news = Vec::new();
    if before.is_none() {
        news.push(What::Opened);
    }
    let why = window.why.clone();
    if before.map(|before| before.state) != Some(window.state) {
        match window.state {
            WindowState::Live => {}
            WindowState::Standby => news.push(What::Standby { why }),
            WindowState::Off => news.push(What::Off { why }),
        }
    }
    match (before.is_none_or(|before| before.responsive), window.responsive) {
        (true, false) => news.push(What::Silent),
        (false, true) => news.push(What::Answers),
        _ => {}
    }
    news
}

#[cfg(test)]
mod tests {
    use baton_election::election::Start;
    use baton_election::keeper::Keeper;
    use baton_proto::control::{Register, Settings, WindowKind};
    use baton_proto::ids::InstanceId;

    use super::*;

    fn register(name: &str, auto_start: bool) -> Register {
        serde_json::from_value(serde_json::json!({
            "protocol": 2, "version": "0.1.0", "name": name, "kind": WindowKind::Headless, "folders": ["/src"],
            "auto_start": auto_start, "pid": 10, "port": 4000, "incarnation": 1,
        }))
        .unwrap()
    }

    fn words(story: &Story) -> Vec<String> {
        let word = |Happening { window, what, .. }: &Happening| match what {
            What::Live { rule, why } => format!("{window} live {rule}: {why}"),
            What::Standby { why } => format!("{window} standby: {why}"),
            What::Off { why } => format!("{window} off: {why}"),
            other => format!("{window} {other:?}").to_lowercase(),
        };
        story.happenings().iter().map(word).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_story_says_who_became_live_and_why() {
        let start = Start {
            instance: InstanceId("i".to_owned()),
            generation: 1,
            known: 0,
            is_trusted: true,
            settings: Settings::default(),
            previous: None,
            previous_is_dead: false,
            vacated: None,
        };
        let (keeper, _saved) = Keeper::spawn(start, 0);
        let id = |text: &str| text.parse::<WindowId>().unwrap();
        let mut story = Story::default();
        let mut look = |keeper: &Keeper| {
            story.go_on(&keeper.roster(), Instant::now());
            words(&std::mem::take(&mut story.told).into_iter().fold(Story::default(), |mut told, one| {
                told.told.push_back(one);
                told
            }))
        };
        keeper.register(id("a"), register("shop", true)).await.unwrap();
        assert_eq!(look(&keeper), ["shop opened", "shop live R1: no other window was live"]);
        keeper.register(id("b"), register("api", true)).await.unwrap();
        keeper.register(id("c"), register("old", false)).await.unwrap();
        let opened = ["api opened", "old opened", "api standby: shop is live", "old off: auto-start is off"];
        assert_eq!(look(&keeper), opened);
        keeper.take(id("b")).await.unwrap();
        assert_eq!(look(&keeper), ["api live R4: you chose it", "shop standby: api is live"]);
        keeper.stop(id("b")).await.unwrap();
        assert_eq!(look(&keeper), ["api off: you stopped it"]);
        keeper.leave(id("c"), 1).await.unwrap();
        assert_eq!(look(&keeper), ["old closed"]);
        assert!(look(&keeper).is_empty(), "nothing is told twice");
    }
}
