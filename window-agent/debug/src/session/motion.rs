//! CORE: stops, and how a stopped program goes on.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::capture::{self, Capture, Step, Which};
use super::plan::SessionPlan;
use super::{OVERTAKEN_GRACE, Output, Phase, Purpose, Session};
use crate::breakpoints::triggers::CRASH_ID;
use crate::dap::Response;
use crate::dap::body::{self, Going, Stopped, read};
use crate::dap::configuration::Configuration;
use crate::types::Resume;
use crate::types::control::{Category, PendingPause, ResumeWish};
use crate::types::triggers::TriggerKind;

/// How long stack and variables of a stop may take; after it the stop is told with what is there.
const CAPTURE_GRACE: Duration = Duration::from_secs(5);
/// How long a program may run after a pause until an adapter that loses some is asked again.
const PAUSE_GRACE: Duration = Duration::from_secs(2);

/// How a stopped thread goes on, as the adapter is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Motion {
    command: &'static str,
    /// Besides the thread's id.
    arguments: Going,
    is_single: bool,
    asked: Asked,
}

/// What a program was last asked to do; its next stop is to be read in this light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To begin.
    Start {
        /// And to stop where it begins.
        stops_at_entry: bool,
    },
    Continue,
    Step,
    Pause,
}

/// What adapters call a stop at the beginning.
const ENTRY_REASONS: [&str; 6] = ["breakpoint", "function breakpoint", "step", "pause", "goto", "entry"];

/// Which threads are stopped.
#[derive(Clone, Debug, Default)]
pub(super) struct StoppedThreads {
    pub(super) all: bool,
    pub(super) threads: BTreeSet<i64>,
}

impl Motion {
    /// What a wish means; `frame_id` is the adapter's, of the frame to restart.
    pub(crate) fn new(wish: &ResumeWish, frame_id: Option<i64>) -> Self {
        let (command, asked) = match wish.how {
            Resume::Continue => ("continue", Asked::Continue),
            Resume::StepOver => ("next", Asked::Step),
            Resume::StepInto => ("stepIn", Asked::Step),
            Resume::StepOut => ("stepOut", Asked::Step),
            Resume::StepBack => ("stepBack", Asked::Step),
            Resume::ReverseContinue => ("reverseContinue", Asked::Continue),
            Resume::RestartFrame { .. } => ("restartFrame", Asked::Step),
            Resume::Goto { .. } => ("goto", Asked::Step),
        };
        let target_id = match wish.how {
            Resume::Goto { target_id } => Some(target_id),
            Resume::StepInto => wish.target_id,
            _ => None,
        };
        let granularity = wish.granularity.filter(|_| asked == Asked::Step);
        let arguments = Going {
            thread_id: None,
            frame_id,
            target_id,
            granularity: granularity.map(|granularity| granularity.as_str()),
            single_thread: wish.single_thread.then_some(true),
        };
        Self { command, arguments, is_single: wish.single_thread, asked }
    }
}

/// Whether a program is to stop where it begins, whatever the adapter calls it.
pub(super) fn stops_at_entry(plan: &SessionPlan) -> bool {
    let given: Configuration = read(&plan.arguments);
    let asks = given.stop_on_entry || given.stop_at_entry || given.stop_at_beginning_of_main_subprogram;
    plan.stops_at_entry || asks
}

impl Session {
    pub(super) fn on_stopped(&mut self, now: Instant, mut event: Stopped) {
        if self.phase == Phase::Terminating {
            return;
        }
        read_refusal(&mut event);
        if let Some(told) = read_failed_condition(&mut event) {
            self.outputs.push_back(Output::Printed(Category::Console, told));
        }
        self.confirm_resume();
        if self.phase == Phase::Running {
            self.stopped = StoppedThreads::default();
        }
        let thread_id = event.thread_id.unwrap_or(self.last_thread);
        if self.adapter.entry_is_before_first_line
            && event.reason.as_deref() == Some("entry")
            && matches!(self.asked, Asked::Start { .. })
        {
            // The step ends at the first line, which is the entry.
            return self.send("stepIn", json!({"threadId": thread_id}), Purpose::Nothing);
        }
        self.phase = Phase::Stopped;
        self.pending_pause = None;
        self.left_behind.clear();
        self.last_thread = thread_id;
        self.stopped.threads.insert(thread_id);
        self.stopped.all |= event.all_threads_stopped.unwrap_or(false);
        self.signal = signal_of(&event).filter(|signal| is_fatal(signal)).map(str::to_owned);
        let is_exception = event.reason.as_deref() == Some("exception");
        let is_nameless_signal = event.reason.as_deref() == Some("signal") && signal_of(&event).is_none();
        if let Some(reason) = self.normal_reason(&event) {
            event.reason = Some(reason.to_owned());
        }
        if self.entry_function.take().is_some() {
            self.send_triggers(TriggerKind::Function, Purpose::Nothing);
        }
        if self.adapter.first_threads_are_old && !self.has_stopped() {
            self.send("threads", json!({}), Purpose::Nothing);
        }
        self.last_capture += 1;
        let capture = self.last_capture;
        self.captures.push(Capture::new(capture, thread_id, event, now + CAPTURE_GRACE));
        let levels = capture::MAX_FRAMES;
        let arguments = json!({"threadId": thread_id, "startFrame": 0, "levels": levels});
        self.send_capture("stackTrace", arguments, capture, Step::Stack);
        if is_nameless_signal {
            let number = json!({"expression": "$_siginfo.si_signo", "context": "watch"});
            self.send_capture("evaluate", number, capture, Step::Signal);
        }
        if is_exception && self.can("supportsExceptionInfoRequest") {
            self.send_capture("exceptionInfo", json!({"threadId": thread_id}), capture, Step::Exception);
        }
    }

    /// What the reason of a stop is called by the others, seen from what was asked last.
    fn normal_reason(&mut self, event: &Stopped) -> Option<&'static str> {
        let asked = std::mem::replace(&mut self.asked, Asked::Continue);
        let reason = event.reason.as_deref().unwrap_or_default();
        let ids = event.hit_breakpoint_ids.as_deref().unwrap_or_default();
        let ours: Vec<i64> = ids.iter().filter_map(|id| self.ours.get(id).copied()).collect();
        let hits = ours.iter().any(|id| *id != CRASH_ID);
        if !hits && ours.contains(&CRASH_ID) {
            return Some("exception");
        }
        let is_stop_signal = signal_of(event).is_some_and(|signal| !is_fatal(signal));
        match asked {
            Asked::Pause if !hits && (is_stop_signal || reason == "step") => Some("pause"),
            Asked::Start { stops_at_entry: true }
                if !hits && (is_stop_signal || ENTRY_REASONS.contains(&reason)) =>
            {
                Some("entry")
            }
            _ => None,
        }
    }

    fn send_capture(&mut self, command: &'static str, arguments: Value, capture: u64, step: Step) {
        if let Some(capture) = self.captures.iter_mut().find(|known| known.id == capture) {
            capture.n_open += 1;
        }
        self.send(command, arguments, Purpose::Capture { capture, step });
    }

    pub(super) fn on_captured(&mut self, id: u64, step: Step, response: &Response) {
        let Some(capture) = self.captures.iter_mut().find(|capture| capture.id == id) else { return };
        capture.n_open -= 1;
        let body = if response.success { &response.body } else { &Value::Null };
        if step == Step::Signal {
            self.signal = capture::signal_name(body).filter(|signal| is_fatal(signal)).map(str::to_owned);
        }
        let requests = capture.take(step, body, &self.folders, self.adapter);
        for (command, arguments, step) in requests {
            if step == Step::Scopes(Which::Top) {
                let frame_id = read::<body::Named>(&arguments).frame_id;
                for expression in std::mem::take(&mut self.tuning) {
                    let tuning = json!({"expression": expression, "frameId": frame_id, "context": "watch"});
                    self.send("evaluate", tuning, Purpose::Nothing);
                }
            }
            self.send_capture(command, arguments, id, step);
        }
        if self.captures.iter().any(|capture| capture.id == id && capture.n_open == 0) {
            self.finish_capture(id);
        }
    }

    pub(super) fn finish_capture(&mut self, id: u64) {
        let Some(at) = self.captures.iter().position(|capture| capture.id == id) else { return };
        let captured = self.captures.remove(at).into_captured(&self.ours, self.adapter);
        self.outputs.push_back(Output::Stopped(Box::new(captured)));
    }

    pub(super) fn on_resume(&mut self, now: Instant, thread_id: i64, how: Motion) {
        let before = self.stopped.clone();
        let is_alone = how.is_single || !self.stopped.all;
        if is_alone {
            self.stopped.threads.remove(&thread_id);
        } else {
            self.stopped = StoppedThreads::default();
        }
        // Some step the one thread alone, whatever it waits for.
        self.left_behind = match how.asked {
            Asked::Step => before.threads.iter().copied().filter(|other| *other != thread_id).collect(),
            _ => BTreeSet::new(),
        };
        if self.stopped.threads.is_empty() {
            self.phase = Phase::Running;
            self.stopped.all = false;
            self.overtaken.push_back((now + OVERTAKEN_GRACE, self.last_seq));
        }
        self.owes_continued = true;
        self.unconfirmed = Some((thread_id, is_alone));
        self.asked = how.asked;
        self.last_thread = thread_id;
        self.captures.retain(|capture| is_alone && capture.thread_id() != thread_id);
        let arguments = Going { thread_id: Some(thread_id), ..how.arguments };
        self.send(how.command, json!(arguments), Purpose::Resume { thread_id, before });
    }

    /// A program that goes on takes the frames along that a question was about; debugpy then never answers it.
    pub(super) fn give_up_asking(&mut self, last_seq: i64) {
        let is_asked =
            |seq: &i64, purpose: &mut Purpose| *seq <= last_seq && matches!(purpose, Purpose::Ticket(_));
        for (_, purpose) in self.pending.extract_if(.., is_asked) {
            if let Purpose::Ticket(ticket) = purpose {
                let result = Err("the program went on before this was answered".to_owned());
                self.outputs.push_back(Output::Answer { ticket, result });
            }
        }
    }

    pub(super) fn on_pause(&mut self, now: Instant, thread_id: i64) {
        if self.started.is_none() {
            self.pause_wanted = Some(thread_id);
            return;
        }
        self.asked = Asked::Pause;
        self.pending_pause = self.pending_pause.or(Some(PendingPause::Sent));
        if self.adapter.loses_pauses && self.unconfirmed.is_some() {
            // What comes before the program goes on is what gets lost.
            self.pause_wanted = Some(thread_id);
            self.unheard_pause = Some((now + PAUSE_GRACE, thread_id));
        } else {
            self.send_pause(now, thread_id);
        }
    }

    fn send_pause(&mut self, now: Instant, thread_id: i64) {
        self.pause_wanted = None;
        self.send("pause", json!({"threadId": thread_id}), Purpose::Pause);
        self.unheard_pause = Some((now + PAUSE_GRACE, thread_id)).filter(|_| self.adapter.loses_pauses);
    }

    /// A pause that came to nothing is asked for again; it is no other pause than the first.
    pub(super) fn pause_again(&mut self, now: Instant) {
        let Some((_, thread_id)) = self.unheard_pause.take_if(|(at, _)| *at <= now) else { return };
        if self.is_pausing() {
            self.send_pause(now, thread_id);
        }
    }

    fn is_pausing(&self) -> bool {
        self.phase == Phase::Running && self.asked == Asked::Pause
    }

    pub(super) fn on_resume_answer(
        &mut self,
        now: Instant,
        response: &Response,
        thread_id: i64,
        before: StoppedThreads,
    ) {
        let wanted = self.pause_wanted.take().filter(|_| self.is_pausing());
        if response.success {
            self.confirm_resume();
            if let Some(thread_id) = wanted {
                self.send_pause(now, thread_id);
            }
            return;
        }
        // A stop can have overtaken the refusal.
        if self.unconfirmed.take().is_some() {
            self.phase = Phase::Stopped;
            self.stopped = before;
            self.left_behind.clear();
            self.owes_continued = false;
            self.overtaken.retain(|(_, last_seq)| last_seq + 1 != response.request_seq);
            let message = response.error_text();
            self.outputs.push_back(Output::ResumeRefused { thread_id, message });
        }
    }

    /// The program did go on: by the adapter's word, or because it stopped again.
    fn confirm_resume(&mut self) {
        if let Some((thread_id, is_alone)) = self.unconfirmed.take() {
            self.outputs.push_back(Output::Resumed { thread_id: is_alone.then_some(thread_id) });
        }
    }

    pub(super) fn on_continued(&mut self, event: &body::Continued) {
        if std::mem::take(&mut self.owes_continued) || self.phase != Phase::Stopped {
            return;
        }
        // Somebody else let it go on.
        let all = event.all_threads_continued.unwrap_or(true);
        let thread_id = event.thread_id.filter(|_| !all);
        match thread_id {
            Some(thread_id) => drop(self.stopped.threads.remove(&thread_id)),
            None => self.stopped = StoppedThreads::default(),
        }
        if self.stopped.threads.is_empty() {
            self.phase = Phase::Running;
            self.captures.clear();
            self.outputs.push_back(Output::Resumed { thread_id: None });
        } else {
            self.outputs.push_back(Output::Resumed { thread_id });
        }
    }
}

/// delve refuses a step by a stop where the program stands, told as an exception, while another step waits to go on.
fn read_refusal(event: &mut Stopped) {
    const WORDS: &str = "Unable to step while the previous step is interrupted by a breakpoint";
    if event.text.as_ref().is_some_and(|text| text.starts_with(WORDS)) {
        event.reason = Some("refused".to_owned());
        event.description = None;
        event.text = Some(
            "Not stepped: a breakpoint interrupted a step in another goroutine, and delve takes one step at a time. \
             Continue, so that it can end."
                .to_owned(),
        );
    }
}

/// delve stops where it cannot evaluate a condition, as if the program had failed there. Gives what is to be said of it.
fn read_failed_condition(event: &mut Stopped) -> Option<String> {
    const WORDS: &str = "error evaluating expression: ";
    let is_delves = event.description.as_deref() == Some("runtime error");
    let why = event.text.as_deref().filter(|_| is_delves)?.strip_prefix(WORDS)?;
    let told = format!("The condition of a breakpoint here cannot be evaluated: {why}\n");
    event.reason = Some("breakpoint".to_owned());
    event.description = None;
    event.text = None;
    Some(told)
}

/// The signal that a stop is about, if it is.
fn signal_of(event: &Stopped) -> Option<&str> {
    if !matches!(event.reason.as_deref(), Some("exception" | "signal" | "pause")) {
        return None;
    }
    let texts = [&event.text, &event.description];
    texts.into_iter().filter_map(Option::as_deref).find_map(|text| {
        let at = text.find("SIG")?;
        let end = text[at..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(text.len(), |len| at + len);
        (end > at + 3).then(|| &text[at..end])
    })
}

/// Whether a program that goes on after it is ended by it.
pub(super) fn is_fatal(signal: &str) -> bool {
    const HARMLESS: [&str; 7] = ["SIGSTOP", "SIGTSTP", "SIGINT", "SIGTRAP", "SIGCONT", "SIGCHLD", "SIGWINCH"];
    !HARMLESS.contains(&signal)
}
