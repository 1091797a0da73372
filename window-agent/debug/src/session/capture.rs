//! CORE: what is fetched at a stop before it is told: stack, scopes and variables of the top frame, and of the program's
//! own where it stopped in a library, the exception.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::adapter::Adapter;
use crate::breakpoints::triggers::CRASH_ID;
use crate::dap::body::{self, read};
use crate::types::MAX_TOP_VARIABLES;
use crate::values::{MAX_FETCHED, MAX_PARTS, Wordless};
use baton_agent_base::paths::is_own;

/// Frames told with a stop. Deeper ones are seldom looked at, and a runaway recursion has thousands.
pub(crate) const MAX_FRAMES: usize = 20;
/// Scopes whose variables are told with a stop: blocks, arguments and locals.
const MAX_SCOPES: usize = 3;

/// What a request of a capture fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Stack,
    Exception,
    /// The number of the signal, where the stop does not name it.
    Signal,
    Scopes(Which),
    /// Of the scope at this place in the frame's.
    Variables(Which, usize),
    /// Of the value that is told without words, at the second place in the variables of the scope at the first.
    Parts(Which, usize, usize),
}

/// A frame whose variables are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The innermost one.
    Top,
    /// The innermost one of the program's own files, when that is another.
    Own,
}

/// Scopes whose variables are fetched, and those of them that have come.
pub(crate) type Fetched = Vec<(body::Scope, Option<body::Variables>)>;

/// A stop whose surroundings are being fetched.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) id: u64,
    /// Requests without an answer yet.
    pub(crate) n_open: usize,
    /// When it is told with what is there.
    pub(crate) deadline: Instant,
    captured: Captured,
}

/// A stop with its surroundings, as the adapter told them. Ids are the adapter's, but for the breakpoints'.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub(crate) thread_id: i64,
    /// Body of the `stopped` event; its `reason` is brought to one form.
    pub(crate) event: body::Stopped,
    /// Body of `stackTrace`.
    pub(crate) stack: body::StackTrace,
    /// Body of `exceptionInfo`.
    pub(crate) exception: body::ExceptionInfo,
    /// Of the top frame.
    pub(crate) scopes: Fetched,
    /// The place of the program's own frame in the stack, and its scopes, where the program stopped in a library.
    pub(crate) own: Option<(usize, Fetched)>,
    /// Ours, of the breakpoints that were hit; `None` when the adapter does not tell.
    pub(crate) hit: Option<Vec<i64>>,
}

impl Capture {
    /// A stop of which only the event is known.
    pub(crate) fn new(id: u64, thread_id: i64, event: body::Stopped, deadline: Instant) -> Self {
        Self { id, n_open: 0, deadline, captured: Captured { thread_id, event, ..Captured::default() } }
    }

    /// The thread that stopped.
    pub(crate) fn thread_id(&self) -> i64 {
        self.captured.thread_id
    }

    /// Takes an answer (null when the request failed); gives the requests that follow from it. The program's own files
    /// are in `folders`.
    pub(crate) fn take(
        &mut self,
        step: Step,
        body: &Value,
        folders: &[PathBuf],
        adapter: &Adapter,
    ) -> Vec<(&'static str, Value, Step)> {
        match step {
            Step::Stack => {
                self.captured.stack = read(body);
                self.captured.own = self.own_place(folders).map(|place| (place, Fetched::new()));
                let places =
                    [(Which::Top, Some(0)), (Which::Own, self.captured.own.as_ref().map(|own| own.0))];
                let scopes = |(which, place): (Which, Option<usize>)| {
                    let frame_id = self.captured.stack.stack_frames.get(place?)?.id?;
                    Some(("scopes", json!({"frameId": frame_id}), Step::Scopes(which)))
                };
                return places.into_iter().filter_map(scopes).collect();
            }
            Step::Exception => self.captured.exception = read(body),
            Step::Signal => {
                if let Some(name) = signal_name(body) {
                    self.captured.event.description = Some(name.to_owned());
                }
            }
            Step::Scopes(which) => {
                let scopes = read::<body::Scopes>(body).scopes;
                let Some(fetched) = self.scopes_of(which) else { return Vec::new() };
                *fetched = nearest(scopes).into_iter().map(|scope| (scope, None)).collect();
                let variables = |(at, (scope, _)): (usize, &(body::Scope, _))| {
                    let reference = Some(scope.variables_reference).filter(|reference| *reference != 0)?;
                    let step = Step::Variables(which, at);
                    Some(("variables", json!({"variablesReference": reference}), step))
                };
                return fetched.iter().enumerate().filter_map(variables).collect();
            }
            Step::Variables(which, at) => {
                let Some(scopes) = self.scopes_of(which) else { return Vec::new() };
                if let Some((_, variables)) = scopes.get_mut(at) {
                    *variables = (!body.is_null()).then(|| read(body));
                }
                let is_noise = noise(scopes, adapter);
                if let Some((_, Some(variables))) = scopes.get_mut(at) {
                    return parts(which, at, variables, is_noise);
                }
            }
            Step::Parts(which, at, variable) => {
                let scope = self.scopes_of(which).and_then(|scopes| scopes.get_mut(at));
                let variables = scope.and_then(|(_, variables)| variables.as_mut());
                let variable = variables.and_then(|body| body.variables.get_mut(variable));
                if let Some(variable) = variable.filter(|_| !body.is_null())
                    && let Some(wordless) = Wordless::of_variable(variable)
                {
                    variable.value = wordless.told(&read(body));
                }
            }
        }
        Vec::new()
    }

    fn scopes_of(&mut self, which: Which) -> Option<&mut Fetched> {
        match which {
            Which::Top => Some(&mut self.captured.scopes),
            Which::Own => self.captured.own.as_mut().map(|(_, scopes)| scopes),
        }
    }

    /// Where in the stack the program's own files begin, when it came into a library without being led there: what it
    /// was doing is told then.
    fn own_place(&self, folders: &[PathBuf]) -> Option<usize> {
        // What is attached to, a core dump too, stands wherever it is.
        const UNASKED: [&str; 4] = ["exception", "signal", "pause", "attach"];
        self.captured.event.reason.as_deref().filter(|reason| UNASKED.contains(reason))?;
        let is_own = |frame: &body::StackFrame| {
            let path = frame.source.path.as_deref().map(Path::new);
            path.is_some_and(|path| is_own(path, folders.iter().map(PathBuf::as_path)))
        };
        self.captured.stack.stack_frames.iter().position(is_own).filter(|place| *place > 0)
    }

    /// The stop as it is to be told; without what is in each file's scope, the names of which are given.
    pub(crate) fn into_captured(self, ours: &BTreeMap<i64, i64>, adapter: &Adapter) -> Captured {
        let mut captured = self.captured;
        leave_noise_out(&mut captured.scopes, adapter);
        if let Some((_, scopes)) = &mut captured.own {
            leave_noise_out(scopes, adapter);
        }
        captured.hit = captured.event.hit_breakpoint_ids.as_ref().map(|ids| {
            ids.iter().filter_map(|id| ours.get(id).copied()).filter(|id| *id != CRASH_ID).collect()
        });
        captured
    }
}

/// Which variables of these scopes, by name and value, tell nothing of the program.
fn noise<'a>(scopes: &Fetched, adapter: &'a Adapter) -> impl Fn(&str, &str) -> bool + use<'a> {
    let all = scopes.iter().filter_map(|(_, variables)| variables.as_ref());
    let names: BTreeSet<&str> =
        all.flat_map(|body| &body.variables).map(|variable| variable.name.as_str()).collect();
    // In a block `this` belongs to its scope, and the others to the file's.
    let mut of_file = adapter.file_variables.as_slice();
    if !of_file.iter().all(|name| names.contains(name.as_str())) {
        of_file = &[];
    }
    move |name, value| {
        let written = format!("{name} = {value}");
        let is = |noise: &String| written.starts_with(&noise.replace("{name}", name));
        of_file.iter().any(|of_file| of_file == name) || adapter.variable_noise.iter().any(is)
    }
}

/// Takes out what tells nothing of the program.
fn leave_noise_out(scopes: &mut Fetched, adapter: &Adapter) {
    let is_noise = noise(scopes, adapter);
    for variables in scopes.iter_mut().filter_map(|(_, variables)| variables.as_mut()) {
        variables.variables.retain(|variable| !is_noise(&variable.name, &variable.value));
    }
}

/// Asks for the parts of the first values that have no words, and are not left out once they have.
fn parts(
    which: Which,
    at: usize,
    body: &mut body::Variables,
    is_noise: impl Fn(&str, &str) -> bool,
) -> Vec<(&'static str, Value, Step)> {
    let mut asked = Vec::new();
    for (place, variable) in body.variables.iter_mut().take(MAX_TOP_VARIABLES).enumerate() {
        let Some(wordless) = Wordless::of_variable(variable) else { continue };
        let in_short = wordless.in_short();
        if is_noise(&variable.name, &in_short) {
            variable.value = in_short;
        } else if asked.len() < MAX_FETCHED {
            let reference = variable.variables_reference;
            let arguments = json!({"variablesReference": reference, "start": 0, "count": MAX_PARTS + 1});
            asked.push(("variables", arguments, Step::Parts(which, at, place)));
        }
    }
    asked
}

/// The name of the signal whose number was evaluated.
pub(crate) fn signal_name(body: &Value) -> Option<&'static str> {
    name_of_signal(read::<body::Evaluated>(body).result.trim().parse().ok()?)
}

pub(super) fn name_of_signal(number: i64) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// The scopes whose variables belong to a function's call: up to its locals, where the adapter marks them (js-debug
/// marks closures, which lie behind, as arguments), else the first. An expensive one can take for ever.
fn nearest(mut scopes: Vec<body::Scope>) -> Vec<body::Scope> {
    let is = |scope: &body::Scope, hint: &str| scope.presentation_hint.as_deref() == Some(hint);
    let is_registers =
        |scope: &body::Scope| is(scope, "registers") || scope.name.as_deref() == Some("Registers");
    // js-debug calls that of a module expensive; at its top level there is no other.
    let is_module = scopes.first().is_some_and(|scope| scope.name.as_deref() == Some("Module"));
    if let Some(first) = scopes.first_mut().filter(|_| is_module) {
        first.expensive = false;
    }
    scopes.retain(|scope| !scope.expensive && !is_registers(scope));
    scopes.truncate(MAX_SCOPES);
    let n_own = scopes.iter().rposition(|scope| is(scope, "locals")).map_or(1, |last| last + 1);
    scopes.truncate(n_own);
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_frame_is_fetched_too_where_an_exception_stopped_it_in_a_library() {
        let frame = |id: i64, path: &str| json!({"id": id, "name": "f", "source": {"path": path}});
        let asked = |reason: &str, paths: &[&str]| {
            let event = body::Stopped { reason: Some(reason.to_owned()), ..body::Stopped::default() };
            let mut capture = Capture::new(1, 1, event, Instant::now());
            let frames: Vec<Value> = (1..).zip(paths).map(|(id, path)| frame(id, path)).collect();
            let stack = json!({"stackFrames": frames});
            let requests = capture.take(Step::Stack, &stack, &[PathBuf::from("/w")], &Adapter::editor());
            requests.iter().map(|(_, arguments, _)| arguments["frameId"].clone()).collect::<Vec<_>>()
        };
        let (library, packaged, own) = ("/usr/lib/json.py", "/w/node_modules/a.js", "/w/shop.py");
        for reason in ["exception", "signal", "pause", "attach"] {
            assert_eq!(asked(reason, &[library, packaged, own, own]), [1, 3], "{reason}");
            assert_eq!(asked(reason, &[own, library]), [1], "it stopped there itself");
            assert_eq!(asked(reason, &[library, packaged]), [1], "there is none");
        }
        // Who steps into a library, or sets a breakpoint there, wants to be there.
        for reason in ["step", "breakpoint", "entry"] {
            assert_eq!(asked(reason, &[library, own]), [1], "{reason}");
        }
    }

    #[test]
    fn what_tells_nothing_of_the_program_is_left_out() {
        let variable = |(name, value): (&str, &str)| body::Variable {
            name: name.to_owned(),
            value: value.to_owned(),
            ..body::Variable::default()
        };
        let all = [
            ("@py_assert1", "False"),
            ("this", "undefined"),
            ("this", "{...}"),
            ("thistle", "undefined"),
            ("run", "ƒ run() {}"),
            ("other", "ƒ run() {}"),
        ];
        let variables = body::Variables { variables: all.map(variable).to_vec() };
        let mut capture = Capture::new(1, 1, body::Stopped::default(), Instant::now());
        capture.captured.scopes = vec![(body::Scope::default(), Some(variables))];
        let variable_noise = ["@py_", "this = undefined", "{name} = ƒ {name}("].map(str::to_owned).to_vec();
        let adapter = Adapter { variable_noise, ..Adapter::editor() };
        let captured = capture.into_captured(&BTreeMap::new(), &adapter);
        let told = captured.scopes[0].1.as_ref().unwrap();
        let names: Vec<&str> = told.variables.iter().map(|variable| variable.name.as_str()).collect();
        assert_eq!(names, ["this", "thistle", "other"]);
    }

    #[test]
    fn what_is_left_out_is_not_asked_for() {
        let adapter = Adapter {
            variable_noise: vec!["this = global(".to_owned()],
            file_variables: vec!["module".to_owned()],
            ..Adapter::editor()
        };
        let mut capture = Capture::new(1, 1, body::Stopped::default(), Instant::now());
        capture.captured.scopes = vec![(body::Scope::default(), None)];
        let variable = |(name, kind): (&str, &str)| json!({"name": name, "value": kind, "type": kind, "variablesReference": 7});
        let all =
            [("this", "global"), ("module", "Module"), ("shop", "Shop"), ("that", "global")].map(variable);
        let asked = capture.take(Step::Variables(Which::Top, 0), &json!({"variables": all}), &[], &adapter);
        let places: Vec<Step> = asked.into_iter().map(|(_, _, step)| step).collect();
        assert_eq!(places, [2, 3].map(|place| Step::Parts(Which::Top, 0, place)));
        let captured = capture.into_captured(&BTreeMap::new(), &adapter);
        let told = &captured.scopes[0].1.as_ref().unwrap().variables;
        assert_eq!(told.iter().map(|variable| variable.name.as_str()).collect::<Vec<_>>(), ["shop", "that"]);
    }

    #[test]
    fn what_the_runtime_puts_into_a_file_is_left_out_where_all_of_it_is_in_whichever_scope() {
        let variable = |name: &&str| body::Variable { name: (*name).to_owned(), ..body::Variable::default() };
        let scope = |names: &[&str]| {
            let variables = names.iter().map(variable).collect();
            (body::Scope::default(), Some(body::Variables { variables }))
        };
        let told = |scopes: &[&[&str]]| {
            let mut capture = Capture::new(1, 1, body::Stopped::default(), Instant::now());
            capture.captured.scopes = scopes.iter().map(|names| scope(names)).collect();
            let file_variables = ["require", "this"].map(str::to_owned).to_vec();
            let adapter = Adapter { file_variables, ..Adapter::editor() };
            let captured = capture.into_captured(&BTreeMap::new(), &adapter);
            let variables =
                captured.scopes.into_iter().flat_map(|(_, variables)| variables.unwrap().variables);
            variables.map(|variable| variable.name).collect::<Vec<_>>()
        };
        assert_eq!(told(&[&["item", "this"], &["sum", "require"]]), ["item", "sum"]);
        assert_eq!(told(&[&["item", "this"], &["sum"]]), ["item", "this", "sum"]);
    }

    #[test]
    fn registers_are_no_variables_of_a_function() {
        let scope = |name: &str, hint: &str| body::Scope {
            name: Some(name.to_owned()),
            presentation_hint: Some(hint.to_owned()),
            ..body::Scope::default()
        };
        let (registers, locals) = (scope("Registers", "registers"), scope("Locals", "locals"));
        assert_eq!(nearest(vec![registers.clone()]), []);
        assert_eq!(nearest(vec![registers, locals.clone()]), [locals]);
    }
}
