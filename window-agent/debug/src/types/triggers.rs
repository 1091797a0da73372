//! CORE: breakpoints that are not on a line: functions, instructions, data, exceptions. They share their ids with
//! those that are.

use serde::{Deserialize, Serialize};

/// What stops the program, other than a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The beginning of a function.
    Function {
        /// As the adapter knows it.
        name: String,
    },
    /// One instruction of the session it was set in; it goes with that session.
    Instruction {
        /// An address, as a token of the adapter.
        reference: String,
        /// Bytes behind it.
        offset: i64,
    },
    /// An access to data of the session it was set in; it goes with that session.
    Data {
        /// As `dataBreakpointInfo` told it.
        data_id: String,
        /// Which accesses; the adapter's default when not given.
        access: Option<Access>,
    },
    /// An exception.
    Exception {
        /// One of the filters that the adapter offers.
        filter: String,
    },
}

/// An access to data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Either.
    ReadWrite,
}

impl Access {
    /// As the protocol has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadWrite => "readWrite",
        }
    }
}

/// The kinds of triggers; an adapter is told all of a kind at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerKind {
    /// See [`Trigger::Function`].
    Function,
    /// See [`Trigger::Instruction`].
    Instruction,
    /// See [`Trigger::Data`].
    Data,
    /// See [`Trigger::Exception`].
    Exception,
}

impl TriggerKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Function, Self::Instruction, Self::Data, Self::Exception];

    /// For people: `function breakpoints`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function breakpoints",
            Self::Instruction => "instruction breakpoints",
            Self::Data => "data breakpoints",
            Self::Exception => "exception breakpoints",
        }
    }

    /// Whether its triggers mean something in the session they were set in only.
    pub fn is_of_session(self) -> bool {
        matches!(self, Self::Instruction | Self::Data)
    }
}

impl Trigger {
    /// Its kind.
    pub fn kind(&self) -> TriggerKind {
        match self {
            Self::Function { .. } => TriggerKind::Function,
            Self::Instruction { .. } => TriggerKind::Instruction,
            Self::Data { .. } => TriggerKind::Data,
            Self::Exception { .. } => TriggerKind::Exception,
        }
    }

    /// Whether both mean the same place, whatever else is wished of them.
    pub fn is_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Data { data_id, .. }, Self::Data { data_id: other, .. }) => data_id == other,
            _ => self == other,
        }
    }

    /// For people: `on function main`.
    pub fn describe(&self) -> String {
        match self {
            Self::Function { name } => format!("on function {name}"),
            Self::Instruction { reference, offset: 0 } => format!("on instruction {reference}"),
            Self::Instruction { reference, offset } => format!("on instruction {reference}{offset:+}"),
            Self::Data { data_id, .. } => format!("on data {data_id}"),
            Self::Exception { filter } => format!("on exceptions of the filter {filter}"),
        }
    }
}

/// A wish for a trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetTrigger {
    /// What is to stop the program.
    pub trigger: Trigger,
    /// Stop only when this expression is true.
    pub condition: Option<String>,
    /// Stop only at some hits: `> 5`, `== 3`, `% 2 == 0`.
    pub hit_condition: Option<String>,
    /// On whose behalf, in the caller's own words; `None` for the user of the editor.
    pub owner: Option<String>,
}

/// Which triggers to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoveTriggers {
    /// The one with this id.
    Id(i64),
    /// The one at this place that stops this client's programs; the access to data does not matter.
    Trigger(Trigger, Option<String>),
    /// All of a kind. Without those on exceptions, each adapter's own choice of filters counts again.
    Kind(TriggerKind),
    /// All of a kind that were set first on behalf of this owner.
    Of(TriggerKind, Option<String>),
    /// All there are.
    All,
}

/// A trigger as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerBreakpoint {
    /// Ours: stable, and no other breakpoint's of any kind.
    pub id: i64,
    /// What stops the program.
    pub trigger: Trigger,
    /// True once a running session has taken it.
    pub verified: bool,
    /// As asked for.
    pub condition: Option<String>,
    /// As asked for.
    pub hit_condition: Option<String>,
    /// What is to be known about it: why it is not verified, whose condition it replaced.
    pub message: Option<String>,
    /// Who set it first; `None` for the user of the editor.
    pub owner: Option<String>,
    /// The file it is in, when a session told one.
    pub path: Option<String>,
    /// The line it is on, when a session told one.
    pub line: Option<u32>,
}
