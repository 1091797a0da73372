//! Expressions that run longer than they may. They are interrupted where the adapter can; where it cannot, its session
//! does nothing else until they end, and says so.

use std::time::{Duration, Instant};

use super::asks::Asked;
use super::{Engine, Live};
use crate::adapters::debugpy;
use crate::breakpoints::SessionKey;
use crate::error::DebugError;
use crate::host::reach::Host;
use crate::session::{Input, Ticket};

impl Engine {
    /// When an expression has taken too long.
    pub(super) fn next_late(&self) -> Option<Instant> {
        let now = Instant::now();
        self.asked.values().filter_map(|asked| due(asked, now)).min()
    }

    pub(super) fn end_late(&mut self, now: Instant) {
        let late = self.asked.iter().filter(|(_, asked)| due(asked, now).is_some_and(|at| at <= now));
        for ticket in late.map(|(&ticket, _)| ticket).collect::<Vec<_>>() {
            self.end_expression(ticket, now);
        }
    }

    fn end_expression(&mut self, ticket: Ticket, now: Instant) {
        let Some(Asked::Evaluate { owner, expression, .. }) = self.asked.get(&ticket) else { return };
        let is_interrupted = expression.is_to_be_interrupted() && self.interrupt(owner.session, ticket);
        let Some(Asked::Evaluate { expression, reply, .. }) = self.asked.get_mut(&ticket) else { return };
        if is_interrupted {
            return expression.was_interrupted(now);
        }
        let error = expression.give_up();
        drop(reply.take().map(|reply| reply.send(Err(error))));
    }

    /// Whether an expression is to end soon.
    fn interrupt(&mut self, key: SessionKey, ticket: Ticket) -> bool {
        let Some(live) = self.sessions.get(&key) else { return false };
        if live.plan.session.adapter.limits.is_some() || live.plan.session.adapter.evaluate_timeout {
            return true;
        }
        // VS Code numbers its requests in its own way.
        let can = matches!(live.plan.host, Host::Direct(_)) && live.core.can("supportsCancelRequest");
        if can {
            self.feed(key, Input::Cancel { ticket });
        }
        can
    }

    /// What an adapter is told that interrupts expressions itself, when it was told another limit last.
    pub(super) fn limits(live: &mut Live, limit: Duration) -> Option<String> {
        live.plan.session.adapter.limits.as_ref()?;
        let is_new = live.expression_limit.replace(limit) != Some(limit);
        is_new.then(|| debugpy::limits(limit))
    }

    /// Refuses what else a stopped session is asked while it evaluates what nobody waits for any more.
    pub(super) fn free(&self, key: SessionKey) -> Result<(), DebugError> {
        if !self.is_stopped(key) {
            return Ok(());
        }
        let left = self.asked.values().find_map(|asked| match asked {
            Asked::Evaluate { owner, expression, reply } if owner.session == key => {
                reply.as_ref().is_none_or(|reply| reply.is_closed()).then_some(expression)
            }
            _ => None,
        });
        left.map_or(Ok(()), |expression| Err(expression.excuse()))
    }
}

/// When something is to be done about what was asked.
fn due(asked: &Asked, now: Instant) -> Option<Instant> {
    let Asked::Evaluate { expression, reply, .. } = asked else { return None };
    expression.due(now, reply.as_ref().is_some_and(|reply| reply.is_closed()))
}
