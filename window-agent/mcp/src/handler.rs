//! Runs one MCP request: finds the tool, checks its arguments, watches for cancellation, names the window.

#[cfg_attr(sim, path = "sim/perform.rs")]
mod perform;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_proto::edge::{
    CALL_HEADER, CALLER_HEADER, CLIENT_HEADER, FOLDER_HEADER, LABEL_HEADER, NOTICE_HEADER, TREE_HEADER,
};
use baton_proto::percent;
use futures_util::FutureExt;
use hyper::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    MetaObject, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{Instrument, error, info_span};

use super::audit::Audit;
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::workspace::Stand;
use baton_agent_tools::CATALOGUE;
use baton_agent_tools::answer::{Answer, DETAILS, Told};
use baton_agent_tools::caller::Caller;
use baton_agent_tools::definition::Definition;
use baton_agent_tools::window::Window;

/// The server side of every request; cheap to clone, holds nothing between requests.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    window: Arc<Window>,
}

/// When a client that asked for progress first hears of a wait. A shorter wait stays a plain JSON answer.
const FIRST_PROGRESS: Duration = Duration::from_secs(1);
/// How often it hears more.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

impl Handler {
    pub(super) fn new(window: Arc<Window>) -> Self {
        Self { window }
    }

    async fn call(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Answer {
        let Some(definition) = CATALOGUE.find(&request.name) else {
            return Answer::Error(CATALOGUE.unknown(&request.name));
        };
        let headers = context.extensions.get::<Parts>().map(|parts| &parts.headers);
        let header = |name: &str| headers.and_then(|headers| headers.get(name)?.to_str().ok());
        let client = header(CLIENT_HEADER);
        let call = header(CALL_HEADER);
        let audit = Audit::begin(&self.window.id, definition, request.arguments.as_ref(), (client, call));
        let text = |name: &str| header(name).and_then(percent::decode);
        let caller = Caller {
            id: header(CALLER_HEADER).map(str::to_owned),
            stand: text(FOLDER_HEADER)
                .map(|folder| Stand { folder: folder.into(), tree: text(TREE_HEADER).map(PathBuf::from) }),
            cancelled: context.ct.clone(),
            session: None,
        };
        if let (Some(id), Some(name)) = (&caller.id, client) {
            self.window.guests.note(id, name, Instant::now());
        }
        let told = Told { notice: text(NOTICE_HEADER), label: text(LABEL_HEADER) };
        let work = perform::call(&self.window, definition, request.arguments, caller, headers);
        let call = call.map(tracing::field::display);
        let span = info_span!("mcp", call, tool = %definition.name, window = %self.window.id);
        let answer = tokio::select! {
            answer = shielded(definition.name, work.instrument(span)) => answer,
            never = tell_progress(definition, &context) => match never {},
        };
        if let Some(audit) = audit {
            audit.end(&answer);
        }
        answer.telling(told)
    }

    fn result(&self, answer: Answer) -> CallToolResult {
        let spoken = answer.spoken();
        let content = spoken.texts.into_iter().map(ContentBlock::text).collect();
        let mut result =
            if spoken.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        let mut meta = self.window.meta();
        if spoken.is_text_whole {
            meta.insert(DETAILS.to_owned(), Value::Object(spoken.object));
        } else {
            result.structured_content = Some(Value::Object(spoken.object));
        }
        result.meta = Some(MetaObject(meta));
        result
    }
}

/// A panic is a bug of ours; the client gets an answer all the same, and the window goes on.
async fn shielded(tool: &str, work: impl Future<Output = Answer>) -> Answer {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        error!(%tool, "a tool panicked");
        let error = Fault::new(Kind::InternalError, format!("{tool} failed inside Baton."));
        Answer::Error(error.hint(
            "This is a bug, and the call may have taken effect: check before you repeat it. Report it with the log; \
             `baton restart` restarts the window.",
        ))
    })
}

/// Never ends by itself: tells a client that asked for it how long its wait has lasted.
async fn tell_progress(
    definition: &Definition,
    context: &RequestContext<RoleServer>,
) -> std::convert::Infallible {
    let token = context.meta.get_progress_token().filter(|_| definition.waits);
    let Some(token) = token else { return std::future::pending().await };
    let started = tokio::time::Instant::now();
    let mut timer = tokio::time::interval_at(started + FIRST_PROGRESS, PROGRESS_EVERY);
    loop {
        timer.tick().await;
        let seconds = started.elapsed().as_secs_f64();
        let progress = ProgressNotificationParam::new(token.clone(), seconds)
            .with_message(format!("Waiting for the program for {seconds:.0} s."));
        if context.peer.notify_progress(progress).await.is_err() {
            return std::future::pending().await;
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("baton", env!("CARGO_PKG_VERSION")))
            .with_instructions("A window of Baton. Clients talk to the coordinator instead.")
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered =
            CATALOGUE.definitions().iter().filter(|definition| self.window.offers(definition.toolset));
        Ok(ListToolsResult::with_all_items(offered.map(|definition| definition.tool().clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Some(CATALOGUE.find(name)?.tool().clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = Box::pin(self.call(request, context)).await;
        Ok(self.result(answer).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_in_a_tool_is_an_answer() {
        let answer = shielded("set_breakpoint", async { panic!("a bug") }).await;
        let (object, is_error) = answer.into_object();
        assert!(is_error);
        assert_eq!(object["code"], "internal_error");
        assert_eq!(object["message"], "set_breakpoint failed inside Baton.");
        assert!(object["hint"].as_str().unwrap().contains("restart"));
    }
}
