//! The heartbeats of one connection: at most one under way, the newest content next, and a verdict when the
//! coordinator does not answer.

use baton_link::explain::Explanation;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use baton_link::connection::{CallError, Connection, MAX_MISSED_PINGS, unless_silent};
use baton_proto::control::{Heartbeat, Registered};
use baton_proto::ids::{Term, WindowId};

use super::Ended;

/// Why the coordinator is lost to this window.
#[derive(Debug)]
pub(super) enum Lost {
    /// The connection ended.
    Gone,
    /// It is there and says nothing.
    Silent,
    /// It does not know this window.
    Evicted,
    /// It does not want this window.
    Refused(Explanation),
    /// This agent must end.
    Ended(Ended),
}

impl From<CallError> for Lost {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Lost => Lost::Gone,
            CallError::Silent => Lost::Silent,
            CallError::Refused { failure, .. } => match failure.code.as_str() {
                "stale_incarnation" => Lost::Ended(Ended::Superseded),
                "not_registered" | "unknown_window" => Lost::Evicted,
                // It is about to go; its successor will have us.
                "ending" => Lost::Gone,
                _ => Lost::Refused(Explanation { message: failure.message, hint: failure.hint }),
            },
            CallError::Malformed(_) => Lost::Refused(error.explain()),
        }
    }
}

/// A heartbeat on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// The highest term this agent knew: the answer speaks of it.
    pub(super) known: Option<Term>,
}

type Answered = (Connection, Sent, Result<Registered, CallError>);

/// Sends heartbeats over one connection.
pub(super) struct Beat {
    window: WindowId,
    idle: Option<Connection>,
    under_way: Option<Pin<Box<dyn Future<Output = Answered> + Send>>>,
    next: Option<(Heartbeat, Option<Term>)>,
}

impl Beat {
    pub(super) fn new(connection: Connection, window: WindowId) -> Self {
        Self { window, idle: Some(connection), under_way: None, next: None }
    }

    /// Sends now, or as soon as the one under way is answered; of several that wait the newest counts. `known` is the
    /// highest term this agent knows.
    pub(super) fn send(&mut self, (heartbeat, known): (Heartbeat, Option<Term>)) {
        let Some(mut connection) = self.idle.take() else {
            self.next = Some((heartbeat, known));
            return;
        };
        let window = self.window.clone();
        self.under_way = Some(Box::pin(async move {
            let sent = Sent { at: Instant::now(), known };
            let answer = unless_silent(MAX_MISSED_PINGS, connection.heartbeat(&window, &heartbeat)).await;
            (connection, sent, answer)
        }));
    }

    /// The answer to the heartbeat under way. May be cancelled.
    pub(super) async fn answer(&mut self) -> Result<(Sent, Registered), Lost> {
        let Some(under_way) = &mut self.under_way else { return std::future::pending().await };
        let (connection, sent, answer) = under_way.as_mut().await;
        self.under_way = None;
        self.idle = Some(connection);
        if let Some(next) = self.next.take() {
            self.send(next);
        }
        Ok((sent, answer?))
    }
}
