//! The description of `/v1`, generated from the handlers' own types; `docs/openapi.json` is kept equal to it.

use std::future::Future;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::handler::Handler;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use axum::{Extension, Json, Router};
use baton_http::guard::Way;
use baton_link::routes::{Method, Route};
use baton_proto::control::{Failure, Notice};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::failure::{Checked, ControlError};
use super::{ControlState, routes};

/// Routes with what is needed to describe them.
#[derive(Default)]
pub(super) struct Routes {
    pub(super) router: Router<ControlState>,
    described: Vec<Described>,
}

/// One operation; its schemas are made only when somebody asks for the description.
struct Described {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    describe: fn(&mut SchemaGenerator, &mut Map<String, Value>),
}

impl Routes {
    /// Adds a route whose description follows from the types of its handler.
    pub(super) fn add<H, Axum, Args>(
        mut self,
        Route { method, path }: Route,
        id: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<Axum, ControlState> + Operation<Args>,
        Axum: 'static,
    {
        let (method, filter) = match method {
            Method::Get => ("get", MethodFilter::GET),
            Method::Post => ("post", MethodFilter::POST),
            Method::Patch => ("patch", MethodFilter::PATCH),
        };
        self.router = self.router.route(path, on(filter, handler));
        self.described.push(Described { method, path, id, summary, describe: H::describe });
        self
    }
}

/// The description as the text of `docs/openapi.json`.
pub fn openapi_text() -> Result<String, serde_json::Error> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for described in routes().described {
        let mut operation = Map::new();
        operation.insert("operationId".to_owned(), described.id.into());
        operation.insert("summary".to_owned(), described.summary.into());
        (described.describe)(&mut generator, &mut operation);
        let failure = generator.subschema_for::<Failure>();
        let failure =
            json!({ "description": "what went wrong and what to try", "content": as_json(&failure) });
        add(&mut operation, "responses", "default", failure);
        add(&mut paths, described.path, described.method, operation.into());
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Baton control API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What agents and the command line send to the coordinator, on the Unix socket \
                            `sockets/coordinator` of the state folder. On 127.0.0.1 and ::1, for processes \
                            of protocol 1, every request carries the members' token, which is sent only on \
                            a connection whose other end has proven itself with the operation hello.",
        },
        "security": [{ "member": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "member": { "type": "http", "scheme": "bearer" } },
            "schemas": generator.take_definitions(true),
        },
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// A handler whose types describe it.
pub(super) trait Operation<Args> {
    /// Adds parameters, body and answer.
    fn describe(generator: &mut SchemaGenerator, operation: &mut Map<String, Value>);
}

/// What a handler takes.
pub(super) trait Input {
    /// Most need no word.
    fn describe(_generator: &mut SchemaGenerator, _operation: &mut Map<String, Value>) {}
}

/// What a handler answers.
pub(super) trait Answered {
    /// Content type and schema of the answer.
    fn describe(generator: &mut SchemaGenerator) -> (&'static str, Schema);
}

impl Input for State<ControlState> {}
impl Input for HeaderMap {}
impl Input for Option<Extension<Way>> {}

impl Input for Path<String> {
    fn describe(_: &mut SchemaGenerator, operation: &mut Map<String, Value>) {
        let schema = json!({ "type": "string" });
        push_parameter(operation, json!({ "name": "id", "in": "path", "required": true, "schema": schema }));
    }
}

impl<T: JsonSchema> Input for Checked<T> {
    fn describe(generator: &mut SchemaGenerator, operation: &mut Map<String, Value>) {
        let content = as_json(&generator.subschema_for::<T>());
        operation.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
    }
}

impl<T: JsonSchema> Input for Result<Query<T>, QueryRejection> {
    fn describe(generator: &mut SchemaGenerator, operation: &mut Map<String, Value>) {
        let schema = generator.root_schema_for::<T>();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            push_parameter(
                operation,
                json!({ "name": name, "in": "query", "required": true, "schema": schema }),
            );
        }
    }
}

impl<T: JsonSchema> Answered for Json<T> {
    fn describe(generator: &mut SchemaGenerator) -> (&'static str, Schema) {
        ("application/json", generator.subschema_for::<T>())
    }
}

/// The one answer that is a stream; the schema is that of a line.
impl Answered for Response {
    fn describe(generator: &mut SchemaGenerator) -> (&'static str, Schema) {
        ("application/x-ndjson", generator.subschema_for::<Notice>())
    }
}

impl<T: Answered> Answered for Result<T, ControlError> {
    fn describe(generator: &mut SchemaGenerator) -> (&'static str, Schema) {
        T::describe(generator)
    }
}

/// Handlers of one to three arguments.
macro_rules! operation {
    ($($arg:ident)+) => {
        impl<F, Ran, $($arg),+> Operation<($($arg,)+)> for F
        where
            F: Fn($($arg),+) -> Ran,
            Ran: Future<Output: Answered>,
            $($arg: Input,)+
        {
            fn describe(generator: &mut SchemaGenerator, operation: &mut Map<String, Value>) {
                $($arg::describe(generator, operation);)+
                let (content_type, schema) = Ran::Output::describe(generator);
                let content = json!({ content_type: { "schema": schema } });
                let answer = json!({ "description": "done", "content": content });
                add(operation, "responses", "200", answer);
            }
        }
    };
}
operation!(A);
operation!(A B);
operation!(A B C);

fn as_json(schema: &Schema) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn push_parameter(operation: &mut Map<String, Value>, parameter: Value) {
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    if let Some(parameters) = parameters.as_array_mut() {
        parameters.push(parameter);
    }
}

/// Sets `map[outer][inner]`.
fn add(map: &mut Map<String, Value>, outer: &str, inner: &str, value: Value) {
    let entry = map.entry(outer).or_insert_with(|| json!({}));
    if let Some(entry) = entry.as_object_mut() {
        entry.insert(inner.to_owned(), value);
    }
}
