//! Actions on breakpoints of every kind.

use serde_json::{Value, json};

use super::arguments::given;
use super::{Call, Reply, details, fault, text};
use crate::debug::types::control::{Request, gates};
use crate::debug::types::triggers::{
    Access, RemoveTriggers, SetTrigger, Trigger, TriggerBreakpoint, TriggerKind,
};
use crate::debug::types::{Breakpoint, RemoveBreakpoint, SetBreakpoint};
use crate::tools::{Object, ToolError, object, programs};

impl Call<'_> {
    pub(super) async fn set_breakpoint(&self) -> Result<Reply, ToolError> {
        let arguments = &self.arguments;
        if let Some(name) = given(&arguments.function) {
            if given(&arguments.log_message).is_some() {
                let problem = "log_message works on breakpoints with file+line only";
                return Err(ToolError::new("invalid_arguments", problem));
            }
            return self.set_trigger(Trigger::Function { name }).await;
        }
        let path =
            self.window.workspace().resolve_file(arguments.file.as_deref().unwrap_or_default()).await?;
        let wish = SetBreakpoint {
            path: path.clone(),
            line: arguments.line.unwrap_or_default(),
            column: None,
            condition: given(&arguments.condition),
            hit_condition: given(&arguments.hit_condition),
            log_message: given(&arguments.log_message),
        };
        let set = self.window.debugger.set_breakpoint(wish).await.map_err(|error| self.fault(error))?;
        let all = self.breakpoints_of(&path).await;
        let heading = format!("Breakpoint {} set", set.id);
        self.about_breakpoints(&heading, &all).await
    }

    pub(super) async fn remove_breakpoint(&self) -> Result<Reply, ToolError> {
        let arguments = &self.arguments;
        if let Some(name) = given(&arguments.function) {
            return self.remove_trigger(Trigger::Function { name }).await;
        }
        let path =
            self.window.workspace().resolve_file(arguments.file.as_deref().unwrap_or_default()).await?;
        let line = arguments.line.unwrap_or_default();
        let which = RemoveBreakpoint::Location { path: path.clone(), line };
        self.window.debugger.remove_breakpoint(which).await.map_err(|error| self.fault(error))?;
        let all = self.breakpoints_of(&path).await;
        self.about_breakpoints("Breakpoint removed", &all).await
    }

    async fn breakpoints_of(&self, path: &std::path::Path) -> Vec<Breakpoint> {
        let mut all = self.window.debugger.breakpoints().await;
        all.retain(|breakpoint| breakpoint.path == path);
        programs::with_changes(self.window, all).await
    }

    async fn about_breakpoints(&self, heading: &str, all: &[Breakpoint]) -> Result<Reply, ToolError> {
        let lines: Vec<String> = all.iter().map(|breakpoint| self.speaker.breakpoint(breakpoint)).collect();
        let entries: Vec<Value> = all.iter().map(details::breakpoint).collect();
        let told = text::list(
            &format!("{heading}. Breakpoints in this file"),
            &lines,
            &format!("{heading}. No breakpoints are left in this file."),
        );
        Ok(self.with_any_snapshot(Reply::new(told, json!({"breakpoints": entries}))).await)
    }

    pub(super) async fn set_instruction_breakpoint(&self) -> Result<Reply, ToolError> {
        self.set_trigger(self.instruction()).await
    }

    pub(super) async fn remove_instruction_breakpoint(&self) -> Result<Reply, ToolError> {
        self.remove_trigger(self.instruction()).await
    }

    fn instruction(&self) -> Trigger {
        Trigger::Instruction {
            reference: given(&self.arguments.instruction_reference).unwrap_or_default(),
            offset: self.arguments.offset.unwrap_or_default(),
        }
    }

    pub(super) async fn data_breakpoint_info(&self) -> Result<Reply, ToolError> {
        let arguments = &self.arguments;
        let name = given(&arguments.name).unwrap_or_default();
        let mut asked = object(json!({"name": name}));
        if let Some(reference) = arguments.variable_ref.or(arguments.scope_id) {
            asked.insert("variablesReference".to_owned(), reference.into());
        } else {
            asked.insert("frameId".to_owned(), self.frame_id().await?.into());
        }
        let body = self.request("dataBreakpointInfo", asked, Some(gates::DATA_BREAKPOINTS)).await?;
        let mut info = Object::new();
        info.insert("dataId".to_owned(), body["dataId"].clone());
        for field in ["description", "accessTypes", "canPersist"] {
            details::insert(&mut info, field, body.get(field).filter(|value| !value.is_null()).cloned());
        }
        let description = body["description"].as_str().unwrap_or(&name);
        let told = match body["dataId"].as_str() {
            Some(data_id) => format!("{description}: data_id {data_id}, access {}", accesses(&body)),
            None => format!("{name} cannot be watched: {description}"),
        };
        let status = self.status().await?;
        Ok(Reply::new(told, json!({"dataBreakpointInfo": info})).with_snapshot(&status))
    }

    pub(super) async fn set_data_breakpoint(&self) -> Result<Reply, ToolError> {
        self.set_trigger(self.data()).await
    }

    pub(super) async fn remove_data_breakpoint(&self) -> Result<Reply, ToolError> {
        self.remove_trigger(self.data()).await
    }

    fn data(&self) -> Trigger {
        let access = match self.arguments.access_type.as_deref() {
            Some("read") => Some(Access::Read),
            Some("write") => Some(Access::Write),
            Some("readWrite") => Some(Access::ReadWrite),
            _ => None,
        };
        Trigger::Data { data_id: given(&self.arguments.data_id).unwrap_or_default(), access }
    }

    async fn set_trigger(&self, trigger: Trigger) -> Result<Reply, ToolError> {
        let kind = trigger.kind();
        let wish = SetTrigger {
            trigger,
            condition: given(&self.arguments.condition),
            hit_condition: given(&self.arguments.hit_condition),
        };
        let set = self.window.debugger.set_trigger(self.session().as_ref(), wish).await;
        let set = set.map_err(|error| self.fault(error))?;
        self.about_triggers(&format!("Breakpoint {} set", set.id), kind).await
    }

    async fn remove_trigger(&self, trigger: Trigger) -> Result<Reply, ToolError> {
        let kind = trigger.kind();
        let removed = self.window.debugger.remove_triggers(RemoveTriggers::Trigger(trigger)).await;
        removed.map_err(|error| self.fault(error))?;
        self.about_triggers("Breakpoint removed", kind).await
    }

    pub(super) async fn about_triggers(&self, heading: &str, kind: TriggerKind) -> Result<Reply, ToolError> {
        let mut all: Vec<TriggerBreakpoint> = self.window.debugger.triggers().await;
        all.retain(|breakpoint| breakpoint.trigger.kind() == kind);
        let lines: Vec<String> = all.iter().map(|breakpoint| self.speaker.trigger(breakpoint)).collect();
        let entries: Vec<Value> = all.iter().map(details::trigger).collect();
        let name = kind.name();
        let told =
            text::list(&format!("{heading}. All {name}"), &lines, &format!("{heading}. No {name} are left."));
        let field = match kind {
            TriggerKind::Function => "functionBreakpoints",
            TriggerKind::Instruction => "instructionBreakpoints",
            TriggerKind::Data => "dataBreakpoints",
            TriggerKind::Exception => "exceptionBreakpoints",
        };
        Ok(self.with_any_snapshot(Reply::new(told, json!({field: entries}))).await)
    }

    /// Breakpoints are set without a session too.
    async fn with_any_snapshot(&self, reply: Reply) -> Reply {
        match self.window.debugger.status(self.session().as_ref()).await {
            Ok(status) => reply.with_snapshot(&status),
            Err(_) => reply,
        }
    }

    /// Any request of the protocol on the session of the call.
    pub(super) async fn request(
        &self,
        command: &str,
        arguments: Object,
        gate: Option<crate::debug::types::control::Gate>,
    ) -> Result<Value, ToolError> {
        let request = Request {
            session: self.session(),
            command: command.to_owned(),
            arguments,
            gate,
            timeout: Some(self.arguments.timeout()),
        };
        let asked = self.window.debugger.request(request);
        let answered = tokio::select! {
            answered = asked => answered,
            () = self.cancelled.cancelled() => return Err(fault::interrupted(command)),
        };
        answered.map_err(|error| self.fault(error))
    }
}

fn accesses(info: &Value) -> String {
    let types = info["accessTypes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let types: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
    if types.is_empty() { "write".to_owned() } else { types.join(", ") }
}
