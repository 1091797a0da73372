//! The tools of a window: their definitions, how a call finds its verb, and what an answer looks like.
//!
//! Each toolset is a thin face over the engines: arguments in, verbs, result out. **Invariant:** a face holds no
//! state between two calls. It promises to know no transport: who may call is decided before.
//!
//! | module | what |
//! |---|---|
//! | [`window`] | what all parts of the agent share about its window |
//! | [`caller`], [`calls`] | who calls; the calls that run |
//! | [`whose`], [`claims`] | which debug session a client means |
//! | [`guests`] | which clients have called |
//! | `outside` | files that are another window's |
//! | `programs`, `tasks` | what a client starts, and what is run before it |
//! | [`definition`], [`arguments`], [`answer`] | a tool, what it is given, what it answers |
//! | [`debug`], [`quick`], [`lcp`], [`debugger`], [`code`] | one module for each toolset |

pub mod answer;
pub mod arguments;
pub mod caller;
pub mod calls;
pub mod claims;
pub mod code;
pub mod debug;
pub mod debugger;
pub mod definition;
pub mod guests;
pub mod lcp;
mod outside;
mod programs;
pub mod quick;
mod redact;
mod stepping;
mod steps;
mod tasks;
pub mod whose;
pub mod window;
pub(crate) mod words;

use std::collections::HashMap;
use std::sync::LazyLock;

use self::answer::{Answer, Told};
use self::caller::Caller;
use self::definition::Definition;
use self::whose::Bearing;
use crate::window::Window;
use baton_agent_base::fault::{Fault, Kind};
use baton_agent_base::names;
use baton_agent_base::object::Object;
use baton_agent_debug::types::SessionId;
use serde_json::Value;

/// All tools of all toolsets, in the order in which they are listed.
pub static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::new);

/// Toolset of the tools that change files, or help with it; not offered unless it is asked for.
const REFACTOR: &str = "refactor";
/// Its tools.
const REFACTORING: [&str; 5] =
    ["lcp_rename", "lcp_apply_edit", "lcp_undo", "lcp_complete", "lcp_code_action"];

/// See [`CATALOGUE`].
#[derive(Debug)]
pub struct Catalogue {
    definitions: Vec<Definition>,
    by_name: HashMap<&'static str, usize>,
}

impl Catalogue {
    fn new() -> Self {
        let toolsets = [
            debugger::schemas::definitions(),
            code::schemas::definitions(),
            debug::schema::definitions(),
            quick::schemas::definitions(),
            lcp::schemas::definitions(),
        ];
        let mut definitions: Vec<Definition> = toolsets.into_iter().flatten().collect();
        for definition in definitions.iter_mut().filter(|one| REFACTORING.contains(&one.name)) {
            definition.toolset = REFACTOR;
        }
        let by_name = definitions.iter().enumerate().map(|(idx, definition)| (definition.name, idx));
        Self { by_name: by_name.collect(), definitions }
    }

    /// All definitions.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The tool of that name.
    pub fn find(&self, name: &str) -> Option<&Definition> {
        self.by_name.get(name).map(|idx| &self.definitions[*idx])
    }

    /// The sentence for a name that no tool has.
    pub fn unknown(&self, name: &str) -> Fault {
        let shown: String = name.chars().take(MAX_SHOWN_NAME).collect();
        let names: Vec<&str> = self.definitions.iter().map(|definition| definition.name).collect();
        let error = Fault::new(Kind::UnknownTool, format!("There is no tool named {shown:?}."));
        match names::closest(name, &names) {
            Some(closest) => error.hint(format!("Did you mean {closest:?}? List the tools with tools/list.")),
            None => error.hint("List the tools with tools/list."),
        }
    }
}

/// Runs a tool, when its schema allows the arguments.
pub async fn call(
    window: &Window,
    definition: &Definition,
    arguments: Option<Object>,
    mut caller: Caller,
) -> Answer {
    let name = definition.name;
    let asked = arguments.as_ref().and_then(|arguments| arguments.get(debug::ACTION)).cloned();
    let arguments = match arguments::check(name, definition.shape(), arguments) {
        Ok(arguments) => arguments,
        Err(error) => return refused(definition, asked, error),
    };
    let mut bearing = whose::bearing(definition.toolset, name, &arguments);
    let id = whose::given_id(definition.toolset, name, &arguments);
    let owner = match id {
        Some(id) => window.debugger.session_of(id).await,
        None => None,
    };
    if let (Bearing::Named(named), Some(id), Some(owner)) = (&bearing, id, &owner)
        && named != owner
    {
        return refused(definition, asked, whose::foreign(id, named, owner));
    }
    if let Bearing::Named(named) = &bearing {
        caller.session = Some(named.clone());
    } else if owner.is_some() {
        caller.session = owner;
        bearing = Bearing::Optional;
    } else if matches!(bearing, Bearing::Unnamed | Bearing::Optional) {
        caller.session = match meant(window, &caller).await {
            Ok(meant) => meant,
            Err(error) if bearing == Bearing::Unnamed => return refused(definition, asked, error),
            Err(_) => None,
        };
    }
    let n_programs = window.debugger.sessions().iter().filter(|session| session.parent.is_none()).count();
    let about = match &bearing {
        Bearing::Named(named) => Some(named.clone()),
        Bearing::Unnamed => caller.session.clone(),
        Bearing::None | Bearing::Optional => None,
    };
    let client = caller.id.clone();
    let owner = client.clone().unwrap_or_default();
    let stand = caller.stand.clone();
    let answer = window::CALLER_STAND.scope(stand, run(window, definition, arguments, caller)).await;
    let told = whose::told(&answer).filter(|_| bearing != Bearing::Optional);
    if let (Some(client), Some(session)) = (client, told.as_ref().or(about.as_ref())) {
        window.claims.note(&client, session.clone());
    }
    // Calls of `lcp` name theirs.
    let is_open = n_programs > 1 && definition.toolset != lcp::schemas::TOOLSET;
    let answer = match told.or(about).filter(|_| is_open) {
        Some(session) => whose::named(answer, definition.toolset, &session),
        None => answer,
    };
    let is_about_programs = !matches!(definition.toolset, code::schemas::TOOLSET | REFACTOR);
    let news = match is_about_programs {
        true => words::news(&window.debugger.take_news(owner).await),
        false => None,
    };
    answer.telling(Told { notice: news, label: None })
}

/// The session that a call means that names none. `Ok(None)`: there is none at all.
async fn meant(window: &Window, caller: &Caller) -> Result<Option<SessionId>, Fault> {
    let last = caller.id.as_ref().and_then(|client| window.claims.last(client));
    loop {
        let all = window.debugger.statuses().await;
        if let Some(meant) = whose::meant(caller.id.as_deref(), last.as_ref(), &all)? {
            return Ok(Some(meant));
        }
        // The engine's choice, by its name: until the call runs, another client may start one.
        match window.debugger.status(None).await {
            Ok(status) if status.owner.is_some() && status.owner != caller.id => {}
            Ok(status) => return Ok(Some(status.id)),
            Err(_) => return Ok(None),
        }
    }
}

async fn run(window: &Window, definition: &Definition, arguments: Object, caller: Caller) -> Answer {
    let name = definition.name;
    match definition.toolset {
        debug::schema::TOOLSET => debug::call(window, arguments, caller).await,
        quick::schemas::TOOLSET => quick::call(window, name, arguments, caller).await,
        lcp::schemas::TOOLSET => lcp::call(window, name, arguments, caller).await,
        code::schemas::TOOLSET | REFACTOR => code::call(window, name, arguments, caller).await,
        _ => debugger::call(window, name, arguments, caller).await,
    }
}

fn refused(definition: &Definition, asked: Option<Value>, error: Fault) -> Answer {
    match definition.toolset {
        debug::schema::TOOLSET => debug::refused(asked, error),
        lcp::schemas::TOOLSET => lcp::refused(error),
        _ => Answer::Error(error),
    }
}

/// Characters of an unknown name that an error repeats.
const MAX_SHOWN_NAME: usize = 80;
