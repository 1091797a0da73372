//! Any request of the protocol. What changes where a session stands is a verb of the engine, or it would lose its thread.

use serde_json::{Value, json};

use super::arguments::given;
use super::{Call, Reply};
use crate::debug::types::Resume;
use crate::debug::types::control::{Granularity, ResumeWish};
use crate::debug::types::triggers::{SetTrigger, Trigger, TriggerKind};
use crate::tools::words::shorten;
use crate::tools::{Object, ToolError};

/// Characters of the text of a body; the structured result has all of it.
const MAX_BODY_TEXT: usize = 8 * 1024;

impl Call<'_> {
    pub(super) async fn custom_request(&self) -> Result<Reply, ToolError> {
        let command = given(&self.arguments.command).unwrap_or_default();
        let arguments = self.arguments.arguments.clone().unwrap_or_default();
        let reply = match command.as_str() {
            "pause" => self.pause().await?,
            "disconnect" | "terminate" => self.terminate().await?,
            "restart" => {
                let waited = self.window.debugger.restart(self.session().as_ref(), self.wait()).await;
                self.about_wait(waited.map_err(|error| self.fault(error))?).await?
            }
            "setExceptionBreakpoints" => self.set_exceptions(&arguments).await?,
            _ => match self.resume_of(&command, &arguments).await? {
                Some(wish) => self.go(wish).await?,
                None => return self.pass_on(&command, arguments).await,
            },
        };
        let mut reply = reply;
        reply.details.insert("customBody".to_owned(), json!({}));
        Ok(reply)
    }

    async fn pass_on(&self, command: &str, arguments: Object) -> Result<Reply, ToolError> {
        let body = self.request(command, arguments, None).await?;
        let told = if body.is_null() { format!("{command} is done.") } else { body.to_string() };
        self.finish(Reply::new(shorten(&told, MAX_BODY_TEXT), json!({"customBody": body}))).await
    }

    /// What a request means that lets a stopped program go on.
    async fn resume_of(&self, command: &str, arguments: &Object) -> Result<Option<ResumeWish>, ToolError> {
        let number = |name: &str| arguments.get(name).and_then(Value::as_i64);
        let how = match command {
            "continue" => Resume::Continue,
            "next" => Resume::StepOver,
            "stepIn" => Resume::StepInto,
            "stepOut" => Resume::StepOut,
            "stepBack" => Resume::StepBack,
            "reverseContinue" => Resume::ReverseContinue,
            "restartFrame" => {
                let frame_id = match number("frameId") {
                    Some(frame_id) => frame_id,
                    None => self.frame_id().await?,
                };
                Resume::RestartFrame { frame_id }
            }
            "goto" => match number("targetId") {
                Some(target_id) => Resume::Goto { target_id },
                None => {
                    let problem = "goto requires targetId; the custom request gotoTargets tells the targets";
                    return Err(ToolError::new("invalid_arguments", problem));
                }
            },
            _ => return Ok(None),
        };
        let mut wish = ResumeWish::new(self.session(), number("threadId").or(self.arguments.thread_id), how);
        wish.granularity = match arguments.get("granularity").and_then(Value::as_str) {
            Some("statement") => Some(Granularity::Statement),
            Some("line") => Some(Granularity::Line),
            Some("instruction") => Some(Granularity::Instruction),
            _ => None,
        };
        wish.single_thread = arguments.get("singleThread").is_some_and(|single| *single == true);
        wish.target_id = number("targetId").filter(|_| how == Resume::StepInto);
        Ok(Some(wish))
    }

    /// For all sessions, those to come as well. Without `filters` each adapter chooses again.
    async fn set_exceptions(&self, arguments: &Object) -> Result<Reply, ToolError> {
        let list = |name: &str| arguments.get(name).and_then(Value::as_array);
        let wish = |filter: &str, condition: Option<&str>| {
            let trigger = Trigger::Exception { filter: filter.to_owned() };
            SetTrigger { trigger, condition: condition.map(str::to_owned), hit_condition: None }
        };
        let plain = list("filters").into_iter().flatten().filter_map(Value::as_str);
        let plain = plain.map(|filter| wish(filter, None));
        let options = list("filterOptions").into_iter().flatten();
        let options = options
            .filter_map(|option| Some(wish(option["filterId"].as_str()?, option["condition"].as_str())));
        let is_choice = arguments.contains_key("filters") || arguments.contains_key("filterOptions");
        let wishes = is_choice.then(|| plain.chain(options).collect());
        let set = self.window.debugger.set_exception_filters(wishes).await;
        set.map_err(|error| self.fault(error))?;
        let heading =
            if is_choice { "Exceptions chosen" } else { "Each debug adapter chooses its exceptions" };
        self.about_triggers(heading, TriggerKind::Exception).await
    }
}
