//! Expressions that run longer than they may. They are interrupted where the adapter can; where it cannot, its session
//! does nothing else until they end, and says so.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::asks::Asked;
use super::{Engine, Live};
use crate::adapter::{Adapter, Dialect, SecondTry};
use crate::adapters::debugpy;
use crate::breakpoints::SessionKey;
use crate::error::DebugError;
use crate::host::reach::Host;
use crate::session::{Input, Ticket};

/// How long an adapter may take to tell that it interrupted an expression.
const GRACE: Duration = Duration::from_secs(2);
/// Characters of an expression that a sentence about it tells.
const MAX_TOLD: usize = 80;

/// An expression that an adapter evaluates.
pub(super) struct Expression {
    text: String,
    limit: Duration,
    due: Due,
    /// What to ask when it is refused.
    pub(super) otherwise: Option<(SecondTry, Value)>,
}

/// What happens to an expression next.
enum Due {
    /// It is interrupted.
    Interrupted(Instant),
    /// It was; then its caller is told, whatever the adapter does.
    Told(Instant),
    /// Nothing: nobody waits for it.
    Never,
}

impl Expression {
    pub(super) fn new(text: String, limit: Duration, otherwise: Option<(SecondTry, Value)>) -> Self {
        Self { text, limit, due: Due::Interrupted(Instant::now() + limit), otherwise }
    }

    /// What an adapter's refusal of it means.
    pub(super) fn failure(&self, message: String) -> DebugError {
        match self.due {
            Due::Interrupted(_) => DebugError::EvaluationFailed { message },
            Due::Told(_) | Due::Never => DebugError::Interrupted { seconds: self.limit.as_secs() },
        }
    }
}

impl Engine {
    /// When an expression has taken too long. Nobody has to wait for one whose caller has gone.
    pub(super) fn next_late(&self) -> Option<Instant> {
        let due = |asked: &Asked| {
            let Asked::Evaluate { expression, reply, .. } = asked else { return None };
            match expression.due {
                Due::Interrupted(_) if reply.as_ref().is_some_and(|reply| reply.is_closed()) => {
                    Some(Instant::now())
                }
                Due::Interrupted(at) | Due::Told(at) => Some(at),
                Due::Never => None,
            }
        };
        self.asked.values().filter_map(due).min()
    }

    pub(super) fn end_late(&mut self, now: Instant) {
        let is_due = |asked: &Asked| {
            let Asked::Evaluate { expression, reply, .. } = asked else { return false };
            match expression.due {
                Due::Interrupted(at) => at <= now || reply.as_ref().is_some_and(|reply| reply.is_closed()),
                Due::Told(at) => at <= now,
                Due::Never => false,
            }
        };
        let due = self.asked.iter().filter(|(_, asked)| is_due(asked)).map(|(&ticket, _)| ticket);
        for ticket in due.collect::<Vec<_>>() {
            self.end_expression(ticket, now);
        }
    }

    fn end_expression(&mut self, ticket: Ticket, now: Instant) {
        let Some(Asked::Evaluate { owner, expression, .. }) = self.asked.get(&ticket) else { return };
        let is_first = matches!(expression.due, Due::Interrupted(_));
        let is_interrupted = is_first && self.interrupt(owner.session, ticket);
        let Some(Asked::Evaluate { expression, reply, .. }) = self.asked.get_mut(&ticket) else { return };
        if is_interrupted {
            expression.due = Due::Told(now + GRACE);
            return;
        }
        expression.due = Due::Never;
        let seconds = expression.limit.as_secs();
        let error = DebugError::NoAnswer { command: "evaluate".to_owned(), seconds };
        drop(reply.take().map(|reply| reply.send(Err(error))));
    }

    /// Whether an expression is to end soon.
    fn interrupt(&mut self, key: SessionKey, ticket: Ticket) -> bool {
        let Some(live) = self.sessions.get(&key) else { return false };
        if ends_by_itself(live.plan.session.adapter) {
            return true;
        }
        // VS Code numbers its requests in its own way.
        let can = matches!(live.plan.host, Host::Direct(_)) && live.core.can("supportsCancelRequest");
        if can {
            self.feed(key, Input::Cancel { ticket });
        }
        can
    }

    /// What an adapter is told once, so that it ends expressions itself.
    pub(super) fn tuning(live: &mut Live, limit: Duration) -> Option<String> {
        if !ends_by_itself(live.plan.session.adapter) || live.tuned == Some(limit) {
            return None;
        }
        live.tuned = Some(limit);
        Some(debugpy::expression_tuning(limit))
    }

    /// A session whose expression nobody waits for any more is still at it.
    pub(super) fn free(&self, key: SessionKey) -> Result<(), DebugError> {
        if !self.is_stopped(key) {
            return Ok(());
        }
        let late = self.asked.values().find_map(|asked| match asked {
            Asked::Evaluate { owner, expression, reply } if owner.session == key => {
                let is_left = reply.as_ref().is_none_or(|reply| reply.is_closed());
                is_left.then_some(&expression.text)
            }
            _ => None,
        });
        match late {
            Some(text) => Err(DebugError::Evaluating { expression: shortened(text) }),
            None => Ok(()),
        }
    }
}

/// debugpy does, in whatever window.
fn ends_by_itself(adapter: &Adapter) -> bool {
    adapter.known_in_editor.unwrap_or(adapter.dialect) == Dialect::Debugpy
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TOLD) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
