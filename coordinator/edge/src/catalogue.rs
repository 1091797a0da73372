//! The tools that clients are offered, whichever window is live, and while none is.
//!
//! The windows' own come from `catalogue.json`, which `baton-agent --print-catalogue` writes; a test of the
//! workspace keeps the two equal.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::route::Deed;
use super::windows_tools;

/// What the agent of this build offers.
const AGENT_TOOLS: &str = include_str!("catalogue.json");

/// All tools of all toolsets.
pub(crate) struct Catalogue(Vec<Entry>);

struct Entry {
    toolset: String,
    name: String,
    tool: Box<RawValue>,
    /// Whether it looks only.
    is_reader: bool,
    /// Those of its actions that look only, of a tool that has actions.
    readers: Vec<String>,
}

/// The toolsets that debug.
const DEBUGGING: [&str; 4] = ["debug", "debugger", "quick", "lcp"];

/// Tools, and actions of `debug`, that end a debug session.
const ENDS: [&str; 4] = ["stop_debugging", "debug_stop", "lcp_debug_stop", "terminate"];

/// A toolset that does not exist was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown toolset {name:?} ({known})")]
pub(crate) struct UnknownToolset {
    name: String,
    known: String,
}

impl Catalogue {
    /// The tools of this build.
    pub(crate) fn built_in() -> Self {
        Self::parse(AGENT_TOOLS).expect("invariant: catalogue.json is checked by a test of this file")
    }

    fn parse(agent_tools: &str) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Line {
            toolset: String,
            tool: Box<RawValue>,
        }
        #[derive(Deserialize)]
        struct Told {
            name: String,
            #[serde(default)]
            annotations: Annotations,
            #[serde(default, rename = "_meta")]
            meta: Meta,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Annotations {
            read_only_hint: bool,
        }
        #[derive(Default, Deserialize)]
        struct Meta {
            #[serde(default, rename = "baton/approvals")]
            approvals: Approvals,
        }
        #[derive(Default, Deserialize)]
        struct Approvals {
            read: Vec<String>,
        }
        let lines: Vec<Line> = serde_json::from_str(agent_tools)?;
        let own = windows_tools::definitions().into_iter().map(|tool| {
            let tool = serde_json::value::to_raw_value(&tool)?;
            Ok(Line { toolset: windows_tools::TOOLSET.to_owned(), tool })
        });
        let lines = lines.into_iter().map(Ok).chain(own);
        let entries = lines.map(|line: serde_json::Result<Line>| {
            let Line { toolset, tool } = line?;
            let Told { name, annotations, meta } = serde_json::from_str(tool.get())?;
            // Minified once, here, and not for every client.
            let tool = serde_json::from_str::<serde_json::Value>(tool.get())?;
            let tool = serde_json::value::to_raw_value(&tool)?;
            let (is_reader, readers) = (annotations.read_only_hint, meta.approvals.read);
            Ok(Entry { toolset, name, tool, is_reader, readers })
        });
        Ok(Self(entries.collect::<serde_json::Result<_>>()?))
    }

    /// The tools of some toolsets, each once, in the catalogue's order; those that debug only if `debug_enabled`.
    pub(crate) fn tools<'a>(
        &'a self,
        toolsets: &[impl AsRef<str>],
        debug_enabled: bool,
    ) -> Result<Vec<&'a RawValue>, UnknownToolset> {
        let wanted: BTreeSet<&str> = toolsets.iter().map(AsRef::as_ref).collect();
        if let Some(name) = wanted.iter().find(|name| !self.has_toolset(name)) {
            let known: BTreeSet<&str> = self.0.iter().map(|entry| entry.toolset.as_str()).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(UnknownToolset { name: (*name).to_owned(), known });
        }
        let mut names = BTreeSet::new();
        let is_offered = |entry: &&Entry| {
            let toolset = entry.toolset.as_str();
            wanted.contains(toolset) && (debug_enabled || !DEBUGGING.contains(&toolset))
        };
        let offered = self.0.iter().filter(is_offered).filter(|entry| names.insert(entry.name.as_str()));
        Ok(offered.map(|entry| &*entry.tool).collect())
    }

    /// True for a toolset that exists, or will.
    fn has_toolset(&self, name: &str) -> bool {
        NAMES.contains(&name) || self.0.iter().any(|entry| entry.toolset == name)
    }

    /// True for a tool of any toolset.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.0.iter().any(|entry| entry.name == name)
    }

    /// True for a tool that debugs, in all toolsets that have it.
    pub(crate) fn debugs(&self, name: &str) -> bool {
        let mut entries = self.0.iter().filter(|entry| entry.name == name).peekable();
        entries.peek().is_some() && entries.all(|entry| DEBUGGING.contains(&entry.toolset.as_str()))
    }

    /// What a call does; one that is not known may do anything.
    pub(crate) fn deed(&self, name: &str, action: Option<&str>) -> Deed {
        let Some(entry) = self.0.iter().find(|entry| entry.name == name) else { return Deed::Acts };
        let action = action.filter(|_| !entry.readers.is_empty());
        if entry.is_reader || action.is_some_and(|action| entry.readers.iter().any(|reader| reader == action))
        {
            return Deed::Reads;
        }
        if ENDS.contains(&action.unwrap_or(name)) { Deed::Ends } else { Deed::Acts }
    }

    /// Tools whose names are like `name`.
    pub(crate) fn similar(&self, name: &str) -> Vec<&str> {
        let words =
            |text: &str| text.split(['_', '-', '.', ' ']).map(str::to_lowercase).collect::<BTreeSet<_>>();
        let wanted = words(name);
        let is_similar = |entry: &&Entry| words(&entry.name).intersection(&wanted).next().is_some();
        let mut names: Vec<_> = self.0.iter().filter(is_similar).map(|entry| entry.name.as_str()).collect();
        names.dedup();
        names
    }
}

/// Names of toolsets that a setting may hold before the agent of this build has a tool in them.
const NAMES: [&str; 7] = ["debugger", "code", "windows", "debug", "quick", "lcp", "refactor"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_catalogue_is_whole() {
        let catalogue = Catalogue::built_in();
        assert!(catalogue.has_tool("list_windows"));
        for entry in &catalogue.0 {
            let tool: serde_json::Value = serde_json::from_str(entry.tool.get()).unwrap();
            for field in ["description", "inputSchema", "annotations"] {
                assert!(tool.get(field).is_some(), "{} has no {field}", entry.name);
            }
            // The text of this one says it all.
            assert_eq!(tool.get("outputSchema").is_none(), entry.name == "debug", "{}", entry.name);
        }
    }

    #[test]
    fn what_looks_only_is_known() {
        let catalogue = Catalogue::built_in();
        for (name, action, deed) in [
            ("list_windows", None, Deed::Reads),
            ("lcp_get_outline", Some("launch"), Deed::Reads),
            ("lcp_apply_edit", None, Deed::Acts),
            ("debug", Some("stack_trace"), Deed::Reads),
            ("debug", Some("evaluate"), Deed::Acts),
            ("debug", Some("terminate"), Deed::Ends),
            ("debug", None, Deed::Acts),
            ("stop_debugging", None, Deed::Ends),
            ("lcp_debug_stop", None, Deed::Ends),
            ("debug_stop", None, Deed::Ends),
            ("a tool to come", Some("terminate"), Deed::Acts),
        ] {
            assert_eq!(catalogue.deed(name, action), deed, "{name} {action:?}");
        }
        for ends in ENDS {
            let is_action = catalogue.0.iter().any(|entry| entry.tool.get().contains(&format!("\"{ends}\"")));
            assert!(is_action, "{ends} is no tool and no action");
        }
    }

    /// A client hands the list to a model with every conversation.
    #[test]
    fn the_default_list_is_cheap_to_read() {
        const MAX_TOKENS: usize = 3_000;
        let catalogue = Catalogue::built_in();
        let default = baton_proto::control::Settings::default().toolsets;
        let list = serde_json::to_string(&catalogue.tools(&default, true).unwrap()).unwrap();
        let n_tokens = tiktoken_rs::cl100k_base_singleton().encode_ordinary(&list).len();
        assert!(n_tokens <= MAX_TOKENS, "{n_tokens} tokens");
    }

    #[test]
    fn toolsets_choose() {
        let agent = r#"[{"toolset":"debugger","tool":{"name":"add_breakpoint"}},{"toolset":"quick","tool":{"name":"run"}}]"#;
        let catalogue = Catalogue::parse(agent).unwrap();
        let names = |toolsets: &[&str]| {
            catalogue.tools(toolsets, true).map(|tools| {
                let name = |tool: &&RawValue| {
                    serde_json::from_str::<serde_json::Value>(tool.get()).unwrap()["name"]
                        .as_str()
                        .unwrap()
                        .to_owned()
                };
                tools.iter().map(name).collect::<Vec<_>>()
            })
        };
        assert_eq!(names(&["quick", "debugger"]).unwrap(), ["add_breakpoint", "run"]);
        assert_eq!(names(&["windows"]).unwrap(), ["list_windows", "activate_window"]);
        assert_eq!(names(&["code"]).unwrap(), [""; 0]);
        let unknown = names(&["debugger", "nope"]).unwrap_err();
        assert_eq!(unknown.to_string(), "unknown toolset \"nope\" (debugger, quick, windows)");
        assert_eq!(catalogue.similar("remove-breakpoint"), ["add_breakpoint"]);
    }

    #[test]
    fn without_debugging_the_code_tools_are_left() {
        let catalogue = Catalogue::built_in();
        let all: Vec<&str> = NAMES.to_vec();
        let name = |tool: &RawValue| {
            let tool: serde_json::Value = serde_json::from_str(tool.get()).unwrap();
            tool["name"].as_str().unwrap().to_owned()
        };
        let (with, without) = (catalogue.tools(&all, true).unwrap(), catalogue.tools(&all, false).unwrap());
        let left: BTreeSet<String> = without.into_iter().map(name).collect();
        for tool in with.into_iter().map(name) {
            assert_eq!(left.contains(&tool), !catalogue.debugs(&tool), "{tool}");
        }
        for (tool, debugs) in
            [("debug", true), ("debug_start", true), ("lcp_debug_step", true), ("lcp_get_outline", false)]
        {
            assert_eq!(catalogue.debugs(tool), debugs, "{tool}");
        }
        assert!(!catalogue.debugs("list_windows") && !catalogue.debugs("a tool to come"));
    }
}
