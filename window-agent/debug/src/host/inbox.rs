//! What the host of a session tells the engine, and where.

use std::collections::BTreeMap;

use baton_agent_base::process::Taken;
use baton_proto::shim::EditorSession;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::breakpoints::SessionKey;
use crate::dap::Incoming;
use crate::error::DebugError;
use crate::types::control::{Category, Stdin, UserAct};

/// What a session's host tells the engine.
#[derive(Debug)]
pub(crate) enum FromHost {
    /// The adapter is reached. Comes again when the first one tried proved useless.
    Reached(mpsc::Sender<Bytes>),
    /// A message of the adapter.
    Message(Incoming),
    /// The session has a child in the editor; or a compound has one more part.
    Child(EditorSession),
    /// Something printed this that is not the adapter speaking: a terminal that the program runs in.
    Printed(Category, String),
    /// The program runs in this terminal.
    Terminal(TerminalWriter),
    /// The program in the terminal ended.
    TerminalEnded { exit_code: Option<i64> },
    /// The adapter cannot be reached at all.
    Failed(DebugError),
    /// The user does something to the program in the editor. When it is ended, who waits for it is to hear that.
    UserActs(UserAct),
    /// The user starts the session of the editor once more, under the id that it has there.
    BeginsAgain(String),
    /// The adapter went away.
    Closed { how: String },
    /// Nothing of the session is left.
    Gone,
    /// What the processes of sessions take, by their marks.
    Taken(BTreeMap<String, Taken>),
}

/// The way to a program that runs in a terminal of ours.
#[derive(Clone, Debug)]
pub(crate) struct TerminalWriter {
    /// Its process id.
    pub(crate) pid: u32,
    /// What it is to read.
    pub(super) texts: std::sync::mpsc::SyncSender<Vec<u8>>,
}

impl TerminalWriter {
    /// Hands text over; the program may read it later.
    pub(crate) fn write(&self, stdin: Stdin) -> Result<(), DebugError> {
        /// What ends the input of a terminal, at the beginning of a line.
        const END_OF_INPUT: u8 = 4;
        let mut bytes = stdin.text.into_bytes();
        if stdin.is_last {
            if bytes.last().is_some_and(|last| *last != b'\n') {
                bytes.push(b'\n');
            }
            bytes.push(END_OF_INPUT);
        }
        self.texts.try_send(bytes).map_err(|_| DebugError::StdinFull)
    }
}

/// Where a host reports to.
#[derive(Clone)]
pub(crate) struct Inbox {
    pub(crate) key: SessionKey,
    pub(crate) sender: mpsc::Sender<(SessionKey, FromHost)>,
}

impl Inbox {
    pub(crate) async fn tell(&self, event: FromHost) {
        // An engine that is gone needs to know nothing.
        let _ = self.sender.send((self.key, event)).await;
    }
}
