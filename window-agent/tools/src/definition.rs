//! How a tool is put together for clients: what all tools of Baton have in common is said here once.

use std::sync::{Arc, OnceLock};

use baton_proto::edge::WINDOW_ARGUMENT;
use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::arguments::Shape;
use baton_agent_base::object::{Object, object};

/// A tool as the agent defines it and as `--print-catalogue` prints it.
///
/// What is shown of it is made when it is first asked for: a window has dozens of tools, and its client uses a few.
#[derive(Debug)]
pub struct Definition {
    /// The toolset it belongs to.
    pub toolset: &'static str,
    /// What a call says to mean it.
    pub name: &'static str,
    /// Whether it waits for the program, so that progress is worth telling.
    pub waits: bool,
    sketch: Sketch,
    meta: Option<fn() -> Object>,
    is_output_listed: bool,
    listed: OnceLock<Tool>,
    shape: OnceLock<Shape>,
}

impl Definition {
    pub(crate) fn new(toolset: &'static str, sketch: Sketch) -> Self {
        Self {
            toolset,
            name: sketch.name,
            waits: sketch.waits,
            sketch,
            meta: None,
            is_output_listed: true,
            listed: OnceLock::new(),
            shape: OnceLock::new(),
        }
    }

    /// With `_meta` for clients that read it.
    pub(crate) fn with_meta(self, meta: fn() -> Object) -> Self {
        Self { meta: Some(meta), ..self }
    }

    /// Lists show no schema of its results.
    pub(crate) fn without_listed_output(self) -> Self {
        Self { is_output_listed: false, ..self }
    }

    /// What lists of tools show.
    pub fn tool(&self) -> &Tool {
        self.listed.get_or_init(|| {
            let mut tool = for_list(&self.whole());
            tool.meta = self.meta.map(|meta| MetaObject(meta()));
            if !self.is_output_listed {
                tool.output_schema = None;
            }
            tool
        })
    }

    /// What the arguments of a call are checked against.
    pub fn shape(&self) -> &Shape {
        self.shape.get_or_init(|| Shape::of(&self.sketch.input()))
    }

    /// What it does to the world.
    pub fn annotations(&self) -> ToolAnnotations {
        self.sketch.effect.annotations()
    }

    /// The tool with its whole schemas, of which lists show less: what arguments and results keep to.
    pub fn whole(&self) -> Tool {
        self.sketch.whole()
    }
}

impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_struct("Definition", 2)?;
        shown.serialize_field("toolset", self.toolset)?;
        shown.serialize_field("tool", self.tool())?;
        shown.end()
    }
}

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
        // What does not apply, or is the protocol's default, is left out.
        let annotations = ToolAnnotations::new().open_world(false);
        match self {
            Effect::Reads => annotations.read_only(true),
            Effect::Changes => annotations.read_only(false).destructive(false),
            Effect::ChangesOnce => annotations.read_only(false).destructive(false).idempotent(true),
            Effect::Destroys => annotations.read_only(false).destructive(true),
        }
    }
}

/// A tool before it is put together. Every tool also takes `window`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sketch {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) effect: Effect,
    pub(crate) waits: bool,
    /// [`taken`], of a type.
    pub(crate) input: fn() -> Object,
    /// From [`by_status`] or [`documented`].
    pub(crate) output: fn() -> Object,
}

impl Sketch {
    fn input(&self) -> Object {
        let mut input = (self.input)();
        let properties = input.entry("properties").or_insert_with(|| json!({}));
        properties[WINDOW_ARGUMENT] = json!({"type": "string", "description": "Default: the live one."});
        input
    }

    fn whole(&self) -> Tool {
        Tool::new(self.name, self.description, Arc::new(self.input()))
            .with_title(self.title)
            .with_raw_output_schema(Arc::new((self.output)()))
            .with_annotations(self.effect.annotations())
    }
}

/// Arguments of a tool that takes none.
#[derive(JsonSchema)]
pub(crate) struct Nothing {}

/// The schema of a call's arguments, from the type that they are read as: doc comments are descriptions, what is no
/// `Option` is required. Unknown arguments are refused.
pub(crate) fn taken<T: JsonSchema>() -> Object {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(plain).transform(&mut schema);
    let mut input = schema.ensure_object().clone();
    input.remove("description");
    input.insert("additionalProperties".to_owned(), Value::Bool(false));
    input
}

/// What says nothing to a model, and little to who checks, is left out: a null is as good as nothing everywhere.
fn plain(schema: &mut Schema) {
    for name in ["title", "format", "default"] {
        schema.remove(name);
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(true)) {
        schema.remove("additionalProperties");
    }
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        let kind = kinds.first().cloned().unwrap_or_default();
        schema.insert("type".to_owned(), kind);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// A tool as lists of tools show it. Every client hands its list to a model with every conversation, so what the
/// agent checks anyway, and what an answer shows by itself, is left out: bounds of texts, members of results.
pub(crate) fn for_list(tool: &Tool) -> Tool {
    let mut listed = tool.clone();
    let mut input = (*tool.input_schema).clone();
    input.remove("additionalProperties");
    for (name, property) in input.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let Some(property) = property.as_object_mut() else { continue };
        property.retain(|field, _| !["minLength", "maxLength"].contains(&field.as_str()));
        if property.get("maximum").and_then(Value::as_u64).is_some_and(|maximum| maximum > MAX_TOLD) {
            property.remove("maximum");
        }
        if name == WINDOW_ARGUMENT {
            // What it means is told once, in the server's instructions.
            property.remove("description");
        }
    }
    listed.input_schema = Arc::new(input);
    listed.output_schema = tool.output_schema.as_deref().map(|output| Arc::new(outline(output)));
    if let Some(annotations) = &mut listed.annotations
        && annotations.read_only_hint == Some(true)
    {
        // The protocol gives these no meaning for a tool that only reads.
        (annotations.destructive_hint, annotations.idempotent_hint) = (None, None);
    }
    listed
}

/// The names and types of a result's fields: those that are always there, and those that hold more than a word.
fn outline(output: &Object) -> Object {
    let mut outline = output.clone();
    let either = outline.remove("anyOf").unwrap_or_default();
    let required = outline.get("required").unwrap_or(&either[0]["required"]).clone();
    let Some(properties) = outline.get_mut("properties").and_then(Value::as_object_mut) else {
        return outline;
    };
    properties.retain(|name, property| {
        let is_word = matches!(property["type"].as_str(), Some("string" | "integer" | "boolean"));
        let is_required = required.as_array().is_some_and(|names| names.contains(&json!(name)));
        is_required || !(is_word || name == "status" || name == "candidates")
    });
    for (_, property) in properties.iter_mut().filter(|(name, _)| *name != "status") {
        *property = property.get("type").map_or(json!({}), |kind| json!({"type": kind}));
    }
    outline
}

/// A bound above this says nothing to a model.
const MAX_TOLD: u64 = 999;

/// Schema of a result that always has `status`, one of these; every one may be an error.
pub(crate) fn by_status(statuses: &[&str], results: Value) -> Object {
    let mut properties = object(json!({"status": {"enum": statuses}}));
    properties.extend(object(results));
    object(json!({"type": "object", "properties": Value::Object(properties), "required": ["status"]}))
}

/// Schema of a result that has exactly the fields a document gives it, or is an error.
pub(crate) fn documented(results: Value, required: &[&str]) -> Object {
    let mut properties = object(results);
    for name in ["status", "code", "message", "hint"] {
        properties.entry(name).or_insert_with(|| json!({"type": "string"}));
    }
    object(json!({
        "type": "object",
        "properties": Value::Object(properties),
        "anyOf": [{"required": required}, {"required": ["status", "code", "message"]}],
    }))
}
