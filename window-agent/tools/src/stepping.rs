//! Several steps in one call.

use std::time::Instant;

use crate::steps::{self, Step};
use crate::window::Window;
use crate::{redact, words};
use baton_agent_debug::Wait;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::ResumeWish;
use baton_agent_debug::types::{OutputTail, Waited};

/// Most steps of one call.
pub(crate) const MAX_STEPS: usize = 50;
/// Steps up to `n_steps` times, until one ends elsewhere: at a breakpoint, with the program. Gives the steps on the way,
/// and how the last one ended, with what was printed since the first.
pub(crate) async fn run(
    window: &Window,
    wish: ResumeWish,
    n_steps: usize,
    whole: Wait,
) -> Result<(Vec<Step>, Waited), DebugError> {
    let started = Instant::now();
    // Where the first step begins, to tell what it changes.
    let mut before = match n_steps {
        0 | 1 => None,
        _ => window.debugger.status(wish.session.as_ref()).await?.last_stop,
    };
    let (mut told, mut printed) = (Vec::new(), OutputTail::default());
    loop {
        let wait = Wait { timeout: whole.timeout.saturating_sub(started.elapsed()), ..whole.clone() };
        let mut waited = window.debugger.resume_as(wish.clone(), wait).await?;
        match &mut waited {
            Waited::Stopped(stop) => {
                if window.redacts() {
                    redact::stop(stop);
                }
                let output = std::mem::take(&mut stop.output);
                printed = words::joined(printed, output);
                if stop.reason == "step" && told.len() + 1 < n_steps {
                    told.push(steps::step(stop, before.as_deref()));
                    before = Some(stop.clone());
                    continue;
                }
                stop.output = printed;
            }
            Waited::Completed(completed) => {
                completed.output = words::joined(printed, std::mem::take(&mut completed.output));
            }
            Waited::TimedOut { output, .. } | Waited::Interrupted { output, .. } => {
                *output = words::joined(printed, std::mem::take(output));
            }
        }
        return Ok((told, waited));
    }
}
