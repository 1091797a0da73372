//! Simulated windows and time. Every input and every tick is followed by a check of the invariants.

mod faults;
mod lost;
mod orders;
mod rules;

use std::collections::BTreeMap;
use std::time::Duration;

use baton_proto::control::{
    DebugSession, HEARTBEAT_MS, Heartbeat, Notice, Register, Settings, WindowKind, WindowState,
};
use baton_proto::ids::{InstanceId, Term, WindowId};
use tokio::time::Instant;

use super::{Election, Input, Output, Preferred, Refused, Start};

/// A coordinator and the agents of some windows.
struct World {
    now: Instant,
    election: Election,
    agents: BTreeMap<WindowId, Agent>,
    /// The highest term any agent was granted.
    highest: Term,
    /// Who was live last, also while nobody is.
    owner: Option<WindowId>,
    /// Everything that was sent, to compare runs.
    transcript: Vec<String>,
}

/// An agent as the coordinator knows it: it repeats what it was told.
#[derive(Clone, Debug, Default)]
struct Agent {
    auto_start: bool,
    incarnation: u64,
    seq: u64,
    highest_term: Option<Term>,
    held_term: Option<Term>,
    fenced: bool,
    stopped: bool,
    live_since: bool,
    focused: bool,
    sessions: Vec<DebugSession>,
    /// Sends heartbeats while it is registered.
    beats: bool,
    registered: bool,
    next_beat: Option<Instant>,
    notices: Vec<Notice>,
}

fn id(text: &str) -> WindowId {
    text.parse().unwrap()
}

fn term(generation: u64, seq: u64) -> Term {
    Term { generation, seq }
}

fn start(generation: u64) -> Start {
    Start {
        instance: InstanceId("i".to_owned()),
        generation,
        known: generation - 1,
        is_trusted: true,
        settings: Settings::default(),
        previous: None,
        previous_is_dead: false,
        vacated: None,
    }
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            now,
            election: Election::new(now, start(1)),
            agents: BTreeMap::new(),
            highest: Term::default(),
            owner: None,
            transcript: Vec::new(),
        }
    }

    /// Opens a window with auto-start.
    fn open(&mut self, window: &str) -> &mut Self {
        self.open_with(window, true)
    }

    fn open_with(&mut self, window: &str, auto_start: bool) -> &mut Self {
        let agent = Agent { auto_start, beats: true, ..Agent::default() };
        self.agents.insert(id(window), agent);
        self.reopen(window)
    }

    /// A new agent of the window registers, knowing nothing.
    fn reopen(&mut self, window: &str) -> &mut Self {
        let agent = self.agent(window);
        agent.incarnation += 1;
        (agent.held_term, agent.highest_term, agent.seq) = (None, None, 0);
        agent.sessions.clear();
        (agent.stopped, agent.live_since) = (false, false);
        self.register(window)
    }

    /// The agent that runs registers, with all it knows.
    fn register(&mut self, window: &str) -> &mut Self {
        let register = self.registration(window);
        let incarnation = register.incarnation;
        self.input(Input::Register(id(window), Box::new(register))).unwrap();
        let now = self.now;
        let seen = term(self.election.generation(), 0);
        let agent = self.agent(window);
        agent.registered = true;
        agent.highest_term = agent.highest_term.max(Some(seen));
        agent.next_beat = Some(now + Duration::from_millis(HEARTBEAT_MS));
        self.input(Input::EventsOpened(id(window), incarnation)).unwrap();
        self
    }

    fn registration(&mut self, window: &str) -> Register {
        let agent = self.agent(window);
        Register {
            protocol: 1,
            version: "0".to_owned(),
            name: format!("the {window}"),
            kind: WindowKind::Headless,
            folders: vec!["/src".to_owned()],
            trees: Vec::new(),
            auto_start: agent.auto_start,
            pid: 7,
            pid_start: 9,
            port: 4000,
            socket: None,
            incarnation: agent.incarnation,
            highest_term: agent.highest_term,
            held_term: agent.held_term,
            fenced: agent.fenced,
            stopped: agent.stopped,
            live_since: agent.live_since,
            debug_sessions: agent.sessions.clone(),
            focused_ms_ago: agent.focused.then_some(0),
            client_epoch: 0,
            breakpoints_kept: None,
        }
    }

    fn agent(&mut self, window: &str) -> &mut Agent {
        self.agents.get_mut(&id(window)).unwrap()
    }

    /// The window's process is gone: its stream ends.
    fn kill(&mut self, window: &str) -> &mut Self {
        let agent = self.agent(window);
        agent.registered = false;
        let incarnation = agent.incarnation;
        self.input(Input::EventsClosed(id(window), incarnation)).unwrap();
        self
    }

    fn take(&mut self, window: &str) -> &mut Self {
        self.input(Input::Take(id(window))).unwrap();
        self
    }

    fn stop(&mut self, window: &str) -> &mut Self {
        self.input(Input::Stop(id(window))).unwrap();
        self
    }

    fn restart(&mut self, window: &str) -> &mut Self {
        self.input(Input::Restart(id(window))).unwrap();
        self
    }

    fn auto_start(&mut self, window: &str, on: bool) -> &mut Self {
        self.input(Input::SetAutoStart(id(window), on)).unwrap();
        self
    }

    fn focus(&mut self, window: &str, focused: bool) -> &mut Self {
        self.agent(window).focused = focused;
        self.beat(window)
    }

    fn debug(&mut self, window: &str, sessions: &[&str]) -> &mut Self {
        let to_session =
            |id: &&str| DebugSession { id: (*id).to_owned(), name: "run".to_owned(), by_user: false };
        self.agent(window).sessions = sessions.iter().map(to_session).collect();
        self.beat(window)
    }

    /// The user debugs, and no client has to do with it.
    fn debug_by_user(&mut self, window: &str) -> &mut Self {
        self.agent(window).sessions =
            vec![DebugSession { id: "mine".to_owned(), name: "run".to_owned(), by_user: true }];
        self.beat(window)
    }

    fn beat(&mut self, window: &str) -> &mut Self {
        let agent = self.agent(window);
        agent.seq += 1;
        let heartbeat = Heartbeat {
            incarnation: agent.incarnation,
            seq: agent.seq,
            focused: agent.focused,
            debug_sessions: agent.sessions.clone(),
            folders: None,
            name: None,
            tallies: Vec::new(),
            breakpoints: Vec::new(),
            more_breakpoints: 0,
        };
        self.input(Input::Heartbeat(id(window), heartbeat)).unwrap();
        self
    }

    /// The window's process is stopped, or runs again.
    fn hang(&mut self, window: &str, hangs: bool) -> &mut Self {
        let now = self.now;
        let agent = self.agent(window);
        agent.beats = !hangs;
        agent.next_beat = (!hangs).then_some(now);
        self
    }

    /// Kills the coordinator; the next one finds in the file what this one wrote.
    fn restart_coordinator(&mut self, change: impl FnOnce(&mut Start)) -> &mut Self {
        let mut next = start(self.election.generation() + 1);
        next.previous = self.election.preferred().cloned();
        next.vacated = self.election.vacated();
        next.settings = self.election.settings().clone();
        next.is_trusted = !self.election.is_unsure();
        change(&mut next);
        for agent in self.agents.values_mut() {
            agent.registered = false;
        }
        self.election = Election::new(self.now, next);
        self
    }

    fn input(&mut self, input: Input) -> Result<(), Refused> {
        let before = self.granted();
        let by_user = matches!(input, Input::Take(_));
        // R6: who was displaced may come back, whatever its setting.
        let displaced = self.election.displaced().cloned();
        let result = self.election.handle(self.now, input);
        let returns = self.granted().is_some_and(|(live, _)| displaced == Some(live));
        self.after(before, by_user || returns);
        result
    }

    /// Lets time pass, with heartbeats and ticks at their moments.
    fn pass(&mut self, ms: u64) -> &mut Self {
        let end = self.now + Duration::from_millis(ms);
        loop {
            let beats = self.agents.values().filter(|agent| agent.registered && agent.beats);
            let beat = beats.filter_map(|agent| agent.next_beat).min();
            let timeout = self.election.poll_timeout();
            let Some(next) = beat.into_iter().chain(timeout).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            let due = |agent: &Agent| agent.next_beat.is_some_and(|beat| beat <= next);
            let due = self.agents.iter().filter(|(_, agent)| agent.registered && agent.beats && due(agent));
            let due: Vec<_> = due.map(|(id, _)| id.to_string()).collect();
            for window in due {
                let now = self.now;
                self.agent(&window).next_beat = Some(now + Duration::from_millis(HEARTBEAT_MS));
                self.beat(&window);
            }
            self.tick();
        }
        self.now = end;
        self
    }

    /// The timer fires.
    fn tick(&mut self) -> &mut Self {
        let before = self.granted();
        self.election.handle_timeout(self.now);
        self.after(before, false);
        assert!(self.election.poll_timeout().is_none_or(|next| next > self.now), "the timer would spin");
        self
    }

    fn granted(&self) -> Option<(WindowId, Term)> {
        self.election.roster(self.now, 0).live
    }

    /// Delivers the outputs and checks what must hold always.
    fn after(&mut self, before: Option<(WindowId, Term)>, by_user: bool) {
        let reported = self.agents.values().filter(|agent| agent.registered);
        let reported = reported.filter_map(|agent| agent.highest_term).max().unwrap_or_default();
        let highest = self.highest.max(reported);
        // R9: what an agent still holds, it may claim.
        let holders = self.agents.iter().filter(|(_, agent)| agent.held_term.is_some());
        let holders: Vec<_> = holders.map(|(id, _)| id.clone()).collect();
        while let Some(output) = self.election.poll_output() {
            self.transcript.push(format!("{output:?}"));
            self.deliver(output);
        }
        let roster = self.election.roster(self.now, 0);
        assert!(roster.live.is_none() || roster.awaiting.is_none(), "{roster:?}");
        for (window, seen) in &roster.windows {
            let is_live = roster.live.as_ref().is_some_and(|(live, _)| live == window);
            assert_eq!(seen.state == WindowState::Live, is_live, "{window} {roster:?}");
        }
        let Some((live, term)) = roster.live else { return };
        let seen = roster.windows.get(&live).expect("the live window is registered");
        assert!(term.generation == roster.generation, "a term of another generation");
        if before.as_ref() != Some(&(live.clone(), term)) {
            let is_new = term > highest;
            // The one whose connection broke for a moment keeps its term.
            assert!(is_new || (term == highest && self.owner.as_ref() == Some(&live)), "{term}");
            let stopped = self.agents.get(&live).is_some_and(|agent| agent.stopped);
            let held_it = self.owner.as_ref() == Some(&live) || holders.contains(&live);
            let comes_back = held_it && !stopped;
            assert!(by_user || comes_back || (seen.auto_start && !stopped), "{live} was made live by a rule");
        }
        self.highest = term;
        self.owner = Some(live);
    }

    fn deliver(&mut self, output: Output) {
        match output {
            Output::Notify(window, notice) => {
                let Some(agent) = self.agents.get_mut(&window) else { return };
                match &notice {
                    Notice::State { state, term, awaited, live, .. } => {
                        agent.held_term = if *awaited { agent.held_term } else { *term };
                        agent.highest_term = agent.highest_term.max(*term);
                        agent.stopped &= *state == WindowState::Off;
                        agent.live_since = agent.stopped && (agent.live_since || live.is_some());
                    }
                    Notice::Stop => (agent.stopped, agent.live_since) = (true, false),
                    Notice::AutoStart { auto_start } => agent.auto_start = *auto_start,
                    _ => {}
                }
                agent.notices.push(notice);
            }
            Output::CloseEvents(window) => {
                if let Some(agent) = self.agents.get_mut(&window) {
                    agent.registered = self.election.registered(&window).is_ok();
                }
            }
            Output::Changed => {}
        }
    }

    /// Where everybody stands, as `a=live:1.1 b=standby`, with `?` behind a suspect and the window awaited.
    fn show(&self) -> String {
        let roster = self.election.roster(self.now, 0);
        let mut words = Vec::new();
        for (window, seen) in &roster.windows {
            let state = match (seen.state, &roster.live) {
                (WindowState::Live, Some((_, term))) => format!("live:{term}"),
                (WindowState::Live, None) => "live:nobody".to_owned(),
                (WindowState::Standby, _) => "standby".to_owned(),
                (WindowState::Off, _) => "off".to_owned(),
            };
            words.push(format!("{window}={state}{}", if seen.responsive { "" } else { "?" }));
        }
        words.extend(roster.awaiting.map(|(window, _)| format!("awaiting={window}")));
        words.join(" ")
    }

    #[track_caller]
    fn expect(&mut self, expected: &str) -> &mut Self {
        assert_eq!(self.show(), expected);
        self
    }
}
