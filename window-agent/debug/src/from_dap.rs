//! CORE: bodies of the adapter to types of ours: ids are exchanged, texts bounded, whatever is missing tolerated.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::breakpoints::SessionKey;
use crate::dap::{NO_REASON, body};
use crate::handles::{Handles, Lookup, Owner};
use crate::ids::Base;
use crate::pages::Size;
use crate::session::capture::{Captured, Fetched};
use crate::types::{
    Evaluated, Frame, MAX_TOP_VALUE_LEN, MAX_TOP_VARIABLES, OutputTail, OwnFrame, Scope, ScopeVariables,
    SessionId, Source, StopEvent, Variable,
};
use crate::{type_names, values};

/// Longest result of an evaluation that is told, in bytes.
const MAX_RESULT_LEN: usize = 64 * 1024;
/// Longest explanation of an evaluation that failed, in bytes.
const MAX_PROBLEM_LEN: usize = 500;

/// The ids given out.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    pub(crate) frames: Handles,
    pub(crate) references: Handles,
    /// Of what has many members.
    sizes: BTreeMap<i64, Size>,
}

impl Ids {
    /// None given out yet; both kinds count from there.
    pub(crate) fn from_base(base: Base) -> Self {
        Self {
            frames: Handles::from_base(base),
            references: Handles::from_base(base),
            sizes: BTreeMap::new(),
        }
    }

    /// The program of a session goes on, or one thread of it: its ids are void.
    pub(crate) fn forget(&mut self, session: SessionKey, thread_id: Option<i64>) {
        self.frames.forget(session, thread_id);
        self.references.forget(session, thread_id);
        self.sizes.retain(|reference, _| matches!(self.references.look_up(*reference), Lookup::Alive(..)));
    }

    fn reference(&mut self, owner: Owner, theirs: i64) -> i64 {
        if theirs == 0 { 0 } else { self.references.add(owner, theirs) }
    }

    /// That of something whose size was told.
    fn sized(&mut self, owner: Owner, theirs: i64, indexed: Option<i64>, named: Option<i64>) -> i64 {
        let ours = self.reference(owner, theirs);
        let size = Size::of(indexed, named);
        if ours != 0 && !size.is_small() {
            self.sizes.insert(ours, size);
        }
        ours
    }

    /// How many members something has, when it is many.
    pub(crate) fn size(&self, reference: i64) -> Size {
        self.sizes.get(&reference).copied().unwrap_or_default()
    }
}

/// A stop, without what was printed.
pub(crate) fn stop_event(
    captured: &Captured,
    (key, session): (SessionKey, SessionId),
    timestamp: Timestamp,
    ids: &mut Ids,
) -> StopEvent {
    let owner = Owner { session: key, thread_id: captured.thread_id };
    let call_stack: Vec<Frame> =
        captured.stack.stack_frames.iter().map(|body| frame(body, owner, ids)).collect();
    let top = call_stack.first();
    let source = top.filter(|top| !top.file_path.is_empty()).map(|top| Source {
        path: top.file_path.clone(),
        name: top.file_path.rsplit('/').next().unwrap_or_default().to_owned(),
    });
    let event = &captured.event;
    StopEvent {
        timestamp,
        session,
        reason: event.reason.clone().unwrap_or_else(|| "unknown".to_owned()),
        thread_id: captured.thread_id,
        description: text(&event.description),
        text: exception_text(captured).or_else(|| text(&event.text)),
        all_threads_stopped: event.all_threads_stopped,
        source,
        line: top.map(|top| top.line_number),
        column: top.map(|top| top.column_number),
        total_frames: captured.stack.total_frames,
        top_frame_variables: scope_variables(&captured.scopes, owner, ids),
        own: captured.own.as_ref().and_then(|(place, scopes)| {
            let frame_id = call_stack.get(*place)?.frame_id;
            Some(OwnFrame { frame_id, variables: scope_variables(scopes, owner, ids) })
        }),
        hit_breakpoint_ids: captured.hit.clone().filter(|hit| !hit.is_empty()),
        output: OutputTail::default(),
        call_stack,
    }
}

/// `ValueError: x must be positive`.
fn exception_text(captured: &Captured) -> Option<String> {
    let exception = &captured.exception;
    let name = exception.exception_id.as_deref()?;
    let says = exception.details.message.as_deref().or(exception.description.as_deref());
    match says {
        Some(says) if !says.is_empty() && says != name => Some(format!("{name}: {says}")),
        _ => Some(name.to_owned()),
    }
}

/// Those of all scopes that were fetched, the innermost first.
fn scope_variables(scopes: &Fetched, owner: Owner, ids: &mut Ids) -> Option<ScopeVariables> {
    let fetched = scopes
        .iter()
        .filter_map(|(scope, variables)| Some((scope.name.as_deref()?, &variables.as_ref()?.variables)));
    let (names, bodies): (Vec<&str>, Vec<_>) = fetched.unzip();
    if names.is_empty() {
        return None;
    }
    let bodies: Vec<&body::Variable> = bodies.into_iter().flatten().collect();
    Some(ScopeVariables {
        scope_name: names.join(", "),
        variables: bodies
            .iter()
            .take(MAX_TOP_VARIABLES)
            .map(|body| {
                let body =
                    body::Variable { value: values::without_addresses(&body.value), ..(*body).clone() };
                variable(&body, owner, ids, MAX_TOP_VALUE_LEN)
            })
            .collect(),
        omitted: bodies.len().saturating_sub(MAX_TOP_VARIABLES),
    })
}

/// `demo::main::h38e95565b6f46d0e` is Rust's `demo::main`.
fn without_hash(name: &str) -> &str {
    const LEN: usize = 16;
    let is_hash = |hash: &str| hash.len() == LEN && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(name, |(name, _)| name)
}

/// A frame of a call stack.
pub(crate) fn frame(body: &body::StackFrame, owner: Owner, ids: &mut Ids) -> Frame {
    Frame { frame_id: ids.frames.add(owner, body.id.unwrap_or(0)), ..running_frame(body) }
}

/// A frame of a thread that runs: whatever its id is, it is void.
pub(crate) fn running_frame(body: &body::StackFrame) -> Frame {
    Frame {
        frame_id: 0,
        function_name: without_hash(&body.name).to_owned(),
        file_path: body.source.path.clone().unwrap_or_default(),
        line_number: body.line,
        // Columns count from 1; some adapters tell 0, or none, of a frame whose column they do not know.
        column_number: body.column.max(1),
        instruction_pointer: text(&body.instruction_pointer_reference),
    }
}

/// A scope.
pub(crate) fn scope(body: &body::Scope, owner: Owner, ids: &mut Ids) -> Scope {
    Scope {
        name: body.name.clone().unwrap_or_default(),
        variables_reference: ids.sized(
            owner,
            body.variables_reference,
            body.indexed_variables,
            body.named_variables,
        ),
        expensive: body.expensive,
        named_variables: body.named_variables,
        indexed_variables: body.indexed_variables,
    }
}

/// A variable; its value is cut at `max_len` bytes.
pub(crate) fn variable(body: &body::Variable, owner: Owner, ids: &mut Ids, max_len: usize) -> Variable {
    let variables_reference =
        ids.sized(owner, body.variables_reference, body.indexed_variables, body.named_variables);
    // gdb says nothing of what has parts.
    let value = match body.value.as_str() {
        "" if variables_reference != 0 => "{...}",
        value => value,
    };
    Variable {
        name: body.name.clone(),
        value: cut(value, max_len),
        type_name: type_name(&body.kind),
        variables_reference,
        evaluate_name: text(&body.evaluate_name),
        memory_reference: text(&body.memory_reference),
        named_variables: body.named_variables,
        indexed_variables: body.indexed_variables,
    }
}

/// The value of an expression.
pub(crate) fn evaluated(body: &body::Evaluated, owner: Owner, ids: &mut Ids) -> Evaluated {
    Evaluated {
        result: cut(&body.result, MAX_RESULT_LEN),
        type_name: type_name(&body.kind),
        variables_reference: ids.sized(
            owner,
            body.variables_reference,
            body.indexed_variables,
            body.named_variables,
        ),
        memory_reference: text(&body.memory_reference),
    }
}

/// Puts our ids in the place of the adapter's, in an answer of any kind.
pub(crate) fn exchange_ids(body: &mut Value, owner: Owner, ids: &mut Ids) {
    let frames = body.get_mut("stackFrames").and_then(Value::as_array_mut);
    for frame in frames.into_iter().flatten() {
        if let Some(theirs) = frame["id"].as_i64() {
            frame["id"] = Value::from(ids.frames.add(owner, theirs));
        }
    }
    exchange_references(body, owner, ids);
}

fn exchange_references(body: &mut Value, owner: Owner, ids: &mut Ids) {
    match body {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_i64().filter(|theirs| name == "variablesReference" && *theirs != 0) {
                    Some(theirs) => *value = Value::from(ids.references.add(owner, theirs)),
                    None => exchange_references(value, owner, ids),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| exchange_references(item, owner, ids)),
        _ => {}
    }
}

/// Of an expression whose function came to a breakpoint.
const STOPPED_INSIDE: &str =
    "The program stopped in a function that the expression calls, and is there now: its stack shows where.";
/// Of an expression that called `exit`, or that was asked for as the program ended.
const ENDED_MEANWHILE: &str = "The program ended while the expression was evaluated.";
/// How one is refused without a word; the second is debugpy's, of a connection that is gone.
const WORDLESS: [&str; 2] = [NO_REASON, "No more messages"];
const REFUSED: &str = "The debugger refused the expression without a reason; the program may have ended.";
/// Of an expression that calls what no program has.
const NOT_COMPILED: &str = "A function that the expression calls is not compiled into the program: it was inlined, or is of a \
    template and nobody else calls it. Read members instead.";
/// Of a function that lldb stops waiting for; what it says names a breakpoint that has nothing to do with it.
const TOO_LONG_FOR_LLDB: &str = "A function that the expression calls took longer than lldb waits, half a second, and was abandoned; the \
    program is still at the same place.";
/// What debuggers say in words that only who wrote them understands, and what it means.
const PLAINLY: [(&str, &str); 6] = [
    ("The program being debugged exited while in a function called from GDB", ENDED_MEANWHILE),
    ("error: execution stopped with unexpected state.", ENDED_MEANWHILE),
    ("Cannot evaluate function -- may be inlined", NOT_COMPILED),
    ("The program being debugged stopped while in a function called from GDB", STOPPED_INSIDE),
    ("Unable to evaluate expression: call stopped", STOPPED_INSIDE),
    (
        "Unable to evaluate expression: call is only supported with topmost stack frame",
        "The debugger calls functions and assigns in the topmost frame alone.",
    ),
];

/// What went wrong with an expression, out of an adapter's message.
pub(crate) fn evaluation_problem(message: &str) -> String {
    match WORDLESS.iter().any(|words| message.starts_with(words)) {
        true => REFUSED.to_owned(),
        false => request_problem(message),
    }
}

/// What went wrong with a request: of a Python traceback the exception alone, which stands behind the frames of the last
/// one; of what lldb's compiler says the errors, without their places.
pub(crate) fn request_problem(message: &str) -> String {
    if let Some((_, plain)) = PLAINLY.iter().find(|(words, _)| message.starts_with(words)) {
        return (*plain).to_owned();
    }
    // lldb's, after the language that it takes the expression for.
    if message.contains("error: Couldn't look up symbols:") {
        return NOT_COMPILED.to_owned();
    }
    if let Some(signal) = signal_of(message) {
        return format!(
            "A function that the expression calls received {signal} and was abandoned; the program is still at the same place."
        );
    }
    if message.contains("error: Expression execution was interrupted: breakpoint") {
        return TOO_LONG_FOR_LLDB.to_owned();
    }
    if let Some(problem) = compilers_problem(message) {
        return cut(&problem, MAX_PROBLEM_LEN);
    }
    const TRACEBACK: &str = "Traceback (most recent call last):";
    let problem = match message.rfind(TRACEBACK) {
        Some(at) => {
            let lines = message[at + TRACEBACK.len()..].lines();
            let is_said = |line: &&str| !line.is_empty() && !line.starts_with(char::is_whitespace);
            lines.skip_while(|line| !is_said(line)).map(str::trim).collect::<Vec<_>>().join(" ")
        }
        None => message.trim().to_owned(),
    };
    let problem = if problem.is_empty() { message.trim().to_owned() } else { problem };
    cut(&problem, MAX_PROBLEM_LEN)
}

/// The signal that ended a function which an expression called, in gdb's words or lldb's.
fn signal_of(message: &str) -> Option<&str> {
    let gdbs = message.strip_prefix("The program being debugged received signal ");
    let lldbs =
        || message.split_once("error: Expression execution was interrupted: signal ").map(|(_, rest)| rest);
    let rest = gdbs.or_else(lldbs)?;
    rest.split([',', ':', '\n', '.']).next().filter(|signal| signal.starts_with("SIG"))
}

/// `error: <user expression 0>:1:1: ...`, and before that the language that stood in for one that lldb cannot read.
fn compilers_problem(message: &str) -> Option<String> {
    let error =
        |line: &str| Some(line.strip_prefix("error: <user expression ")?.split_once(": ")?.1.to_owned());
    let errors: Vec<String> = message.lines().filter_map(error).collect();
    let language = message.split_once("Ran expression as '").and_then(|(_, rest)| rest.split_once('\''));
    let read_as = language.map(|(language, _)| format!(" (the debugger reads it as {language})"));
    (!errors.is_empty()).then(|| format!("{}{}", errors.join("; "), read_as.unwrap_or_default()))
}

fn type_name(value: &Option<String>) -> Option<String> {
    text(value).map(|name| type_names::plain(&name).into_owned())
}

fn text(value: &Option<String>) -> Option<String> {
    value.clone().filter(|text| !text.is_empty())
}

/// At most `max_len` bytes, and whether there were more.
fn cut(text: &str, max_len: usize) -> String {
    if text.len() <= max_len {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max_len);
    format!("{}... ({} bytes more)", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_made_between_characters_and_says_so() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("aéb", 2), "a... (3 bytes more)");
    }

    #[test]
    fn a_column_that_is_not_told_is_the_first() {
        let frame = |body: serde_json::Value| running_frame(&body::read(&body)).column_number;
        assert_eq!(frame(serde_json::json!({"name": "main", "line": 3})), 1);
        assert_eq!(frame(serde_json::json!({"name": "main", "line": 3, "column": 0})), 1);
        assert_eq!(frame(serde_json::json!({"name": "main", "line": 3, "column": 9})), 9);
    }

    #[test]
    fn what_a_compiler_says_is_told_without_places() {
        let one = "error: <user expression 1>:1:1: use of undeclared identifier 'nobody'\n    1 | nobody\n      | ^~~";
        assert_eq!(evaluation_problem(one), "use of undeclared identifier 'nobody'");
        let instead = "Expression evaluation in Rust not supported. Falling back to default language. Ran expression \
            as 'Objective C++'.\n";
        let two = format!("{instead}{one}\nerror: <user expression 1>:1:9: no member named 'len'\n");
        assert_eq!(
            evaluation_problem(&two),
            "use of undeclared identifier 'nobody'; no member named 'len' (the debugger reads it as Objective C++)"
        );
        assert_eq!(evaluation_problem("error: x"), "error: x");
    }

    #[test]
    fn what_only_debuggers_understand_is_told_plainly() {
        let gdb =
            "The program being debugged stopped while in a function called from GDB.\nEvaluation of ...";
        let told = evaluation_problem(gdb);
        assert_eq!(evaluation_problem("Unable to evaluate expression: call stopped"), told);
        assert!(told.starts_with("The program stopped in a function that the expression calls"), "{told}");
        for ended in [
            "The program being debugged exited while in a function called from GDB.\nEvaluation of ...",
            "error: execution stopped with unexpected state.\nerror: Expression execution was interrupted: ...",
        ] {
            assert_eq!(evaluation_problem(ended), "The program ended while the expression was evaluated.");
        }
        assert_eq!(evaluation_problem(NO_REASON), evaluation_problem("No more messages"));
        assert_eq!(request_problem(NO_REASON), NO_REASON, "a request of a client's own may be no expression");
        let delve = "Unable to evaluate expression: call is only supported with topmost stack frame";
        assert!(evaluation_problem(delve).contains("in the topmost frame alone"));
        let lldb = "Ran expression as 'C++14'.\nerror: Couldn't look up symbols:\n  _ZNSt6vectorIiSaIiEE2atEm\nHint: ...";
        assert_eq!(
            evaluation_problem(lldb),
            evaluation_problem("Cannot evaluate function -- may be inlined")
        );
        let programs = "RuntimeError: call stopped";
        assert_eq!(evaluation_problem(programs), programs, "the program's own words");
    }

    #[test]
    fn a_traceback_is_reduced_to_what_it_says() {
        let frames = "  File \"<string>\", line 1, in <module>\n";
        let one = format!("Traceback (most recent call last):\n{frames}NameError: name 'x' is not defined\n");
        assert_eq!(evaluation_problem(&one), "NameError: name 'x' is not defined");
        let two = format!(
            "{one}\nDuring handling of the above exception, another exception occurred:\n\n\
             Traceback (most recent call last):\n{frames}    int('a')\n    ^^^\nValueError: bad\n  in field a\n"
        );
        assert_eq!(evaluation_problem(&two), "ValueError: bad in field a");
        assert_eq!(evaluation_problem("SyntaxError: invalid syntax"), "SyntaxError: invalid syntax");
        let cut_off = format!("Traceback (most recent call last):\n{frames}");
        assert_eq!(evaluation_problem(&cut_off), cut_off.trim());
    }
}
