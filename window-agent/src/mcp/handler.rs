//! Runs one MCP request: finds the tool, checks its arguments, watches for cancellation, names the window.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    MetaObject, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tracing::{Instrument, error, info_span};

use crate::tools::{self, Answer, CATALOGUE, Definition, ToolError};
use crate::window::Window;

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
        let work = tools::call(&self.window, definition, request.arguments, context.ct.clone());
        let span = info_span!("call", tool = %definition.tool.name, window = %self.window.id);
        tokio::select! {
            answer = shielded(&definition.tool.name, work.instrument(span)) => answer,
            never = tell_progress(definition, &context) => match never {},
        }
    }

    fn result(&self, answer: Answer) -> CallToolResult {
        let spoken = answer.spoken();
        let content = spoken.texts.into_iter().map(ContentBlock::text).collect();
        let mut result =
            if spoken.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = Some(Value::Object(spoken.object));
        result.meta = Some(MetaObject(self.window.meta()));
        result
    }
}

/// A panic is a bug of ours; the client gets an answer all the same, and the window goes on.
async fn shielded(tool: &str, work: impl Future<Output = Answer>) -> Answer {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        error!(%tool, "a tool panicked");
        let error = ToolError::new("internal_error", format!("{tool} failed inside Baton."));
        Answer::Error(error.hint(
            "This is a bug. Try again; if it happens again, restart the window with `baton restart` and report \
             it with the log.",
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
        Ok(ListToolsResult::with_all_items(offered.map(|definition| definition.tool.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Some(CATALOGUE.find(name)?.tool.clone())
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
