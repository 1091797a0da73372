//! The symbols of a file, and the text of one of them.

use std::time::{Duration, Instant};

use serde_json::json;

use super::lsp::{self, Range};
use super::server::{Ask, Server};
use super::symbols::{self, Symbol};
use super::text::{Encoding, Text};
use super::types::{Freshness, Outline, Source, Subject};
use super::{CodeIndex, search, server_error};
use baton_agent_base::fault::Fault;
use baton_agent_base::workspace::Workspace;

/// How long a server that takes a project in is not believed that a file with symbols has none.
const EMPTY_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked meanwhile; there is no message for it.
const EMPTY_STEP: Duration = Duration::from_millis(100);
/// A server that is up for longer has taken everything in, or says that it has not.
const YOUNG: Duration = Duration::from_secs(60);

impl CodeIndex {
    /// The symbols of a file.
    pub async fn outline(
        &self,
        workspace: &Workspace,
        given: &str,
        deadline: Instant,
    ) -> Result<Outline, Fault> {
        let subject = self.open(workspace, given, deadline).await?;
        self.outline_of(workspace, subject, deadline).await
    }

    pub(super) async fn outline_of(
        &self,
        workspace: &Workspace,
        subject: Subject,
        deadline: Instant,
    ) -> Result<Outline, Fault> {
        let server = match self.server_for(&subject) {
            Ok(server) => server,
            Err(why) => {
                let symbols = search::outline(&subject.snapshot.text);
                let source = Source::TextSearch(why);
                let freshness = subject.freshness(Freshness::Settled);
                return Ok(Outline { subject, symbols, source, freshness });
            }
        };
        let symbols = ask_symbols(&server, &subject, deadline).await?;
        // Only now: a server that starts has enough to do, and the file's own text came along.
        if !subject.view.is_served {
            self.sync(workspace, None).await;
        }
        let freshness = subject.freshness(Freshness::Settled);
        Ok(Outline { symbols, source: Source::Server(server.name), freshness, subject })
    }
}

/// A file's symbols depend on nothing but its text, so the answer is settled whatever the server still reads. But
/// one that takes a project in may for a moment say of a file that is open that nothing is in it.
pub(super) async fn ask_symbols(
    server: &Server,
    subject: &Subject,
    deadline: Instant,
) -> Result<Vec<Symbol>, Fault> {
    let params = json!({"textDocument": {"uri": lsp::uri(&subject.snapshot.path)}});
    let ask = Ask::new("textDocument/documentSymbol", params, subject.shown());
    let until = deadline.min(Instant::now() + EMPTY_PATIENCE);
    loop {
        let answered = server.ask(ask.clone(), deadline).await.map_err(server_error)?;
        let mut symbols = symbols::from_answer(&answered.result);
        let is_doubtful = || takes_in(server) && !search::outline(&subject.snapshot.text).is_empty();
        if !symbols.is_empty() || Instant::now() + EMPTY_STEP >= until || !is_doubtful() {
            to_chars(&mut symbols, &subject.snapshot.text, answered.agreed.encoding);
            return Ok(symbols);
        }
        tokio::time::sleep(EMPTY_STEP).await;
    }
}

/// Whether the server may still be taking the project in.
fn takes_in(server: &Server) -> bool {
    let activity = server.activity();
    let is_young = activity.ready_since.is_none_or(|since| since.elapsed() < YOUNG);
    server.indexes && (activity.progress.is_some() || is_young)
}

fn to_chars(symbols: &mut [Symbol], text: &Text, encoding: Encoding) {
    let range = |range: &Range| Range {
        start: text.to_chars(range.start, encoding),
        end: text.to_chars(range.end, encoding),
    };
    for symbol in symbols {
        (symbol.range, symbol.name_range) = (range(&symbol.range), range(&symbol.name_range));
        to_chars(&mut symbol.children, text, encoding);
    }
}
