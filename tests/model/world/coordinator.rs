//! Coordinators of the model, around the real `Election`, and what they leave on the disk; after `keeper.rs` and
//! `state.rs` of the coordinator.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

use baton_daemon::state::{Evidence, Found};
use baton_election::election::{Election, Input, Output, Preferred, Start};
use baton_proto::control::{Notice, Register, Settings};
use baton_proto::ids::{InstanceId, Term};

use super::agent::Link;
use super::{World, id, number_of};
use crate::setup::{Plant, Setup};

/// Ticks that a window has after its registration to open its stream.
const OPEN_TICKS: u8 = 2;
/// Milliseconds between two starts of coordinators by the wall clock.
const BETWEEN_STARTS: u64 = 10;

/// What is in the state folder.
#[derive(Clone, Default, Hash)]
pub(crate) struct Disk {
    found: FoundFile,
    saved: Saved,
    discovered: u64,
    pub(crate) is_full: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
enum FoundFile {
    #[default]
    Nothing,
    State,
    Broken,
}

/// `state.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Saved {
    generation: u64,
    preferred: Option<Preferred>,
    vacated: Option<Term>,
    unsure: bool,
}

impl Hash for Saved {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let preferred = self.preferred.as_ref();
        (self.generation, self.vacated, self.unsure).hash(state);
        preferred.map(|preferred| (&preferred.window, preferred.pid, preferred.term)).hash(state);
    }
}

/// One run of a coordinator.
#[derive(Clone)]
pub(crate) struct Coordinator {
    pub(crate) election: Election,
    /// Generation at its start, which tells it from the others.
    pub(crate) number: u64,
    pub(crate) has_lock: bool,
    pub(crate) is_stalled: bool,
    /// Another one has its lock and its listeners, and it is about to send the windows there.
    pub(crate) is_replaced: bool,
    /// The one before it died before it wrote down its last grant, or could not.
    pub(crate) is_behind: bool,
    /// The window that had its place again before the last input, if it came (R6).
    pub(crate) displaced: Option<usize>,
    pub(super) streams: BTreeMap<usize, Stream>,
}

/// The stream of notices to a window.
#[derive(Clone)]
pub(super) enum Stream {
    /// Registered; the stream must come within so many ticks.
    Expected {
        incarnation: u64,
        ticks: u8,
    },
    Open {
        incarnation: u64,
        notices: VecDeque<Notice>,
    },
}

impl Stream {
    pub(super) fn incarnation(&self) -> u64 {
        match self {
            Self::Expected { incarnation, .. } | Self::Open { incarnation, .. } => *incarnation,
        }
    }
}

impl World {
    /// A coordinator starts; `by_agent` knows that there was another one.
    pub(crate) fn start(&mut self, setup: &Setup, by_agent: bool) {
        let before = self.disk.saved.clone();
        let known = before.generation;
        let above = known.max(self.disk.discovered) + 1;
        let generation = if setup.plant == Plant::NoClock { above } else { above.max(self.clock) };
        self.clock += BETWEEN_STARTS;
        let found = match self.disk.found {
            FoundFile::Nothing => Found::Nothing,
            FoundFile::State => Found::State,
            FoundFile::Broken => Found::Broken,
        };
        let (is_written, discovered) = (!self.disk.is_full, self.disk.discovered);
        let evidence =
            Evidence { found, is_written, known, discovered, unsure: before.unsure, has_lost_one: by_agent };
        if is_written {
            self.disk.found = FoundFile::State;
            self.disk.saved.generation = generation;
            self.disk.saved.unsure = evidence.doubt().is_some();
            self.disk.discovered = generation;
        }
        let is_dead = |previous: &Preferred| {
            let window = &self.windows[number_of(&previous.window)];
            !window.is_open || window.incarnation != previous.pid_start
        };
        let is_trusted = setup.plant == Plant::NoDoubt || evidence.doubt().is_none();
        let written = before.preferred.as_ref().and_then(|preferred| preferred.term);
        let is_behind =
            is_trusted && written.is_some() && written < self.granted.last_key_value().map(|(term, _)| *term);
        let start = Start {
            instance: InstanceId(generation.to_string()),
            generation,
            known,
            is_trusted,
            settings: Settings { follow_focus: setup.follows, ..Settings::default() },
            previous_is_dead: before.preferred.as_ref().is_some_and(is_dead),
            previous: before.preferred,
            vacated: before.vacated,
        };
        let election = Election::new(self.now().into(), start);
        self.coordinators.push(Coordinator {
            election,
            number: generation,
            has_lock: true,
            is_stalled: false,
            is_replaced: false,
            is_behind,
            displaced: None,
            streams: BTreeMap::new(),
        });
    }

    /// The user replaces the one that runs, as `Daemon::replace`: what it knows is written, and its successor answers
    /// before it sends the windows there.
    pub(crate) fn replace(&mut self, setup: &Setup) {
        if self.can_save(0) {
            self.save(0);
        }
        (self.coordinators[0].has_lock, self.coordinators[0].is_replaced) = (false, true);
        self.start(setup, false);
    }

    /// It is gone, and everybody notices.
    pub(crate) fn end(&mut self, coordinator: usize) {
        let gone = self.coordinators.remove(coordinator);
        for window in &mut self.windows {
            if window.link.number() == Some(gone.number) {
                window.link = Link::None;
            }
        }
    }

    /// What it would write now.
    fn to_save(&self, coordinator: usize) -> Saved {
        let election = &self.coordinators[coordinator].election;
        Saved {
            generation: election.generation(),
            preferred: election.preferred().cloned(),
            vacated: election.vacated(),
            unsure: election.is_unsure(),
        }
    }

    pub(crate) fn can_save(&self, coordinator: usize) -> bool {
        let it = &self.coordinators[coordinator];
        let is_new = self.disk.found != FoundFile::State || self.to_save(coordinator) != self.disk.saved;
        it.has_lock && !it.is_stalled && !self.disk.is_full && is_new
    }

    pub(crate) fn save(&mut self, coordinator: usize) {
        self.disk.saved = self.to_save(coordinator);
        self.disk.found = FoundFile::State;
    }

    /// The folder is deleted, or `state.json` alone is emptied.
    pub(crate) fn lose(&mut self, whole_folder: bool) {
        self.disk.saved = Saved::default();
        self.disk.found = if whole_folder { FoundFile::Nothing } else { FoundFile::Broken };
        if whole_folder {
            self.disk.discovered = 0;
            self.coordinators.iter_mut().for_each(|one| one.has_lock = false);
        }
    }

    pub(crate) fn set_clock_back(&mut self) {
        self.clock -= 100_000;
    }

    /// True when it was taken.
    pub(super) fn deliver(
        &mut self,
        setup: &Setup,
        window: usize,
        coordinator: usize,
        register: Register,
    ) -> bool {
        let incarnation = register.incarnation;
        if !self.input(setup, coordinator, Input::Register(id(window), Box::new(register))) {
            return false;
        }
        let streams = &mut self.coordinators[coordinator].streams;
        if streams.get(&window).is_none_or(|stream| stream.incarnation() != incarnation) {
            streams.insert(window, Stream::Expected { incarnation, ticks: OPEN_TICKS });
        }
        true
    }

    pub(super) fn expire_streams(&mut self, setup: &Setup, at: usize) {
        let mut ended = Vec::new();
        for (window, stream) in &mut self.coordinators[at].streams {
            if let Stream::Expected { incarnation, ticks } = stream {
                *ticks -= 1;
                if *ticks == 0 {
                    ended.push((*window, *incarnation));
                }
            }
        }
        for (window, incarnation) in ended {
            self.coordinators[at].streams.remove(&window);
            if let Link::Asked { .. } = self.windows[window].link {
                self.windows[window].link = Link::None;
            }
            self.input(setup, at, Input::EventsClosed(id(window), incarnation));
        }
    }

    /// Feeds the election; true when it was taken.
    pub(super) fn input(&mut self, setup: &Setup, coordinator: usize, input: Input) -> bool {
        let by_user = matches!(input, Input::Take(_));
        let before = self.live_of(coordinator);
        let now = self.now().into();
        let result = self.coordinators[coordinator].election.handle(now, input);
        self.drive(setup, coordinator, before, by_user);
        result.is_ok()
    }

    pub(super) fn drive(
        &mut self,
        setup: &Setup,
        coordinator: usize,
        before: Option<(usize, Term)>,
        by_user: bool,
    ) {
        while let Some(output) = self.coordinators[coordinator].election.poll_output() {
            let it = &mut self.coordinators[coordinator];
            match output {
                Output::Notify(window, notice) => {
                    if let Some(Stream::Open { notices, .. }) = it.streams.get_mut(&number_of(&window)) {
                        notices.push_back(notice);
                    }
                }
                Output::CloseEvents(window) => {
                    let window = number_of(&window);
                    let number = it.number;
                    if let Some(Stream::Open { .. }) = it.streams.remove(&window)
                        && self.windows[window].link.number() == Some(number)
                    {
                        self.windows[window].link = Link::None;
                    }
                }
                Output::Changed => {}
            }
        }
        crate::rules::check_grant(self, setup, coordinator, before, by_user);
        let it = &mut self.coordinators[coordinator];
        it.displaced = it.election.displaced().map(number_of);
    }
}
