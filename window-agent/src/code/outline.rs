//! The symbols of a file, and the text of one of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::lsp::{self, Range};
use super::server::{Ask, Server};
use super::symbols::{self, Found, Match, Symbol};
use super::text::{Encoding, Text};
use super::{CodeIndex, Freshness, Source, Subject, search, server_error};
use crate::tools::ToolError;
use crate::workspace::Workspace;

/// Candidates that an error lists.
const MAX_CANDIDATES: usize = 20;
/// How long a server that takes a project in is not believed that a file with symbols has none.
const EMPTY_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked meanwhile; there is no message for it.
const EMPTY_STEP: Duration = Duration::from_millis(100);
/// A server that is up for longer has taken everything in, or says that it has not.
const YOUNG: Duration = Duration::from_secs(60);

/// The symbols of a file; ranges count lines and code points from 0.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The file.
    pub subject: Subject,
    /// Its symbols.
    pub symbols: Vec<Symbol>,
    /// Who says so.
    pub source: Source,
    /// How far it can be trusted.
    pub freshness: Freshness,
}

/// One symbol, chosen by name.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The definitions of that name in one place, mostly one.
    pub symbols: Vec<Symbol>,
    /// Its full name.
    pub path: String,
    /// Whether the name was not quite right.
    pub is_corrected: bool,
}

impl CodeIndex {
    /// The symbols of a file.
    pub async fn outline(
        &self,
        workspace: &Workspace,
        given: &str,
        deadline: Instant,
    ) -> Result<Outline, ToolError> {
        let subject = self.open(workspace, given, deadline).await?;
        self.outline_of(workspace, subject, deadline).await
    }

    pub(super) async fn outline_of(
        &self,
        workspace: &Workspace,
        subject: Subject,
        deadline: Instant,
    ) -> Result<Outline, ToolError> {
        let server = match self.server_for(&subject) {
            Ok(server) => server,
            Err(why) => {
                let symbols = search::outline(&subject.snapshot.text);
                let source = Source::TextSearch(why);
                let freshness = subject.freshness(Freshness::Settled);
                return Ok(Outline { subject, symbols, source, freshness });
            }
        };
        if !subject.view.is_served {
            self.sync(workspace, None).await;
        }
        let symbols = ask_symbols(&server, &subject, deadline).await?;
        let freshness = subject.freshness(Freshness::Settled);
        Ok(Outline { symbols, source: Source::Server(server.name), freshness, subject })
    }
}

/// A file's symbols depend on nothing but its text, so the answer is settled whatever the server still reads. But
/// one that takes a project in may for a moment say of a file that is open that nothing is in it.
async fn ask_symbols(
    server: &Server,
    subject: &Subject,
    deadline: Instant,
) -> Result<Vec<Symbol>, ToolError> {
    let uri = lsp::uri(&subject.snapshot.path);
    let ask = Ask {
        method: "textDocument/documentSymbol",
        params: Arc::new(move |_| json!({"textDocument": {"uri": uri}})),
        show: subject.shown(),
    };
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

impl Outline {
    /// Its text.
    pub fn text(&self) -> &Text {
        &self.subject.snapshot.text
    }

    /// The symbol that `name` means. `line`, from 1, chooses among several.
    pub fn choose(&self, name: &str, line: Option<u32>) -> Result<Chosen, ToolError> {
        let several = match symbols::find(&self.symbols, name) {
            Match::Nearest(names) => return Err(not_found(name, &names)),
            Match::One(found, is_corrected) => {
                let found = on_line(found, line);
                return Ok(chosen(found, is_corrected));
            }
            Match::Several(found) => found,
        };
        if let Some(line) = line {
            let found = on_line(several.clone(), Some(line));
            if found.iter().all(|other| other.path == found[0].path) {
                return Ok(chosen(found, false));
            }
        }
        let shown = |found: &Found<'_>| {
            format!("{} (line {}, {})", found.path, found.symbol.name_range.start.line + 1, found.symbol.kind)
        };
        let candidates: Vec<String> = several.iter().take(MAX_CANDIDATES).map(shown).collect();
        let message = format!("{name:?} could be any of {} symbols.", several.len());
        Err(ToolError::new("ambiguous_symbol", message)
            .hint("Use the full name of one of the candidates as symbol_name.")
            .detail("candidates", candidates))
    }
}

/// Those that hold the line, or all when none does.
fn on_line<'a>(found: Vec<Found<'a>>, line: Option<u32>) -> Vec<Found<'a>> {
    let Some(line) = line.and_then(|line| line.checked_sub(1)) else { return found };
    let holds = |found: &&Found<'a>| {
        let range = found.symbol.range;
        (range.start.line..=range.end.line).contains(&line)
    };
    let holding: Vec<Found<'a>> = found.iter().filter(holds).cloned().collect();
    if holding.is_empty() { found } else { holding }
}

fn chosen(found: Vec<Found<'_>>, is_corrected: bool) -> Chosen {
    let path = found.first().map(|found| found.path.clone()).unwrap_or_default();
    Chosen { symbols: found.into_iter().map(|found| found.symbol.clone()).collect(), path, is_corrected }
}

pub(super) fn not_found(name: &str, nearest: &[String]) -> ToolError {
    let shown: String = name.chars().take(100).collect();
    let error = ToolError::new("symbol_not_found", format!("There is no symbol {shown:?} in this file."));
    if nearest.is_empty() {
        return error.hint("lcp_get_outline lists what the file has.");
    }
    error.hint(format!("Did you mean {}?", nearest.join(" or "))).detail("candidates", nearest.to_vec())
}

/// The lines of a symbol, from 0, with the comments and attributes right above it.
pub fn lines_with_comments(text: &Text, symbol: &Symbol) -> (usize, usize) {
    const MARKS: [&str; 9] = ["#", "//", "/*", "*", "*/", "@", "--", ";;", "\"\"\""];
    let (mut first, mut last) = (symbol.range.start.line as usize, symbol.range.end.line as usize);
    // A range that ends at the start of a line does not hold that line.
    if symbol.range.end.character == 0 && last > first {
        last -= 1;
    }
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let depth = indentation(text.line(first));
    while first > 0 {
        let above = text.line(first - 1);
        let is_comment = MARKS.iter().any(|mark| above.trim_start().starts_with(mark));
        if !is_comment
            || indentation(above).abs_diff(depth) > 1
            || above.starts_with("#!")
            || is_directive(above)
        {
            break;
        }
        first -= 1;
    }
    (first, last)
}

/// The preprocessor's lines are no comments.
fn is_directive(line: &str) -> bool {
    const DIRECTIVES: [&str; 8] =
        ["#include", "#define", "#if", "#endif", "#else", "#elif", "#undef", "#pragma"];
    DIRECTIVES.iter().any(|directive| line.trim_start().starts_with(directive))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::lsp::Position;

    #[test]
    fn comments_above_belong_to_a_symbol() {
        let text = Text::new(
            "#include <x>\n// one\n// two\nint f() {\n}\n\n# no\n\ndef g():\n    pass\n".to_owned(),
        );
        let symbol = |first: u32, last: u32, character: u32| Symbol {
            name: String::new(),
            kind: "function",
            detail: None,
            range: Range {
                start: Position { line: first, character: 0 },
                end: Position { line: last, character },
            },
            name_range: Range::default(),
            children: Vec::new(),
        };
        assert_eq!(lines_with_comments(&text, &symbol(3, 4, 1)), (1, 4));
        assert_eq!(lines_with_comments(&text, &symbol(8, 10, 0)), (8, 9));
    }
}
