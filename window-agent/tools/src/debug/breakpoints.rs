//! Actions on breakpoints of every kind.

use serde_json::{Value, json};

use super::arguments::given;
use super::wire::DataBreakpointInfo;
use super::{Call, Reply, details, fault, text};
use crate::{outside, programs};
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::{Object, object};
use baton_agent_base::wire::read;
use baton_agent_debug::error::DebugError;
use baton_agent_debug::types::control::{Request, gates};
use baton_agent_debug::types::triggers::{
    Access, RemoveTriggers, SetTrigger, Trigger, TriggerBreakpoint, TriggerKind,
};
use baton_agent_debug::types::{Breakpoint, RemoveBreakpoint, SessionId, SetBreakpoint};

/// Breakpoints of a file that an answer about one of them lists.
const MAX_NEAR: usize = 3;

impl Call<'_> {
    pub(super) async fn set_breakpoint(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        if let Some(name) = given(&arguments.function) {
            if given(&arguments.log_message).is_some() {
                let problem = "log_message works on breakpoints with file+line only";
                return Err(Fault::new(Kind::InvalidArguments, problem));
            }
            return self.set_trigger(Trigger::Function { name }).await;
        }
        let path = outside::file(self.window, arguments.file.as_deref().unwrap_or_default()).await?;
        let wish = SetBreakpoint {
            path: path.clone(),
            line: arguments.line.unwrap_or_default(),
            column: None,
            condition: given(&arguments.condition),
            hit_condition: given(&arguments.hit_condition),
            log_message: given(&arguments.log_message),
            owner: self.caller.owner(),
        };
        let set = self.window.debugger.set_breakpoint(wish).await.map_err(|error| self.fault(error))?;
        let all = self.breakpoints_of(&path).await;
        let heading = format!("Breakpoint {} set", set.id);
        self.about_breakpoints(&heading, &all, set.line).await
    }

    pub(super) async fn remove_breakpoint(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        if let Some(name) = given(&arguments.function) {
            return self.remove_trigger(Trigger::Function { name }).await;
        }
        let given = arguments.file.as_deref().unwrap_or_default();
        let path = programs::file_of_breakpoint(self.window, &self.caller, given).await?;
        let Some(line) = arguments.line else { return self.remove_breakpoints_of(&path).await };
        let which = RemoveBreakpoint::Location { path: path.clone(), line, owner: self.caller.owner() };
        let removed = self.window.debugger.remove_breakpoint(which).await;
        if matches!(removed, Err(DebugError::NoSuchBreakpoint { .. })) {
            outside::own(self.window, path.clone()).await?;
        }
        removed.map_err(|error| self.fault(error))?;
        let all = self.breakpoints_of(&path).await;
        self.about_breakpoints("Breakpoint removed", &all, line).await
    }

    /// All that the client set in a file.
    async fn remove_breakpoints_of(&self, path: &std::path::Path) -> Result<Reply, Fault> {
        let mut doomed = self.breakpoints_of(path).await;
        doomed.retain(|breakpoint| breakpoint.owner == self.caller.owner());
        if doomed.is_empty() {
            outside::own(self.window, path.to_owned()).await?;
        }
        for breakpoint in &doomed {
            let removed = self.window.debugger.remove_breakpoint(RemoveBreakpoint::Id(breakpoint.id)).await;
            // Somebody else may have been faster.
            if !matches!(removed, Err(DebugError::NoSuchBreakpoint { .. })) {
                removed.map_err(|error| self.fault(error))?;
            }
        }
        let heading = match doomed.len() {
            0 => "No breakpoint of yours was there".to_owned(),
            1 => "Breakpoint removed".to_owned(),
            n => format!("{n} breakpoints removed"),
        };
        let all = self.breakpoints_of(path).await;
        self.about_breakpoints(&heading, &all, 1).await
    }

    async fn breakpoints_of(&self, path: &std::path::Path) -> Vec<Breakpoint> {
        let mut all = programs::breakpoints_of(self.window, &self.caller).await;
        all.retain(|breakpoint| breakpoint.path == path);
        programs::with_changes(self.window, all).await
    }

    /// The breakpoints of a file, those around a line if there are many: each call about one would tell them again.
    async fn about_breakpoints(
        &self,
        heading: &str,
        all: &[Breakpoint],
        around: u32,
    ) -> Result<Reply, Fault> {
        let mut near: Vec<&Breakpoint> = all.iter().collect();
        near.sort_by_key(|breakpoint| breakpoint.line.abs_diff(around));
        near.truncate(MAX_NEAR);
        near.sort_by_key(|breakpoint| breakpoint.id);
        let mut lines: Vec<String> =
            near.iter().map(|breakpoint| self.speaker.breakpoint(breakpoint)).collect();
        let n_more = all.len() - near.len();
        if n_more > 0 {
            lines.push(format!("and {n_more} more, farther from line {around}"));
        }
        let entries: Vec<Value> = all.iter().map(details::breakpoint).collect();
        let told = text::list(
            &format!("{heading}. Breakpoints in this file"),
            &lines,
            &format!("{heading}. No breakpoints are left in this file."),
        );
        Ok(self.with_any_snapshot(Reply::new(told, json!({"breakpoints": entries}))).await)
    }

    pub(super) async fn set_instruction_breakpoint(&self) -> Result<Reply, Fault> {
        self.set_trigger(self.instruction()).await
    }

    pub(super) async fn remove_instruction_breakpoint(&self) -> Result<Reply, Fault> {
        self.remove_trigger(self.instruction()).await
    }

    fn instruction(&self) -> Trigger {
        Trigger::Instruction {
            reference: given(&self.arguments.instruction_reference).unwrap_or_default(),
            offset: self.arguments.offset.unwrap_or_default(),
        }
    }

    pub(super) async fn data_breakpoint_info(&self) -> Result<Reply, Fault> {
        let arguments = &self.arguments;
        let name = given(&arguments.name).unwrap_or_default();
        let mut asked = object(json!({"name": name}));
        if let Some(reference) = arguments.variable_ref.or(arguments.scope_id) {
            asked.insert("variablesReference".to_owned(), reference.into());
        } else {
            asked.insert("frameId".to_owned(), self.frame_id().await?.into());
        }
        let body = self.request("dataBreakpointInfo", asked, Some(gates::DATA_BREAKPOINTS)).await?;
        let DataBreakpointInfo { data_id, description, access_types } = read(&body);
        let mut info = object(json!({"dataId": data_id}));
        for field in ["description", "accessTypes", "canPersist"] {
            details::insert(&mut info, field, body.get(field).filter(|value| !value.is_null()).cloned());
        }
        let description = description.as_deref().unwrap_or(&name);
        let told = match data_id {
            Some(data_id) => format!("{description}: data_id {data_id}, access {}", accesses(&access_types)),
            None => format!("{name} cannot be watched: {description}"),
        };
        let status = self.status().await?;
        Ok(Reply::new(told, json!({"dataBreakpointInfo": info})).with_snapshot(&status))
    }

    pub(super) async fn set_data_breakpoint(&self) -> Result<Reply, Fault> {
        self.set_trigger(self.data()).await
    }

    pub(super) async fn remove_data_breakpoint(&self) -> Result<Reply, Fault> {
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

    async fn set_trigger(&self, trigger: Trigger) -> Result<Reply, Fault> {
        let kind = trigger.kind();
        let wish = SetTrigger {
            trigger,
            condition: given(&self.arguments.condition),
            hit_condition: given(&self.arguments.hit_condition),
            owner: self.caller.owner(),
        };
        // One of a function means no session, unless the call names one.
        let named = given(&self.arguments.session).map(SessionId);
        let session = if kind.is_of_session() { self.session() } else { named };
        let set = self.window.debugger.set_trigger(session.as_ref(), wish).await;
        let set = set.map_err(|error| self.fault(error))?;
        self.about_triggers(&format!("Breakpoint {} set", set.id), kind).await
    }

    async fn remove_trigger(&self, trigger: Trigger) -> Result<Reply, Fault> {
        let kind = trigger.kind();
        let removed =
            self.window.debugger.remove_triggers(RemoveTriggers::Trigger(trigger, self.caller.owner())).await;
        removed.map_err(|error| self.fault(error))?;
        self.about_triggers("Breakpoint removed", kind).await
    }

    pub(super) async fn about_triggers(&self, heading: &str, kind: TriggerKind) -> Result<Reply, Fault> {
        let mut all: Vec<TriggerBreakpoint> = programs::triggers_of(self.window, &self.caller).await;
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
        gate: Option<baton_agent_debug::types::control::Gate>,
    ) -> Result<Value, Fault> {
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
            () = self.caller.cancelled.cancelled() => return Err(fault::interrupted(command)),
        };
        answered.map_err(|error| self.fault(error))
    }
}

fn accesses(types: &[String]) -> String {
    if types.is_empty() { "write".to_owned() } else { types.join(", ") }
}
