//! Any request of the protocol. What changes where a session stands is a verb of the engine, or it would lose its thread.

use serde_json::{Value, json};

use super::arguments::given;
use super::wire::{Going, SetExceptions};
use super::{Call, Reply};
use crate::words::shorten;
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::object::Object;
use baton_agent_base::wire::read;
use baton_agent_debug::types::Resume;
use baton_agent_debug::types::control::{Granularity, ResumeWish};
use baton_agent_debug::types::triggers::{SetTrigger, Trigger, TriggerKind};

/// Characters of the text of a body; the structured result has all of it.
const MAX_BODY_TEXT: usize = 8 * 1024;

impl Call<'_> {
    pub(super) async fn custom_request(&self) -> Result<Reply, Fault> {
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

    async fn pass_on(&self, command: &str, arguments: Object) -> Result<Reply, Fault> {
        let body = self.request(command, arguments, None).await?;
        let told = if body.is_null() { format!("{command} is done.") } else { body.to_string() };
        self.finish(Reply::new(shorten(&told, MAX_BODY_TEXT), json!({"customBody": body}))).await
    }

    /// What a request means that lets a stopped program go on.
    async fn resume_of(&self, command: &str, arguments: &Object) -> Result<Option<ResumeWish>, Fault> {
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
                    let problem = "goto requires targetId; the custom request gotoTargets lists the targets";
                    return Err(Fault::new(Kind::InvalidArguments, problem));
                }
            },
            _ => return Ok(None),
        };
        let mut wish = ResumeWish::new(self.session(), number("threadId").or(self.arguments.thread_id), how);
        let Going { granularity, single_thread } = read(&Value::Object(arguments.clone()));
        wish.granularity = match granularity.as_deref() {
            Some("statement") => Some(Granularity::Statement),
            Some("line") => Some(Granularity::Line),
            Some("instruction") => Some(Granularity::Instruction),
            _ => None,
        };
        wish.single_thread = single_thread;
        wish.target_id = number("targetId").filter(|_| how == Resume::StepInto);
        Ok(Some(wish))
    }

    /// For all sessions, those to come as well. Without `filters` each adapter chooses again.
    async fn set_exceptions(&self, arguments: &Object) -> Result<Reply, Fault> {
        let wish = |filter: String, condition: Option<String>| SetTrigger {
            trigger: Trigger::Exception { filter },
            condition,
            hit_condition: None,
            owner: self.caller.owner(),
        };
        let SetExceptions { filters, filter_options } = read(&Value::Object(arguments.clone()));
        let is_choice = filters.is_some() || filter_options.is_some();
        let plain = filters.into_iter().flatten().map(|filter| wish(filter, None));
        let options = filter_options.into_iter().flatten();
        let options = options.map(|option| wish(option.filter_id, option.condition));
        let wishes = is_choice.then(|| plain.chain(options).collect());
        let set = self.window.debugger.set_exception_filters(self.caller.owner(), wishes).await;
        set.map_err(|error| self.fault(error))?;
        let heading =
            if is_choice { "Exceptions chosen" } else { "Each debug adapter chooses its exceptions" };
        self.about_triggers(heading, TriggerKind::Exception).await
    }
}
