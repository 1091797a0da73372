//! CORE: what stands in a tasks.json, and what is run for one of its tasks.
//!
//! Of the tasks that VS Code knows, those that are a command: `shell`, `process`, `cppbuild`, `npm`, `cargo`,
//! `typescript`. Others exist only in an editor.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::launch_config::for_platform;
use crate::object::Object;
use crate::wire::{bodies, read};

/// Most tasks that are run for one.
const MAX_TASKS: usize = 50;
/// The name of the task that is the default one to build.
const DEFAULT_BUILD: &str = "${defaultBuildTask}";
/// Matchers of tasks in the background that VS Code knows by their names, and the line with which each is ready.
const KNOWN_MATCHERS: [(&str, &str); 2] = [
    (TSC_WATCH, r"(?:Compilation complete\.|Found \d+ errors?\.) Watching for file changes\."),
    ("$esbuild-watch", r"\[watch\] build finished"),
];
const TSC_WATCH: &str = "$tsc-watch";
/// The fields of a task that say what is run.
const FIELDS: [&str; 8] = ["type", "command", "args", "options", "script", "path", "tsconfig", "option"];

bodies! { pub(crate),
    /// A tasks.json.
    TaskFile {
        tasks: Vec<Object>,
        /// Of all tasks that have none.
        options: Option<Object>,
    }

    /// A task.
    Task {
        label: Option<String>,
        /// What a label was called once.
        task_name: Option<String>,
        #[serde(rename = "type")]
        kind: Option<String>,
        command: Value,
        args: Vec<Value>,
        options: TaskOptions,
        script: Option<String>,
        path: Option<String>,
        tsconfig: Option<String>,
        option: Option<String>,
        group: Group,
        is_background: bool,
        problem_matcher: Value,
    }

    TaskOptions {
        cwd: Option<String>,
        env: Object,
        shell: Shell,
    }

    Shell {
        executable: Option<String>,
        args: Option<Vec<String>>,
    }

    Group {
        kind: String,
        is_default: bool,
    }

    /// What a task says of itself in what it prints.
    ProblemMatcher {
        /// Another one, of which this one changes something.
        base: Option<String>,
        background: Phases,
        /// What `background` was called once.
        watching: Phases,
    }

    /// The lines with which a round of work ends: a regular expression, or an object that holds it.
    Phases {
        ends_pattern: Value,
    }

    Pattern {
        regexp: Option<String>,
    }

    /// A text that says how it is to be quoted.
    Quoted {
        value: Value,
        quoting: Option<String>,
    }
}

impl Task {
    fn of(object: &Object) -> Self {
        read(&Value::Object(object.clone()))
    }

    /// The name by which others mean it.
    fn name(&self) -> String {
        if let Some(own) = self.label.as_ref().or(self.task_name.as_ref()) {
            return own.clone();
        }
        match (self.kind.as_deref(), &self.script, &self.path, &self.tsconfig) {
            (Some("npm"), Some(script), None, _) => format!("npm: {script}"),
            (Some("npm"), Some(script), Some(path), _) => format!("npm: {script} - {path}"),
            (Some("typescript"), _, _, Some(tsconfig)) => {
                format!("tsc: {} - {tsconfig}", self.option.as_deref().unwrap_or("build"))
            }
            _ => self.command.as_str().unwrap_or("a task without a name").to_owned(),
        }
    }

    fn words(&self) -> impl Iterator<Item = Word> {
        self.args.iter().filter_map(word)
    }
}

/// A command that is run for a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What the task is called.
    pub label: String,
    /// A path, or a name that is looked up.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Absolute.
    pub cwd: PathBuf,
    /// Added to the environment.
    pub env: Vec<(String, String)>,
    /// Set for a task that goes on while a program is debugged.
    pub background: Option<Background>,
}

/// A task that goes on while a program is debugged: it watches files, or serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Background {
    /// A regular expression for the line with which it says that it is ready; `None` when it never does.
    pub ready: Option<String>,
}

impl Background {
    /// As the problem matcher of a task tells it.
    fn of(matcher: &Value) -> Self {
        Self { ready: ends_pattern(matcher) }
    }
}

/// The first of several matchers that knows an end.
fn ends_pattern(matcher: &Value) -> Option<String> {
    match matcher {
        Value::Array(all) => all.iter().find_map(ends_pattern),
        Value::String(name) => {
            KNOWN_MATCHERS.iter().find(|(known, _)| known == name).map(|(_, ends)| (*ends).to_owned())
        }
        _ => {
            let ProblemMatcher { base, background, watching } = read(matcher);
            let own = [background, watching].into_iter().find_map(|phases| match phases.ends_pattern {
                Value::String(regexp) => Some(regexp),
                pattern => read::<Pattern>(&pattern).regexp,
            });
            own.or_else(|| ends_pattern(&Value::String(base?)))
        }
    }
}

/// Why a task is not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskProblem {
    /// There is none of that name.
    #[error("tasks.json has no task `{label}`{}", there_is(.known))]
    Unknown {
        /// What is wanted.
        label: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It depends on itself.
    #[error("the task `{label}` depends on itself")]
    Circle {
        /// Which.
        label: String,
    },
    /// Too many depend on each other.
    #[error("it depends on more than {MAX_TASKS} tasks")]
    TooMany,
    /// An extension of VS Code runs it.
    #[error("the task `{label}` of type `{kind}` exists in VS Code only")]
    Foreign {
        /// Which.
        label: String,
        /// Its `type`.
        kind: String,
    },
    /// It says not what to run.
    #[error("the task `{label}` has no command")]
    NoCommand {
        /// Which.
        label: String,
    },
}

fn there_is(labels: &[String]) -> String {
    if labels.is_empty() { String::new() } else { format!("; it has {}", labels.join(", ")) }
}

/// The tasks that are run for `wish` (a name, or a task's own fields), in their order, as written.
pub fn chosen(file: &Value, wish: &Value, os: &str) -> Result<Vec<Object>, TaskProblem> {
    let TaskFile { tasks, options } = read(file);
    let tasks = tasks.into_iter().filter(|task| !task.is_empty());
    let tasks: Vec<Object> = tasks.map(|task| for_platform(task, os)).collect();
    let mut order = Order { tasks: &tasks, options: options.as_ref(), open: Vec::new(), chosen: Vec::new() };
    order.visit(wish)?;
    Ok(order.chosen.into_iter().map(|(_, task)| task).collect())
}

/// Tasks are run after those that they depend on, each once.
struct Order<'a> {
    tasks: &'a [Object],
    /// Of all tasks that have none.
    options: Option<&'a Object>,
    open: Vec<String>,
    chosen: Vec<(String, Object)>,
}

impl Order<'_> {
    fn visit(&mut self, wish: &Value) -> Result<(), TaskProblem> {
        let mut task = self.find(wish)?;
        let label = label_of(&task);
        if self.chosen.iter().any(|(known, _)| *known == label) {
            return Ok(());
        }
        if self.open.contains(&label) {
            return Err(TaskProblem::Circle { label });
        }
        if self.open.len() + self.chosen.len() >= MAX_TASKS {
            return Err(TaskProblem::TooMany);
        }
        self.open.push(label.clone());
        match task.remove("dependsOn") {
            Some(Value::Array(others)) => others.iter().try_for_each(|other| self.visit(other))?,
            Some(other) => self.visit(&other)?,
            None => {}
        }
        self.open.pop();
        if let Some(options) = self.options.filter(|_| !task.contains_key("options")) {
            task.insert("options".to_owned(), Value::Object(options.clone()));
        }
        self.chosen.push((label, task));
        Ok(())
    }

    fn find(&self, wish: &Value) -> Result<Object, TaskProblem> {
        let Some(label) = wish.as_str() else {
            // A task by its own fields.
            let fields = wish.as_object().cloned().unwrap_or_default();
            let is_meant = |task: &&Object| fields.iter().all(|(name, value)| task.get(name) == Some(value));
            return Ok(self.tasks.iter().find(is_meant).cloned().unwrap_or(fields));
        };
        let is_meant = |task: &&Object| match label {
            DEFAULT_BUILD => is_default_build(task),
            label => label_of(task) == label,
        };
        if let Some(task) = self.tasks.iter().find(is_meant) {
            return Ok(task.clone());
        }
        let known = self.tasks.iter().map(label_of).collect();
        detected(label).ok_or_else(|| TaskProblem::Unknown { label: label.to_owned(), known })
    }
}

fn is_default_build(task: &Object) -> bool {
    let group = Task::of(task).group;
    group.kind == "build" && group.is_default
}

/// What VS Code calls tasks that it finds by itself.
fn detected(label: &str) -> Option<Object> {
    let task = match label.split_once(": ")? {
        ("npm", script) => match script.split_once(" - ") {
            Some((script, path)) => json!({ "type": "npm", "script": script, "path": path }),
            None => json!({ "type": "npm", "script": script }),
        },
        ("tsc", rest) => {
            let (option, tsconfig) = rest.split_once(" - ")?;
            json!({ "type": "typescript", "tsconfig": tsconfig, "option": option })
        }
        _ => return None,
    };
    task.as_object().cloned()
}

/// The name by which others mean a task.
fn label_of(task: &Object) -> String {
    Task::of(task).name()
}

/// The fields of a task in which variables count.
pub fn fields(task: &Object) -> Object {
    let fields = task.iter().filter(|(name, _)| FIELDS.contains(&name.as_str()));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What the rest of the machine says.
pub struct Surroundings<'a> {
    /// The folder whose tasks.json it is.
    pub folder: &'a Path,
    /// The user's shell, as in `SHELL`.
    pub shell: Option<String>,
    /// Whether a file is there.
    pub is_there: &'a dyn Fn(&Path) -> bool,
}

/// The command of a task, whose variables are resolved; `None` for one that only depends on others.
pub fn step(
    written: &Object,
    resolved: &Object,
    around: &Surroundings<'_>,
) -> Result<Option<Step>, TaskProblem> {
    let label = label_of(written);
    let task = Task::of(resolved);
    let Task { is_background, problem_matcher, .. } = Task::of(written);
    let mut background = is_background.then(|| Background::of(&problem_matcher));
    let mut cwd = inside(around.folder, task.options.cwd.as_deref());
    let kind = task.kind.as_deref().unwrap_or("process");
    let no_command = || TaskProblem::NoCommand { label: label.clone() };
    let (program, args) = match kind {
        // One that is nothing but the sum of others.
        "shell" | "process" if task.command.is_null() && written.contains_key("label") => return Ok(None),
        "shell" => shell(&task, around).ok_or_else(no_command)?,
        "process" | "cppbuild" => {
            let (program, _) = word(&task.command).ok_or_else(no_command)?;
            (program, task.words().map(|(word, _)| word).collect())
        }
        "npm" => {
            cwd = inside(around.folder, task.path.as_deref());
            npm(task.script.as_deref().ok_or_else(no_command)?, &cwd, around)
        }
        "cargo" => {
            let command = task.command.as_str().ok_or_else(no_command)?.to_owned();
            ("cargo".to_owned(), [command].into_iter().chain(task.words().map(|(word, _)| word)).collect())
        }
        "typescript" => {
            let (program, mut args) = typescript(task.tsconfig.as_deref().ok_or_else(no_command)?, around);
            if task.option.as_deref() == Some("watch") {
                args.push("--watch".to_owned());
                background = Some(Background::of(&TSC_WATCH.into()));
            }
            (program, args)
        }
        _ => return Err(TaskProblem::Foreign { label, kind: kind.to_owned() }),
    };
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let env = task.options.env.into_iter().map(|(name, value)| (name, text(value))).collect();
    Ok(Some(Step { label, program, args, cwd, env, background }))
}

fn inside(folder: &Path, path: Option<&str>) -> PathBuf {
    path.filter(|path| !path.is_empty()).map_or_else(|| folder.to_owned(), |path| folder.join(path))
}

/// By the package manager whose lock file is there, as VS Code chooses it.
fn npm(script: &str, folder: &Path, around: &Surroundings<'_>) -> (String, Vec<String>) {
    let managers =
        [("pnpm", "pnpm-lock.yaml"), ("yarn", "yarn.lock"), ("bun", "bun.lock"), ("bun", "bun.lockb")];
    let is_there =
        |lock: &str| [folder, around.folder].iter().any(|place| (around.is_there)(&place.join(lock)));
    let found = managers.iter().find(|(_, lock)| is_there(lock));
    let manager = found.map_or("npm", |(manager, _)| manager).to_owned();
    let args = if script == "install" { vec!["install"] } else { vec!["run", script] };
    (manager, args.into_iter().map(str::to_owned).collect())
}

fn typescript(tsconfig: &str, around: &Surroundings<'_>) -> (String, Vec<String>) {
    let own = around.folder.join("node_modules/.bin/tsc");
    let program = if (around.is_there)(&own) { own.to_string_lossy().into_owned() } else { "tsc".to_owned() };
    (program, vec!["-p".to_owned(), tsconfig.to_owned()])
}

/// A command line for the user's shell, or the one that the task names.
fn shell(task: &Task, around: &Surroundings<'_>) -> Option<(String, Vec<String>)> {
    /// Shells to which `-c` means what it means to `sh`.
    const KNOWN: [&str; 5] = ["bash", "dash", "ksh", "sh", "zsh"];
    let command = word(&task.command)?;
    let args: Vec<_> = task.words().collect();
    let mut line = if args.is_empty() { command.0 } else { quoted(command) };
    for arg in args {
        line.push(' ');
        line.push_str(&quoted(arg));
    }
    let is_known = |path: &String| {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| KNOWN.contains(&name))
    };
    let users = around.shell.clone().filter(is_known).unwrap_or_else(|| "/bin/sh".to_owned());
    let own = &task.options.shell;
    let program = own.executable.clone().unwrap_or(users);
    let mut all = own.args.clone().unwrap_or_else(|| vec!["-c".to_owned()]);
    all.push(line);
    Some((program, all))
}

/// A text with the way in which it is to be quoted, when it says so: `"a"`, or `{"value": "a", "quoting": "strong"}`.
type Word = (String, Option<String>);

fn word(value: &Value) -> Option<Word> {
    let text = |value: &Value| match value {
        Value::Array(parts) => Some(parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        value => value.as_str().map(str::to_owned),
    };
    match value {
        Value::Object(_) => {
            let Quoted { value, quoting } = read(value);
            Some((text(&value)?, quoting))
        }
        value => Some((text(value)?, None)),
    }
}

/// As VS Code puts a word on a command line: what has blanks and no quotes of its own is quoted; variables of the shell
/// in other words count.
fn quoted((text, quoting): Word) -> String {
    let is_quoted = |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    match quoting.as_deref() {
        Some("weak") => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        Some("strong") => strong(&text),
        Some("escape") => {
            let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
            text.chars().flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c])).collect()
        }
        _ if is_quoted('\'') || is_quoted('"') => text,
        _ if text.contains(char::is_whitespace) => strong(&text),
        _ => text,
    }
}

fn strong(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const FILE: &str = r#"{
        "version": "2.0.0",
        "options": {"env": {"ALL": "1"}},
        "tasks": [
            {"label": "build", "type": "shell", "command": "cc", "args": ["-g", "my main.c", {"value": "$OUT", "quoting": "weak"}],
             "group": {"kind": "build", "isDefault": true}, "dependsOn": ["generate"], "problemMatcher": "$gcc"},
            {"label": "generate", "type": "process", "command": "gen", "args": ["a b"], "options": {"cwd": "sub", "env": {"N": 1}}},
            {"label": "line", "type": "shell", "command": "echo a && echo b"},
            {"label": "all", "dependsOn": ["build", "generate", "npm: test"]},
            {"type": "npm", "script": "test"},
            {"label": "watch", "type": "npm", "script": "watch", "isBackground": true, "problemMatcher": ["$eslint-stylish", "$tsc-watch"]},
            {"label": "serve", "type": "shell", "command": "s", "isBackground": true, "problemMatcher": {"pattern": {"regexp": "x"},
             "background": {"activeOnStart": true, "beginsPattern": "^b", "endsPattern": {"regexp": "^e"}}}},
            {"label": "silent", "type": "shell", "command": "s", "isBackground": true, "problemMatcher": []},
            {"label": "a", "type": "shell", "command": "a", "dependsOn": "b"},
            {"label": "b", "type": "shell", "command": "b", "dependsOn": ["a"]},
            {"label": "gulp", "type": "gulp", "task": "x"},
            {"label": "rust", "type": "cargo", "command": "build", "args": ["--release"]},
            {"label": "own", "type": "shell", "command": "x", "options": {"shell": {"executable": "/bin/bash", "args": ["-lc"]}}},
            {"label": "other", "type": "shell", "command": "l", "linux": {"command": "linux"}, "osx": {"command": "mac"}}
        ]
    }"#;

    fn check(wish: Value, expected: Expect) {
        let file: Value = serde_json::from_str(FILE).unwrap();
        let around = Surroundings {
            folder: Path::new("/w"),
            shell: Some("/usr/bin/fish".to_owned()),
            is_there: &|path| path == Path::new("/w/web/yarn.lock"),
        };
        let told = match chosen(&file, &wish, "linux") {
            Err(problem) => problem.to_string(),
            Ok(tasks) => {
                let line = |task: &Object| match step(task, &fields(task), &around) {
                    Ok(Some(Step { label, program, args, cwd, env, background })) => {
                        let ready = background.map(|Background { ready }| format!(", ready at {ready:?}"));
                        let (cwd, ready) = (cwd.display(), ready.unwrap_or_default());
                        format!("{label}: {program} {args:?} in {cwd} {env:?}{ready}")
                    }
                    Ok(None) => "nothing of its own".to_owned(),
                    Err(problem) => problem.to_string(),
                };
                tasks.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn a_task_is_run_after_those_that_it_depends_on() {
        check(
            json!("build"),
            expect![[r#"
            generate: gen ["a b"] in /w/sub [("N", "1")]
            build: /bin/sh ["-c", "cc -g 'my main.c' \"$OUT\""] in /w [("ALL", "1")]"#]],
        );
        check(
            json!("all"),
            expect![[r#"
            generate: gen ["a b"] in /w/sub [("N", "1")]
            build: /bin/sh ["-c", "cc -g 'my main.c' \"$OUT\""] in /w [("ALL", "1")]
            npm: test: npm ["run", "test"] in /w [("ALL", "1")]
            nothing of its own"#]],
        );
        check(
            json!("${defaultBuildTask}"),
            expect![[r#"
            generate: gen ["a b"] in /w/sub [("N", "1")]
            build: /bin/sh ["-c", "cc -g 'my main.c' \"$OUT\""] in /w [("ALL", "1")]"#]],
        );
        check(json!("a"), expect!["the task `a` depends on itself"]);
    }

    #[test]
    fn each_kind_of_task_has_its_command() {
        for (wish, expected) in [
            (json!("line"), expect![[r#"line: /bin/sh ["-c", "echo a && echo b"] in /w [("ALL", "1")]"#]]),
            (json!("rust"), expect![[r#"rust: cargo ["build", "--release"] in /w [("ALL", "1")]"#]]),
            (json!("own"), expect![[r#"own: /bin/bash ["-lc", "x"] in /w []"#]]),
            (json!("other"), expect![[r#"other: /bin/sh ["-c", "linux"] in /w [("ALL", "1")]"#]]),
            (
                json!("npm: build - web"),
                expect![[r#"npm: build - web: yarn ["run", "build"] in /w/web [("ALL", "1")]"#]],
            ),
            (
                json!({"type": "npm", "script": "install"}),
                expect![[r#"npm: install: npm ["install"] in /w [("ALL", "1")]"#]],
            ),
            (
                json!("tsc: build - tsconfig.json"),
                expect![[r#"tsc: build - tsconfig.json: tsc ["-p", "tsconfig.json"] in /w [("ALL", "1")]"#]],
            ),
        ] {
            check(wish, expected);
        }
    }

    #[test]
    fn a_task_in_the_background_says_when_it_is_ready() {
        for (wish, expected) in [
            (
                json!("watch"),
                expect![[
                    r#"watch: npm ["run", "watch"] in /w [("ALL", "1")], ready at Some("(?:Compilation complete\\.|Found \\d+ errors?\\.) Watching for file changes\\.")"#
                ]],
            ),
            (
                json!("tsc: watch - tsconfig.json"),
                expect![[
                    r#"tsc: watch - tsconfig.json: tsc ["-p", "tsconfig.json", "--watch"] in /w [("ALL", "1")], ready at Some("(?:Compilation complete\\.|Found \\d+ errors?\\.) Watching for file changes\\.")"#
                ]],
            ),
            (
                json!("serve"),
                expect![[r#"serve: /bin/sh ["-c", "s"] in /w [("ALL", "1")], ready at Some("^e")"#]],
            ),
            (
                json!("silent"),
                expect![[r#"silent: /bin/sh ["-c", "s"] in /w [("ALL", "1")], ready at None"#]],
            ),
        ] {
            check(wish, expected);
        }
    }

    #[test]
    fn what_cannot_be_run_is_told() {
        for (wish, expected) in [
            (json!("gulp"), expect!["the task `gulp` of type `gulp` exists in VS Code only"]),
            (
                json!("biuld"),
                expect![
                    "tasks.json has no task `biuld`; it has build, generate, line, all, npm: test, watch, serve, silent, a, b, gulp, rust, own, other"
                ],
            ),
            (
                json!({"type": "cargo"}),
                expect![[r#"rust: cargo ["build", "--release"] in /w [("ALL", "1")]"#]],
            ),
            (json!({"type": "npm", "path": "x"}), expect!["the task `a task without a name` has no command"]),
        ] {
            check(wish, expected);
        }
    }
}
