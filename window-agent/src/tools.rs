//! The tools of this agent: their definitions, how a call finds its verb, and what an answer looks like.

pub mod arguments;
pub mod debugger;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use baton_proto::edge::WINDOW_ARGUMENT;
use rmcp::model::{Tool, ToolAnnotations};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A JSON object.
pub type Object = Map<String, Value>;

/// A tool as the agent defines it and as `--print-catalogue` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Definition {
    /// The toolset it belongs to.
    pub toolset: &'static str,
    /// What clients see.
    pub tool: Tool,
    /// Whether it waits for the program, so that progress is worth telling.
    #[serde(skip)]
    pub waits: bool,
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Any status but `error`.
    Result(Object),
    /// `status: error`.
    Error(ToolError),
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
}

impl Answer {
    /// The object that becomes `structuredContent` and, minified, the text.
    pub fn into_object(self) -> (Object, bool) {
        match self {
            Answer::Result(object) => (object, false),
            Answer::Error(error) => {
                let mut object = Object::new();
                object.insert("status".to_owned(), "error".into());
                object.insert("code".to_owned(), error.code.into());
                object.insert("message".to_owned(), error.message.into());
                if let Some(hint) = error.hint {
                    object.insert("hint".to_owned(), hint.into());
                }
                object.extend(error.details);
                (object, true)
            }
        }
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

/// See [`CATALOGUE`].
#[derive(Debug)]
pub struct Catalogue {
    definitions: Vec<Definition>,
    by_name: HashMap<String, usize>,
}

impl Catalogue {
    fn new() -> Self {
        let definitions = debugger::schemas::definitions();
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

/// Characters of an unknown name that an error repeats.
const MAX_SHOWN_NAME: usize = 80;

/// What a tool does to the world, as annotations for clients.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// Looks only.
    Reads,
    /// Changes what can be changed back.
    Changes,
    /// Repeating it changes nothing more.
    ChangesOnce,
    /// May end or alter what runs.
    Destroys,
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        let annotations = ToolAnnotations::new().open_world(false);
        match self {
            Effect::Reads => annotations.read_only(true).destructive(false).idempotent(true),
            Effect::Changes => annotations.read_only(false).destructive(false).idempotent(false),
            Effect::ChangesOnce => annotations.read_only(false).destructive(false).idempotent(true),
            Effect::Destroys => annotations.read_only(false).destructive(true).idempotent(false),
        }
    }
}

/// Puts a tool together. `properties` and `results` are JSON schemas by field name; every tool also takes
/// `window` and answers `code`, `message` and `hint`.
pub(crate) struct Sketch {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: Effect,
    pub(crate) waits: bool,
    pub(crate) properties: Value,
    pub(crate) required: &'static [&'static str],
    pub(crate) statuses: &'static [&'static str],
    pub(crate) results: Value,
}

impl Sketch {
    pub(crate) fn into_definition(self, toolset: &'static str) -> Definition {
        let mut properties = object(self.properties);
        properties.insert(
            WINDOW_ARGUMENT.to_owned(),
            json!({
                "type": "string",
                "description": "Window to use: id, unique prefix of it, name or folder. Leave out for the live one.",
            }),
        );
        let mut input = object(json!({"type": "object"}));
        input.insert("properties".to_owned(), Value::Object(properties));
        if !self.required.is_empty() {
            input.insert("required".to_owned(), json!(self.required));
        }
        input.insert("additionalProperties".to_owned(), Value::Bool(false));

        let mut results = object(json!({"status": {"type": "string", "enum": self.statuses}}));
        results.extend(object(self.results));
        results.extend(object(json!({
            "code": {"type": "string", "description": "With status error: stable code."},
            "message": {"type": "string", "description": "What happened, in one sentence."},
            "hint": {"type": "string", "description": "With status error: what to try."},
        })));
        let output =
            object(json!({"type": "object", "properties": Value::Object(results), "required": ["status"]}));

        let tool = Tool::new(self.name, self.description, Arc::new(input))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(output))
            .with_annotations(self.effect.annotations());
        Definition { toolset, tool, waits: self.waits }
    }
}

/// The object inside a JSON literal.
pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
