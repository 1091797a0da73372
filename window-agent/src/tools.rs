//! The tools of this agent: their definitions, how a call finds its verb, and what an answer looks like.
//!
//! Each toolset is a thin face over the engine: arguments in, verbs, result out. **Invariant:** a face holds no
//! state between two calls.

pub mod arguments;
pub mod code;
pub mod debug;
pub mod debugger;
pub mod lcp;
mod programs;
pub mod quick;
mod redact;
mod sketch;
pub(crate) mod words;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use rmcp::model::Tool;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::window::Window;

/// A JSON object.
pub type Object = Map<String, Value>;

/// A tool as the agent defines it and as `--print-catalogue` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Definition {
    /// The toolset it belongs to.
    pub toolset: &'static str,
    /// What lists of tools show.
    pub tool: Tool,
    /// What arguments are checked against.
    #[serde(skip)]
    pub input: Object,
    /// What results keep to.
    #[serde(skip)]
    pub output: Object,
    /// Whether it waits for the program, so that progress is worth telling.
    #[serde(skip)]
    pub waits: bool,
}

impl Definition {
    /// Of a tool with its whole schemas; lists show less of them.
    pub(crate) fn new(toolset: &'static str, whole: Tool, waits: bool) -> Self {
        Self {
            toolset,
            tool: sketch::for_list(&whole),
            input: (*whole.input_schema).clone(),
            output: whole.output_schema.as_deref().cloned().unwrap_or_default(),
            waits,
        }
    }
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Any status but `error`; the text is the same JSON.
    Result(Object),
    /// With a text of its own: for people, or a list, which `structuredContent` cannot be.
    Spoken(Spoken),
    /// `status: error`.
    Error(ToolError),
}

/// See [`Answer::Spoken`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spoken {
    /// The text, and perhaps a second one with what else is worth knowing.
    pub texts: Vec<String>,
    /// `structuredContent`.
    pub object: Object,
    /// Whether it tells of a failure.
    pub is_error: bool,
}

/// An error as a client reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    /// Stable, for programs.
    pub code: Cow<'static, str>,
    /// One sentence: what is wrong.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
    /// Further fields, such as `candidates`.
    pub details: Object,
}

impl ToolError {
    /// An error without a hint.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), hint: None, details: Object::new() }
    }

    /// Adds what to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a field.
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// As a client reads it.
    pub fn into_object(self) -> Object {
        let mut object = Object::new();
        object.insert("status".to_owned(), "error".into());
        object.insert("code".to_owned(), self.code.into());
        object.insert("message".to_owned(), self.message.into());
        if let Some(hint) = self.hint {
            object.insert("hint".to_owned(), hint.into());
        }
        object.extend(self.details);
        object
    }
}

impl Answer {
    /// Everything a client is told.
    pub fn spoken(self) -> Spoken {
        let (object, is_error) = match self {
            Answer::Spoken(spoken) => return spoken,
            Answer::Result(object) => (object, false),
            Answer::Error(error) => (error.into_object(), true),
        };
        Spoken { texts: vec![Value::from(object.clone()).to_string()], object, is_error }
    }

    /// The object that becomes `structuredContent`, and whether it tells of a failure.
    pub fn into_object(self) -> (Object, bool) {
        let spoken = self.spoken();
        (spoken.object, spoken.is_error)
    }
}

impl From<Result<Object, ToolError>> for Answer {
    fn from(result: Result<Object, ToolError>) -> Self {
        match result {
            Ok(object) => Answer::Result(object),
            Err(error) => Answer::Error(error),
        }
    }
}

/// All tools of all toolsets, in the order in which they are listed.
pub static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::new);

/// Toolset of the tools that change files, or help with it; not offered unless it is asked for.
const REFACTOR: &str = "refactor";
/// Its tools.
const REFACTORING: [&str; 4] = ["lcp_rename", "lcp_apply_edit", "lcp_complete", "lcp_code_action"];

/// See [`CATALOGUE`].
#[derive(Debug)]
pub struct Catalogue {
    definitions: Vec<Definition>,
    by_name: HashMap<String, usize>,
}

impl Catalogue {
    fn new() -> Self {
        let toolsets = [
            debugger::schemas::definitions(),
            code::schemas::definitions(),
            debug::schema::definitions(),
            quick::schemas::definitions(),
            lcp::schemas::definitions(),
        ];
        let mut definitions: Vec<Definition> = toolsets.into_iter().flatten().collect();
        for definition in definitions.iter_mut().filter(|one| REFACTORING.contains(&&*one.tool.name)) {
            definition.toolset = REFACTOR;
        }
        let by_name =
            definitions.iter().enumerate().map(|(idx, definition)| (definition.tool.name.to_string(), idx));
        Self { by_name: by_name.collect(), definitions }
    }

    /// All definitions.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The tool of that name.
    pub fn find(&self, name: &str) -> Option<&Definition> {
        self.by_name.get(name).map(|idx| &self.definitions[*idx])
    }

    /// The sentence for a name that no tool has.
    pub fn unknown(&self, name: &str) -> ToolError {
        let shown: String = name.chars().take(MAX_SHOWN_NAME).collect();
        let names: Vec<&str> =
            self.definitions.iter().map(|definition| definition.tool.name.as_ref()).collect();
        let error = ToolError::new("unknown_tool", format!("There is no tool named {shown:?}."));
        match arguments::closest(name, &names) {
            Some(closest) => error.hint(format!("Did you mean {closest:?}? List the tools with tools/list.")),
            None => error.hint(format!("The tools are: {}.", names.join(", "))),
        }
    }
}

/// Runs a tool, when its schema allows the arguments.
pub async fn call(
    window: &Window,
    definition: &Definition,
    arguments: Option<Object>,
    cancelled: CancellationToken,
) -> Answer {
    let name = &definition.tool.name;
    let asked = arguments.as_ref().and_then(|arguments| arguments.get(debug::ACTION)).cloned();
    let arguments = match arguments::check(name, &definition.input, arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            return match definition.toolset {
                debug::schema::TOOLSET => debug::refused(asked, error),
                lcp::schemas::TOOLSET => lcp::refused(error),
                _ => Answer::Error(error),
            };
        }
    };
    match definition.toolset {
        debug::schema::TOOLSET => debug::call(window, arguments, cancelled).await,
        quick::schemas::TOOLSET => quick::call(window, name, arguments, cancelled).await,
        lcp::schemas::TOOLSET => lcp::call(window, name, arguments, cancelled).await,
        code::schemas::TOOLSET | REFACTOR => code::call(window, name, arguments, cancelled).await,
        _ => debugger::call(window, name, arguments, cancelled).await,
    }
}

/// Characters of an unknown name that an error repeats.
const MAX_SHOWN_NAME: usize = 80;

/// The object inside a JSON literal.
pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Arguments as a type. The schema was checked before, so a failure here is a gap between the two.
fn typed<T: DeserializeOwned>(arguments: Object) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| ToolError::new("invalid_arguments", format!("The arguments do not fit: {error}.")))
}
