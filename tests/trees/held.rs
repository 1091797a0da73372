//! Programs that clients hold in the debugger, whichever window is live by now: none moves or ends but by its client, or by
//! its handle.

use baton_tests::bridge::Shown;
use fastrand::Rng;

use crate::forest::Forest;
use crate::speaker::{Act, Speaker};
use crate::windows::Windows;

/// More are not held at once: each is a debugger and a program.
const MAX: usize = 3;

/// A program that stands at a line.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// What it writes down with each line.
    serial: u64,
    /// Its session; empty when nobody was told.
    pub(crate) id: String,
    /// The client that started it, and whether that is still there.
    owner: u64,
    is_owned: bool,
    /// The folder that it lies in.
    place: &'static str,
    /// The window that debugs it, and which start of its agent that was.
    window: &'static str,
    start: u64,
    is_over: bool,
    /// Nobody knows whether it goes on by itself.
    is_loose: bool,
}

/// All that were held.
#[derive(Default)]
pub(crate) struct Programs(Vec<Held>);

impl Programs {
    fn is_there(held: &Held, windows: &Windows) -> bool {
        !held.is_over && windows.start_of(held.window) == Some(held.start)
    }

    /// One that is held, or was.
    pub(crate) fn any(&self, rng: &mut Rng, windows: &Windows) -> Option<&Held> {
        let told = self.0.iter().filter(|held| !held.id.is_empty());
        let there: Vec<&Held> = told.clone().filter(|held| Self::is_there(held, windows)).collect();
        let all: Vec<&Held> = if there.is_empty() || rng.u32(..5) == 0 { told.collect() } else { there };
        (!all.is_empty()).then(|| all[rng.usize(..all.len())])
    }

    pub(crate) fn is_full(&self, windows: &Windows) -> bool {
        self.0.iter().filter(|held| Self::is_there(held, windows)).count() >= MAX
    }

    /// A client is gone; what becomes of its programs is not asked here.
    pub(crate) fn disown(&mut self, owner: u64) {
        self.0.iter_mut().filter(|held| held.owner == owner).for_each(|held| held.is_owned = false);
    }

    /// The window that a call by a handle means, if it must be that one.
    pub(crate) fn window_of(&self, id: &str, windows: &Windows) -> Option<&'static str> {
        let held = self.0.iter().find(|held| held.id == id)?;
        (Self::is_there(held, windows) && held.is_owned).then_some(held.window)
    }

    /// Which programs moved, and what an answer tells of one.
    pub(crate) fn check(
        &mut self,
        speaker: &Speaker,
        act: &Act,
        shown: &Shown,
        windows: &Windows,
        forest: &mut Forest,
    ) -> Result<(), String> {
        let who = windows.who(shown);
        for (place, serial) in forest.moves() {
            let Some(held) = self.0.iter().find(|held| held.serial == serial) else {
                return Err(format!("a program moves in {place} that nobody started: {serial}"));
            };
            let is_meant = match act {
                Act::Step => held.owner == speaker.number && (who.is_none() || who == Some(held.window)),
                Act::StepHeld(id) => held.id == *id,
                _ => false,
            };
            // Of one that nobody was told of not even that is known.
            let is_here = held.place == place || held.window.is_empty();
            if !is_meant && !held.is_loose || !is_here {
                return Err(format!("{held:?} moves in {place}"));
            }
        }
        let is_done = shown.code().is_empty();
        let is_unknown = shown.code() == "outcome_unknown";
        let told = shown.content["snapshot"]["id"].as_str().unwrap_or_default();
        match act {
            Act::Hold(serial) if is_done || is_unknown => {
                let window = who.unwrap_or_default();
                let place = speaker.place(window, windows, forest);
                self.0.push(Held {
                    serial: *serial,
                    id: told.to_owned(),
                    owner: speaker.number,
                    is_owned: true,
                    place,
                    window,
                    start: windows.start_of(window).unwrap_or_default(),
                    is_over: is_unknown || shown.content["snapshot"]["status"] == "terminated",
                    is_loose: is_unknown,
                });
            }
            // Of no program.
            Act::Stop if is_done && told.is_empty() => {}
            Act::Step | Act::Stop if is_done => {
                let held = self.0.iter_mut().find(|held| held.id == told);
                let Some(held) = held.filter(|held| held.owner == speaker.number) else {
                    return Err(format!("a client without a session was answered about {told:?}"));
                };
                held.is_over |= *act == Act::Stop || shown.content["snapshot"]["status"] == "terminated";
                held.is_loose |= shown.content["snapshot"]["status"] == "running";
            }
            Act::Step | Act::Stop if is_unknown => {
                let own = self.0.iter_mut().filter(|held| held.owner == speaker.number);
                own.for_each(|held| (held.is_over, held.is_loose) = (true, true));
            }
            Act::Inspect(id) | Act::StepHeld(id) | Act::StopHeld(id) => {
                let Some(held) = self.0.iter_mut().find(|held| held.id == *id) else { return Ok(()) };
                if is_done && who.is_some_and(|who| who != held.window) {
                    return Err(format!("{who:?} answered about {held:?}"));
                }
                let is_there = Self::is_there(held, windows) && held.is_owned;
                // To go on it has to be in the live window.
                let is_owed = !matches!(act, Act::StepHeld(_)) && windows.is_calm() && is_there;
                if is_owed && !is_done {
                    return Err(format!("{held:?} was not found"));
                }
                held.is_over |= matches!(act, Act::StopHeld(_)) && (is_done || is_unknown);
                held.is_loose |= is_unknown || shown.content["snapshot"]["status"] == "running";
            }
            _ => {}
        }
        Ok(())
    }
}
