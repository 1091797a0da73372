//! What a tool answers, and how a client is told.

use serde_json::Value;

use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::Object;

/// Key of a result's `_meta` for what programs may want to know beside the text.
pub const DETAILS: &str = "baton/details";

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Any status but `error`; the text is the same JSON.
    Result(Object),
    /// With a text of its own: for people, or a list, which `structuredContent` cannot be.
    Spoken(Spoken),
    /// `status: error`.
    Error(Fault),
}

/// See [`Answer::Spoken`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spoken {
    /// The text, and perhaps a second one with what else is worth knowing.
    pub texts: Vec<String>,
    /// `structuredContent`, or [`DETAILS`].
    pub object: Object,
    /// The text says all that a model needs, and the object is for programs. Some clients show their model the
    /// `structuredContent` alone when there is one.
    pub is_text_whole: bool,
    /// Whether it tells of a failure.
    pub is_error: bool,
}

impl Answer {
    /// Everything a client is told.
    pub fn spoken(self) -> Spoken {
        let (object, is_error) = match self {
            Answer::Spoken(spoken) => return spoken,
            Answer::Result(object) => (object, false),
            Answer::Error(error) => (error.into_object(), true),
        };
        let texts = vec![Value::from(object.clone()).to_string()];
        Spoken { texts, object, is_text_whole: false, is_error }
    }

    /// The object that becomes `structuredContent`, and whether it tells of a failure.
    pub fn into_object(self) -> (Object, bool) {
        let spoken = self.spoken();
        (spoken.object, spoken.is_error)
    }
}

impl From<Result<Object, Fault>> for Answer {
    fn from(result: Result<Object, Fault>) -> Self {
        match result {
            Ok(object) => Answer::Result(object),
            Err(error) => Answer::Error(error),
        }
    }
}

/// Of a name that its toolset has no tool for.
pub(crate) fn unknown_tool(name: &str) -> Fault {
    Fault::new(Kind::UnknownTool, format!("There is no tool named {name:?}."))
}
