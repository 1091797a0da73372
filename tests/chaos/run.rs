//! One run: worlds one after the other, each broken step by step, and looked at after every step.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use baton_tests::process::{await_some, rss_kib};
use tokio::runtime::Handle;

use crate::checker::{Violation, check, lateness};
use crate::clients::Clients;
use crate::effects::Marks;
use crate::history::{History, Moment};
use crate::nemesis::Step;
use crate::summary::Summary;
use crate::world::{Setting, WINDOWS, World, problem};
use crate::{Options, say, story};

/// All is well again so soon after the last fault.
const CONVERGENCE: Duration = Duration::from_secs(10);
/// After that it is only waited to know whether it ever is.
const LAST_WAIT: Duration = Duration::from_secs(45);
/// A world is given up, and its history with it, after so long.
const WORLD: Duration = Duration::from_secs(600);
/// Whoever had to start a coordinator five times in half a minute makes a pause, so there are fewer deaths than that.
const DEATHS: (usize, Duration) = (4, Duration::from_secs(30));
/// A word to the person who waits.
const PROGRESS: Duration = Duration::from_secs(10);
/// The machine is late when a short sleep takes so much longer.
const LATE: Duration = Duration::from_millis(50);
/// Growth that is none: caches, heaps that are kept.
const GROWTH: (u64, usize) = (64 * 1024, 24);
/// Connections that idle are closed within this time.
const QUIET: Duration = Duration::from_secs(15);
/// Stories that are told whole.
const MAX_STORIES: u32 = 12;

/// One world and what is known of it.
struct Stage {
    world: Arc<World>,
    history: Arc<History>,
    marks: Marks,
    seen: HashSet<(&'static str, Option<u64>)>,
    again: String,
}

/// Runs the steps that fit into the time.
pub(crate) fn run(options: &Options, setting: &Setting, handle: &Handle) -> Result<Summary> {
    let began = Instant::now();
    let mut summary = Summary::new(options.command());
    let mut plan = options.plan()?.peekable();
    let mut n_left = options.steps.unwrap_or(u32::MAX);
    let is_over = |n_left: u32| n_left == 0 || began.elapsed() >= options.duration();
    while !is_over(n_left) && plan.peek().is_some() {
        let world = Arc::new(World::start(setting.clone())?);
        let history = Arc::new(History::new());
        let folders = WINDOWS.map(|name| (name.to_owned(), world.folder(name)));
        let marks = Marks::new(folders.to_vec());
        let mut stage = Stage { world, history, marks, seen: HashSet::new(), again: String::new() };
        let watch = Watch::start(&stage.history);
        let clients = {
            let _inside = handle.enter();
            Clients::start(&stage.world, &stage.history, &stage.marks, options.seed)
        };
        let first = stage.await_quiet(&clients, Duration::ZERO);
        if !first.is_well {
            let why = first.last_problem;
            anyhow::bail!("a new world does not get well: {why}\n{}", stage.world.logs());
        }
        let before = stage.sizes();
        let world_began = Instant::now();
        while !is_over(n_left) && world_began.elapsed() < WORLD {
            n_left -= 1;
            let Some(step) = plan.next() else { break };
            if !stage.step(&step, &clients, options, &mut summary) {
                break;
            }
        }
        handle.block_on(clients.end());
        stage.end(&before, &mut summary);
        drop(watch);
    }
    summary.took = began.elapsed();
    Ok(summary)
}

/// How the wait for quiet ended.
struct Converged {
    is_well: bool,
    /// What was not well when it was looked at last.
    last_problem: String,
}

impl Stage {
    /// One step; false when the world is beyond repair.
    fn step(&mut self, step: &Step, clients: &Clients, options: &Options, summary: &mut Summary) -> bool {
        self.await_few_deaths();
        self.again = options.again(step);
        let (began, n_lost) = (self.history.now(), self.history.record().credentials.len());
        step.strike(&self.world, &self.history);
        let mended = self.history.now();
        for (name, how) in self.world.ended_windows() {
            let text = format!("`baton window` of {name} ended by itself ({how}) after {}", step.names());
            self.report(Violation { rule: "a window stays open", call: None, at: mended, text }, summary);
            say(&self.world.logs());
            // Without it nothing else could be looked at.
            let _ = self.world.start_window(name, 0);
        }
        let converged = self.await_quiet(clients, mended);
        if self.history.record().credentials.len() > n_lost {
            // What was taken away was taken away by now.
            self.history.credentials_lost();
        }
        let bound = CONVERGENCE + lateness(&self.history.record(), mended, self.history.now());
        let took = self.history.now().saturating_sub(mended);
        if !converged.is_well {
            let why = &converged.last_problem;
            let text = format!("{} s after {} it is not well: {why}", took.as_secs(), step.names());
            self.report(
                Violation { rule: "all is well in 10 s", call: None, at: mended + bound, text },
                summary,
            );
        } else if took > bound {
            let (took, why) = (took.as_secs_f64(), &converged.last_problem);
            let text = format!("{took:.1} s until all was well after {}; the last: {why}", step.names());
            self.report(
                Violation { rule: "all is well in 10 s", call: None, at: self.history.now(), text },
                summary,
            );
            say(&self.world.logs());
        }
        summary.step(step, took);
        if options.is_verbose {
            let broken = mended.saturating_sub(began).as_secs_f64();
            say(&format!(
                "{}: broken for {broken:.1} s, well after {:.1} s",
                step.names(),
                took.as_secs_f64()
            ));
        }
        self.check(summary);
        if !converged.is_well {
            say(&self.world.logs());
        }
        converged.is_well
    }

    /// Waits until all is well for calls sent after `since`.
    fn await_quiet(&self, clients: &Clients, since: Moment) -> Converged {
        let mut why = String::new();
        let is_well = || {
            let waiting = clients.waiting(since);
            if !waiting.is_empty() {
                why = format!("these clients have no answer: {}", waiting.join(", "));
                return None;
            }
            match self.world.status() {
                None => why = "baton status says that nothing runs".to_owned(),
                Some(status) => match problem(&status) {
                    None => return Some(()),
                    Some(problem) => why = problem,
                },
            }
            std::thread::sleep(Duration::from_millis(50));
            None
        };
        let is_well = await_some(CONVERGENCE + LAST_WAIT, is_well).is_some();
        Converged { is_well, last_problem: why }
    }

    fn await_few_deaths(&self) {
        let is_calm = || {
            let since = self.history.now().saturating_sub(DEATHS.1);
            let record = self.history.record();
            let mut deaths: Vec<Moment> = record.deaths.iter().map(|death| death.from).collect();
            // One kill is noted twice, before and after.
            deaths.sort();
            deaths.dedup_by(|later, kept| later.saturating_sub(*kept) < Duration::from_secs(1));
            (deaths.iter().filter(|at| **at >= since).count() < DEATHS.0).then_some(())
        };
        // A few steps later at most it is.
        let _ = await_some(DEATHS.1 * 2, is_calm);
    }

    fn check(&mut self, summary: &mut Summary) {
        // Marks first: a call that runs meanwhile is not answered yet.
        let record = self.history.record().clone();
        let effects = self.marks.read();
        for violation in check(&record, &effects) {
            // A mark may be newer than the copy of the history.
            if violation.rule != "every mark has its call" {
                self.report(violation, summary);
            }
        }
    }

    fn report(&mut self, violation: Violation, summary: &mut Summary) {
        if violation.call.is_some() && !self.seen.insert((violation.rule, violation.call)) {
            return;
        }
        if violation.call.is_none()
            && !self.seen.insert((violation.rule, u64::try_from(violation.at.as_millis()).ok()))
        {
            return;
        }
        *summary.violations.entry(violation.rule).or_default() += 1;
        if summary.n_violations() <= MAX_STORIES {
            say(&story::tell(&violation, &self.history.record(), &self.again));
        } else {
            say(&format!("VIOLATION: {}: {}\n  again: {}", violation.rule, violation.text, self.again));
        }
    }

    /// Memory in KiB and descriptors of the coordinator and of the largest agent.
    fn sizes(&self) -> [(&'static str, u64, usize); 2] {
        let largest = |pids: &[u32]| {
            let rss = pids.iter().map(|pid| rss_kib(*pid)).max().unwrap_or(0);
            let descriptors =
                |pid: &u32| std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
            (rss, pids.iter().map(descriptors).max().unwrap_or(0))
        };
        let agents: Vec<u32> = WINDOWS.into_iter().filter_map(|name| self.world.agent(name)).collect();
        let (coordinator, agent) = (largest(&self.world.coordinators()), largest(&agents));
        [("the coordinator", coordinator.0, coordinator.1), ("an agent", agent.0, agent.1)]
    }

    /// Everything ends: nothing has grown, nothing is left.
    fn end(&mut self, before: &[(&'static str, u64, usize); 2], summary: &mut Summary) {
        let growth = || {
            let grown = self
                .sizes()
                .into_iter()
                .zip(before)
                .find(|(now, before)| now.1 > before.1 + GROWTH.0 || now.2 > before.2 + GROWTH.1);
            grown.map(|((who, rss, fds), before)| {
                format!(
                    "{who} grew from {} to {rss} KiB and from {} to {fds} descriptors",
                    before.1, before.2
                )
            })
        };
        if await_some(QUIET, || growth().is_none().then_some(())).is_none()
            && let Some(text) = growth()
        {
            let at = self.history.now();
            self.report(Violation { rule: "nothing grows", call: None, at, text }, summary);
        }
        self.check(summary);
        let at = self.history.now();
        for text in self.world.end() {
            self.report(Violation { rule: "nothing is left", call: None, at, text }, summary);
        }
        for text in self.marks.strangers() {
            self.history.note(format!("left in a project by an edit that was killed: {text}"));
        }
        summary.take_in(&self.history.record());
    }
}

/// Watches the machine, and tells the person who waits how far it is.
struct Watch(Arc<AtomicBool>);

impl Watch {
    fn start(history: &Arc<History>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (history, over) = (history.clone(), is_over.clone());
        std::thread::spawn(move || {
            let mut told = Instant::now();
            while !over.load(Ordering::Relaxed) {
                const NAP: Duration = Duration::from_millis(20);
                let slept = Instant::now();
                std::thread::sleep(NAP);
                let late = slept.elapsed().saturating_sub(NAP);
                if late > LATE {
                    history.late(late);
                }
                if told.elapsed() > PROGRESS {
                    told = Instant::now();
                    let record = history.record();
                    let last = record.events.last().map_or("", |event| event.text.as_str());
                    say(&format!(
                        "{:5.0} s: {} calls; {last}",
                        history.now().as_secs_f64(),
                        record.calls.len()
                    ));
                }
            }
        });
        Self(is_over)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
