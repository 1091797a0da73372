//! What is known of each adapter: the table that comes with Baton, and the user's file, which has the same form and
//! adds adapters to it or changes some.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::adapter::{Adapter, Dialect, Transport};
use crate::adapters::debugpy;
use crate::error::DebugError;
use crate::options::Shelf;
use baton_agent_base::launch_config::{name_of, parse_jsonc};

/// All adapters, the preferred ones first.
#[derive(Debug)]
pub struct Table {
    /// In the order in which they are tried.
    pub adapters: Vec<Adapter>,
    /// What VS Code's debuggers of the same languages are to the engine.
    editors: Vec<Adapter>,
}

/// The user's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserFile {
    adapters: Vec<Map<String, Value>>,
}

/// How long expressions may run until one is asked for, which says.
const FIRST_LIMIT: Duration = Duration::from_secs(30);

/// The adapters that come with Baton.
const BUILT_IN: &str = include_str!("table.json");

impl Table {
    /// The table with what the user's file says now.
    ///
    /// A table lives as long as the process, because sessions refer to its adapters; there is one for each content
    /// the file had.
    pub fn load(shelf: &Shelf) -> Result<&'static Self, DebugError> {
        static LOADED: Mutex<BTreeMap<Option<String>, &'static Table>> = Mutex::new(BTreeMap::new());
        let text = shelf.config.as_deref().and_then(|path| std::fs::read_to_string(path).ok());
        let mut loaded = LOADED.lock();
        if let Some(table) = loaded.get(&text) {
            return Ok(table);
        }
        let table = Self::parse(BUILT_IN, text.as_deref()).map_err(|problem| {
            let path = shelf.config.as_deref().unwrap_or(Path::new("adapters.json")).display();
            DebugError::BadConfiguration { message: format!("{path} cannot be used: {problem}") }
        })?;
        let table: &'static Self = Box::leak(Box::new(table));
        loaded.insert(text, table);
        Ok(table)
    }

    /// The built-in table with the user's changes: an entry with a known name replaces the fields it has, one with
    /// a new name comes first.
    fn parse(built_in: &str, user: Option<&str>) -> Result<Self, String> {
        let mut entries = read_entries(built_in)?;
        for change in user.map(read_entries).transpose()?.unwrap_or_default().into_iter().rev() {
            let name = name_of(&change).unwrap_or_default().to_owned();
            if name.is_empty() {
                return Err("an adapter has no `name`".to_owned());
            }
            match entries.iter_mut().find(|entry| name_of(entry) == Some(&name)) {
                Some(entry) => entry.extend(change),
                None => entries.insert(0, change),
            }
        }
        let mut adapters = entries.into_iter().map(to_adapter).collect::<Result<Vec<_>, _>>()?;
        let all: BTreeSet<String> =
            adapters.iter().flat_map(|adapter| &adapter.extensions).cloned().collect();
        for adapter in &mut adapters {
            let own: BTreeSet<String> = adapter.extensions.iter().cloned().collect();
            adapter.foreign = all.difference(&own).cloned().collect();
            adapter.limits = (adapter.dialect == Dialect::Debugpy).then(|| debugpy::limits(FIRST_LIMIT));
        }
        let editors = adapters.iter().map(Adapter::editor_of).collect();
        Ok(Self { adapters, editors })
    }

    /// The adapter with this name.
    pub fn find(&self, name: &str) -> Option<&Adapter> {
        self.adapters.iter().find(|adapter| adapter.name == name)
    }

    /// What VS Code's debugger for configurations of this type is, when its ways are known.
    pub(crate) fn editor_of(&self, kind: &str) -> Option<&Adapter> {
        let is_first = |adapter: &Adapter| adapter.editor_types().next() == Some(kind);
        let serves = |adapter: &Adapter| adapter.editor_types().any(|known| known == kind);
        let adapters = &self.adapters;
        let index = adapters.iter().position(is_first).or_else(|| adapters.iter().position(serves))?;
        self.editors.get(index)
    }

    /// Names of all, for messages.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.adapters.iter().map(|adapter| adapter.name.as_str()).collect();
        names.join(", ")
    }
}

fn read_entries(text: &str) -> Result<Vec<Map<String, Value>>, String> {
    let value = parse_jsonc(text).map_err(|problem| problem.to_string())?;
    let file: UserFile = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(file.adapters)
}

fn to_adapter(entry: Map<String, Value>) -> Result<Adapter, String> {
    let name = name_of(&entry).unwrap_or("?").to_owned();
    let adapter: Adapter =
        serde_json::from_value(Value::Object(entry)).map_err(|error| format!("adapter {name}: {error}"))?;
    if adapter.types.is_empty() {
        return Err(format!("adapter {name}: `types` must name at least one type of configuration"));
    }
    if adapter.dialect != Dialect::Debugpy && adapter.commands.iter().all(Vec::is_empty) {
        return Err(format!("adapter {name}: `commands` must hold at least one command line"));
    }
    let has = |placeholder: &str| {
        adapter.commands.iter().all(|command| command.iter().any(|part| part.contains(placeholder)))
    };
    match adapter.transport {
        Transport::TcpGiven | Transport::TcpBack if !has("{port}") => {
            Err(format!("adapter {name}: its commands need a `{{port}}`"))
        }
        Transport::Unix if !has("{socket}") => {
            Err(format!("adapter {name}: its commands need a `{{socket}}`"))
        }
        _ => Ok(adapter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_sound() {
        let table = Table::parse(BUILT_IN, None).unwrap();
        let mut names = BTreeSet::new();
        for adapter in &table.adapters {
            assert!(names.insert(&adapter.name), "{} stands there twice", adapter.name);
            assert!(!adapter.languages.is_empty(), "{} names no language", adapter.name);
            assert!(adapter.install.is_some(), "{} says nothing of its installation", adapter.name);
        }
        assert_eq!(names.len(), 8, "{}", table.names());
    }

    #[test]
    fn vs_codes_debuggers_evaluate_as_the_same_ones_do_elsewhere() {
        let table = Table::parse(BUILT_IN, None).unwrap();
        let context = |kind| table.editor_of(kind).unwrap().evaluate_context.as_deref();
        assert_eq!((context("debugpy"), context("pwa-node")), (Some("repl"), Some("repl")));
        assert_eq!((context("cppdbg"), context("lldb-dap"), context("lldb")), (None, None, None));
        let prefix = |kind| table.editor_of(kind).unwrap().second_try.clone().unwrap().prefix;
        assert_eq!((prefix("lldb"), prefix("go")), ("/nat ".to_owned(), "call ".to_owned()));
        assert!(table.editor_of("dart").is_none());
    }

    #[test]
    fn what_gdb_says_of_breakpoints_is_not_what_the_program_prints() {
        let table = Table::parse(BUILT_IN, None).unwrap();
        let printed = |text: &str| table.find("gdb").unwrap().without_stdout_noise(text.to_owned());
        let pending = "No source file named /w/b.c.\nBreakpoint 1 (-source /w/b.c -line 4) pending.\n";
        assert_eq!(printed(pending), "");
        assert_eq!(printed("\u{274c}\u{fe0f} No source file named /w/b.c.\nsum 3\n"), "sum 3\n");
        assert_eq!(printed("Function \"price\" not defined.\n"), "");
        assert_eq!(printed("No symbol table is loaded.  Use the \"file\" command.\n"), "");
        assert_eq!(printed("Breakpoint 2 at 0x555555555251: file a.c, line 4.\n"), "");
        assert_eq!(printed("Breakpoint 2, he said\n"), "Breakpoint 2, he said\n");
        assert_eq!(printed("sum 3\n"), "sum 3\n");
    }

    #[test]
    fn the_users_file_adds_and_changes() {
        let user = r#"{
            // comments are allowed
            "adapters": [
                {"name": "rdbg", "types": ["ruby"], "extensions": ["rb"], "commands": [["rdbg", "{port}"]], "transport": "tcp_given"},
                {"name": "gdb", "oldest": "15"},
            ]
        }"#;
        let table = Table::parse(BUILT_IN, Some(user)).unwrap();
        assert_eq!(table.adapters[0].name, "rdbg");
        let gdb = table.find("gdb").unwrap();
        assert_eq!(gdb.oldest.as_deref(), Some("15"));
        assert!(gdb.types.contains(&"gdb".to_owned()));
        assert!(!gdb.serves_source(Path::new("/a.rb")), "others' files are not its business");
        assert!(gdb.serves_source(Path::new("/a.c")) && gdb.serves_source(Path::new("/README")));
    }

    #[test]
    fn the_documented_example_loads_and_every_field_is_documented() {
        let text = include_str!("../../../../docs/debugging.md");
        let example = text.split("```json").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let table = Table::parse(BUILT_IN, Some(example)).unwrap();
        assert_eq!(table.adapters[0].name, "rdbg");
        assert_eq!(table.find("gdb").unwrap().commands[0][0], "/opt/gdb/bin/gdb");
        let error = serde_json::from_str::<Adapter>(r#"{"?": 1}"#).unwrap_err().to_string();
        let fields: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        assert!(fields.len() > 25, "{error}");
        for field in fields {
            assert!(text.contains(&format!("`{field}`")), "docs/debugging.md does not tell of `{field}`");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (user, expected) in [
            (r#"{"adapters": [{"types": ["x"]}]}"#, "has no `name`"),
            (r#"{"adapters": [{"name": "x", "typs": []}]}"#, "adapter x: unknown field `typs`"),
            (r#"{"adapters": [{"name": "x", "commands": [["y"]]}]}"#, "adapter x: `types`"),
            (r#"{"adapters": [{"name": "x", "types": ["x"]}]}"#, "adapter x: `commands`"),
            (
                r#"{"adapters": [{"name": "x", "types": ["x"], "commands": [["y"]], "transport": "tcp_given"}]}"#,
                "`{port}`",
            ),
            (r#"{"adapters": 1}"#, "invalid type"),
            ("{\n\"adapters\": [,]}", "line 2"),
        ] {
            let problem = Table::parse(BUILT_IN, Some(user)).unwrap_err();
            assert!(problem.contains(expected), "{user}: {problem}");
        }
    }
}
