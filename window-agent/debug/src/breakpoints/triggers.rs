//! CORE: breakpoints that are not on a line, by the ids that those on lines count too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::hits::{Wishes, normal_hits};
use super::place::Place;
use super::{Binding, Breakpoints, SessionKey, described, noted, replaced};
use crate::adapter::HitStyle;
use crate::dap::body::{self, FilterOption, NewBreakpoint, SetExceptions, read};
use crate::types::triggers::{RemoveTriggers, SetTrigger, Trigger, TriggerBreakpoint, TriggerKind};

/// A trigger, and what became of it.
#[derive(Debug)]
pub(super) struct TriggerEntry {
    wish: SetTrigger,
    /// The root of the tree it means something in; any, when there is none.
    pub(super) of_tree: Option<SessionKey>,
    /// Whose it is; another's wish for the same place does not make it theirs.
    owner: Option<String>,
    /// What somebody else wanted of it before.
    replaced: Option<String>,
    pub(super) bound: BTreeMap<SessionKey, Binding>,
}

/// A trigger on its way to an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedTrigger {
    /// Ours.
    pub(crate) id: i64,
    pub(crate) wish: SetTrigger,
}

/// The id of a function breakpoint of our own, where a program fails; all others are above 0.
pub(crate) const CRASH_ID: i64 = -1;

impl TriggerEntry {
    /// What is to be set again.
    pub(super) fn kept(&self) -> SetTrigger {
        SetTrigger { owner: self.owner.clone(), ..self.wish.clone() }
    }
}

impl WantedTrigger {
    /// Where a program fails.
    pub(crate) fn crash(function: &str) -> Self {
        let trigger = Trigger::Function { name: function.to_owned() };
        Self { id: CRASH_ID, wish: SetTrigger { trigger, condition: None, hit_condition: None, owner: None } }
    }
}

/// All triggers of a kind that a session is to have. `None`, of exceptions: those that the adapter chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedOfKind {
    pub(crate) kind: TriggerKind,
    pub(crate) wanted: Option<Vec<WantedTrigger>>,
}

impl Breakpoints {
    /// Sets a trigger, or changes the one at the same place; gives its id.
    pub(crate) fn set_trigger(&mut self, wish: SetTrigger, tree: SessionKey) -> i64 {
        let of_tree = wish.trigger.kind().is_of_session().then_some(tree);
        let is_shared = self.is_shared || of_tree.is_some();
        let is_meant = |entry: &TriggerEntry| {
            let is_same = entry.wish.trigger.is_same_place(&wish.trigger) && entry.of_tree == of_tree;
            is_same && (is_shared || entry.owner == wish.owner)
        };
        if let Some((&id, entry)) = self.triggers.iter_mut().find(|(_, entry)| is_meant(entry)) {
            let old = std::mem::replace(&mut entry.wish, wish);
            if old.owner != entry.wish.owner {
                let [was, is] = [&old, &entry.wish]
                    .map(|wish| [wish.condition.as_deref(), wish.hit_condition.as_deref(), None]);
                entry.replaced = replaced(&old.owner, was, is).filter(|_| entry.wish.owner.is_some());
            }
            return id;
        }
        self.last_id += 1;
        let owner = wish.owner.clone();
        let entry = TriggerEntry { wish, of_tree, owner, replaced: None, bound: BTreeMap::new() };
        self.triggers.insert(self.last_id, entry);
        self.last_id
    }

    /// What stands at the place of a client's wish, when it is another trigger, and somebody else's.
    pub(crate) fn others_trigger(&self, wish: &SetTrigger, tree: SessionKey) -> Option<String> {
        let of_tree = wish.trigger.kind().is_of_session().then_some(tree);
        let is_shared = self.is_shared || of_tree.is_some();
        let is_meant = |entry: &&TriggerEntry| {
            is_shared && entry.wish.trigger.is_same_place(&wish.trigger) && entry.of_tree == of_tree
        };
        let entry = self.triggers.values().find(is_meant)?;
        let is_other =
            (&entry.wish.condition, &entry.wish.hit_condition) != (&wish.condition, &wish.hit_condition);
        let owner = [&entry.owner, &entry.wish.owner].into_iter().find(|owner| **owner != wish.owner)?;
        let told = [entry.wish.condition.as_deref(), entry.wish.hit_condition.as_deref(), None];
        (wish.owner.is_some() && is_other).then(|| described(owner, told))
    }

    /// The filters of this owner are these now; `None` leaves the choice to the adapters. Gives the ids of those there
    /// are.
    pub(crate) fn set_exceptions(
        &mut self,
        owner: Option<String>,
        wishes: Option<Vec<SetTrigger>>,
    ) -> Vec<i64> {
        let kept: Vec<Trigger> = wishes.iter().flatten().map(|wish| wish.trigger.clone()).collect();
        let owner = owner.filter(|_| !self.is_shared);
        let is_others = |entry: &TriggerEntry| !self.is_shared && entry.owner != owner;
        self.triggers.retain(|_, entry| {
            let is_chosen = kept.contains(&entry.wish.trigger) || is_others(entry);
            entry.wish.trigger.kind() != TriggerKind::Exception || is_chosen
        });
        match wishes.as_ref().is_some_and(Vec::is_empty) {
            true => self.without_exceptions.insert(owner),
            false => self.without_exceptions.remove(&owner),
        };
        wishes.into_iter().flatten().map(|wish| self.set_trigger(wish, 0)).collect()
    }

    /// Removes what is meant, and gives it.
    pub(crate) fn remove_triggers(&mut self, which: &RemoveTriggers) -> Vec<TriggerBreakpoint> {
        let is_meant = |known: &TriggerBreakpoint| match which {
            RemoveTriggers::Id(id) => known.id == *id,
            RemoveTriggers::Trigger(trigger, owner) => {
                let may =
                    |client: &String| trigger.kind().is_of_session() || self.concerns(&known.owner, client);
                known.trigger.is_same_place(trigger) && owner.as_ref().is_none_or(may)
            }
            RemoveTriggers::Kind(kind) => known.trigger.kind() == *kind,
            RemoveTriggers::Of(kind, owner) => known.trigger.kind() == *kind && known.owner == *owner,
            RemoveTriggers::All => true,
        };
        let removed: Vec<TriggerBreakpoint> = self.triggers().into_iter().filter(is_meant).collect();
        for known in &removed {
            self.triggers.remove(&known.id);
        }
        if matches!(which, RemoveTriggers::All | RemoveTriggers::Kind(TriggerKind::Exception)) {
            self.without_exceptions.clear();
        }
        removed
    }

    /// Takes over the functions of an editor: those at the same place keep their ids, those that are gone go, unless
    /// the editor has not heard of them yet. Gives whether anything changed.
    pub(crate) fn replace_functions(&mut self, wishes: Vec<SetTrigger>, unheard: &BTreeSet<Place>) -> bool {
        let is_unheard = |trigger: &Trigger| match trigger {
            Trigger::Function { name } => unheard.contains(&Place::Function(name.clone())),
            _ => false,
        };
        let n_before = self.triggers.len();
        self.triggers.retain(|_, TriggerEntry { wish, .. }| {
            let is_there = wishes.iter().any(|other| other.trigger == wish.trigger);
            wish.trigger.kind() != TriggerKind::Function || is_there || is_unheard(&wish.trigger)
        });
        let mut is_changed = self.triggers.len() != n_before;
        for mut wish in wishes {
            let known = self.triggers.values().find(|entry| entry.wish.trigger == wish.trigger);
            if let Some(TriggerEntry { wish: old, .. }) = known {
                // The editor has our hit condition in the adapters' form.
                if old.hit_condition.as_deref().map(normal_hits)
                    == wish.hit_condition.as_deref().map(normal_hits)
                {
                    wish.hit_condition.clone_from(&old.hit_condition);
                }
                wish.owner.clone_from(&old.owner);
                if *old == wish || is_unheard(&wish.trigger) {
                    continue;
                }
                wish.owner = None;
            }
            is_changed = true;
            self.set_trigger(wish, 0);
        }
        is_changed
    }

    /// All triggers, by id.
    pub(crate) fn triggers(&self) -> Vec<TriggerBreakpoint> {
        self.triggers.iter().map(|(&id, entry)| entry.to_breakpoint(id)).collect()
    }

    /// The trigger with this id.
    pub(crate) fn find_trigger(&self, id: i64) -> Option<TriggerBreakpoint> {
        Some(self.triggers.get(&id)?.to_breakpoint(id))
    }

    /// The triggers of a kind as a session of this tree is to have them, which this client started.
    pub(crate) fn of_kind(&self, kind: TriggerKind, tree: SessionKey, client: &str) -> WantedOfKind {
        let is_meant = |entry: &TriggerEntry| {
            let is_of_this = match entry.of_tree {
                Some(of_tree) => of_tree == tree,
                None => self.concerns(&entry.owner, client),
            };
            entry.wish.trigger.kind() == kind && is_of_this
        };
        let entries = self.triggers.iter().filter(|(_, entry)| is_meant(entry));
        let wanted: Vec<WantedTrigger> =
            entries.map(|(&id, entry)| WantedTrigger { id, wish: entry.wish.clone() }).collect();
        let is_unwanted = self.without_exceptions.iter().any(|owner| self.concerns(owner, client));
        let is_choice = kind == TriggerKind::Exception && wanted.is_empty() && !is_unwanted;
        WantedOfKind { kind, wanted: (!is_choice).then_some(wanted) }
    }

    /// The choice of exceptions in the protocol's words, for any adapter; `None`: each adapter's own.
    pub(crate) fn exception_choice(&self) -> Option<Map<String, Value>> {
        let (mut filters, mut options) = (Vec::new(), Vec::new());
        for WantedTrigger { wish, .. } in self.of_kind(TriggerKind::Exception, 0, "").wanted? {
            match (wish.trigger, wish.condition) {
                (Trigger::Exception { filter }, None) => filters.push(json!(filter)),
                (Trigger::Exception { filter }, Some(condition)) => {
                    options.push(json!({"filterId": filter, "condition": condition}));
                }
                _ => {}
            }
        }
        let fields = [("filters".to_owned(), filters.into()), ("filterOptions".to_owned(), options.into())];
        Some(Map::from_iter(fields))
    }

    /// A trigger could not be set: as if it had never been.
    pub(crate) fn forget_trigger(&mut self, id: i64) {
        self.triggers.remove(&id);
    }
}

impl TriggerEntry {
    fn to_breakpoint(&self, id: i64) -> TriggerBreakpoint {
        let binding = self.bound.values().find(|binding| binding.verified).or(self.bound.values().next());
        let message = match binding {
            None => Some("not verified yet: no debug session has taken it".to_owned()),
            Some(binding) => binding.message.clone(),
        };
        TriggerBreakpoint {
            id,
            trigger: self.wish.trigger.clone(),
            verified: binding.is_some_and(|binding| binding.verified),
            condition: self.wish.condition.clone(),
            hit_condition: self.wish.hit_condition.clone(),
            message: noted(&self.replaced, message),
            owner: self.owner.clone(),
            path: binding.and_then(|binding| binding.path.clone()),
            line: binding.and_then(|binding| binding.line),
        }
    }
}

/// The triggers of a kind in an adapter's words.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Told {
    /// Of the request; `None` when there is nothing to ask for.
    pub(crate) arguments: Option<Value>,
    /// Ours, in the order in which the adapter answers.
    pub(crate) ids: Vec<i64>,
    /// Those that the adapter cannot have, and why.
    pub(crate) refused: Vec<(i64, String)>,
}

/// The request that tells an adapter all triggers of a kind.
pub(crate) fn command(kind: TriggerKind) -> &'static str {
    match kind {
        TriggerKind::Function => "setFunctionBreakpoints",
        TriggerKind::Instruction => "setInstructionBreakpoints",
        TriggerKind::Data => "setDataBreakpoints",
        TriggerKind::Exception => "setExceptionBreakpoints",
    }
}

/// What an adapter has to be able to do for a kind; exceptions need filters instead.
pub(crate) fn capability(kind: TriggerKind) -> Option<&'static str> {
    match kind {
        TriggerKind::Function => Some("supportsFunctionBreakpoints"),
        TriggerKind::Instruction => Some("supportsInstructionBreakpoints"),
        TriggerKind::Data => Some("supportsDataBreakpoints"),
        TriggerKind::Exception => None,
    }
}

/// What an adapter can do, and what is told to it besides what is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Able<'a> {
    pub(crate) capabilities: &'a Map<String, Value>,
    pub(crate) hits: HitStyle,
    /// A function behind the others, whose answer is nobody's.
    pub(crate) entry: Option<&'a str>,
    /// The exceptions to stop at where nobody chose any, not even the adapter.
    pub(crate) exceptions: &'a [String],
}

/// See [`Told`].
pub(crate) fn tell(kind: TriggerKind, wanted: Option<&[WantedTrigger]>, able: Able<'_>) -> Told {
    let Able { capabilities, hits, .. } = able;
    if kind == TriggerKind::Exception {
        return tell_exceptions(wanted, able);
    }
    let (mut told, mut bodies) = (Told::default(), Vec::new());
    let can = |name: &str| capabilities.get(name).and_then(Value::as_bool).unwrap_or(false);
    let is_able = capability(kind).is_none_or(can);
    for wanted in wanted.unwrap_or_default() {
        let body = if is_able {
            to_body(wanted, can, hits)
        } else {
            Err(format!("not set: the debug adapter does not support {}", kind.name()))
        };
        match body {
            Ok(body) => {
                told.ids.push(wanted.id);
                bodies.push(body);
            }
            Err(message) => told.refused.push((wanted.id, message)),
        }
    }
    if let (TriggerKind::Function, Some(name)) = (kind, able.entry) {
        bodies.push(NewBreakpoint { name: Some(name.to_owned()), ..NewBreakpoint::default() });
    }
    told.arguments = is_able.then(|| json!({"breakpoints": bodies}));
    told
}

fn to_body(
    WantedTrigger { id, wish }: &WantedTrigger,
    can: impl Fn(&str) -> bool,
    hits: HitStyle,
) -> Result<NewBreakpoint, String> {
    let wishes =
        Wishes { condition: &wish.condition, hit_condition: &wish.hit_condition, log_message: &None };
    let told = wishes.for_adapter(*id, can, hits)?;
    let mut body = NewBreakpoint {
        condition: told.condition,
        hit_condition: told.hit_condition,
        ..NewBreakpoint::default()
    };
    match &wish.trigger {
        Trigger::Function { name } => body.name = Some(name.clone()),
        Trigger::Instruction { reference, offset } => {
            body.instruction_reference = Some(reference.clone());
            body.offset = Some(*offset).filter(|offset| *offset != 0);
        }
        Trigger::Data { data_id, access } => {
            body.data_id = Some(data_id.clone());
            body.access_type = access.map(|access| access.as_str());
        }
        Trigger::Exception { .. } => {}
    }
    Ok(body)
}

fn tell_exceptions(wanted: Option<&[WantedTrigger]>, able: Able<'_>) -> Told {
    let body::Exceptions { exception_breakpoint_filters: offered, supports_exception_filter_options } =
        read(&Value::Object(able.capabilities.clone()));
    let mut arguments = SetExceptions::default();
    let Some(wanted) = wanted else {
        let theirs = offered.iter().filter(|known| known.default);
        arguments.filters = theirs.map(|known| known.filter.clone()).collect();
        if arguments.filters.is_empty() {
            // Who debugs wants to hear of a crash.
            let is_offered = |name: &&String| offered.iter().any(|known| known.filter == **name);
            arguments.filters = able.exceptions.iter().filter(is_offered).cloned().collect();
        }
        return Told { arguments: Some(json!(arguments)), ..Told::default() };
    };
    let (mut told, mut ids_of_options) = (Told::default(), Vec::new());
    for WantedTrigger { id, wish } in wanted {
        let Trigger::Exception { filter } = &wish.trigger else { continue };
        let Some(known) = offered.iter().find(|known| known.filter == *filter) else {
            let names: Vec<&str> = offered.iter().map(|known| known.filter.as_str()).collect();
            let names = if names.is_empty() { "it has none".to_owned() } else { names.join(", ") };
            let message = format!("not set: the debug adapter has no such exception filter ({names})");
            told.refused.push((*id, message));
            continue;
        };
        match &wish.condition {
            None => {
                arguments.filters.push(filter.clone());
                told.ids.push(*id);
            }
            Some(condition) if supports_exception_filter_options && known.supports_condition => {
                let (filter_id, condition) = (filter.clone(), condition.clone());
                arguments.filter_options.push(FilterOption { filter_id, condition });
                ids_of_options.push(*id);
            }
            Some(_) => {
                let message = "not set: the debug adapter does not support conditions on exceptions";
                told.refused.push((*id, message.to_owned()));
            }
        }
    }
    told.ids.extend(ids_of_options);
    told.arguments = Some(json!(arguments));
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exception(filter: &str, condition: Option<&str>) -> SetTrigger {
        let trigger = Trigger::Exception { filter: filter.to_owned() };
        SetTrigger { trigger, condition: condition.map(str::to_owned), hit_condition: None, owner: None }
    }

    fn function(name: &str) -> SetTrigger {
        let trigger = Trigger::Function { name: name.to_owned() };
        SetTrigger { trigger, condition: None, hit_condition: None, owner: None }
    }

    fn capabilities(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn tell_all(breakpoints: &Breakpoints, kind: TriggerKind, can: &Map<String, Value>) -> Told {
        let wanted = breakpoints.of_kind(kind, 1, "").wanted;
        let able = Able { capabilities: can, hits: HitStyle::Operators, entry: None, exceptions: &[] };
        tell(kind, wanted.as_deref(), able)
    }

    #[test]
    fn until_filters_are_chosen_the_adapter_chooses() {
        let can =
            capabilities(json!({"supportsExceptionFilterOptions": true, "exceptionBreakpointFilters": [
            {"filter": "raised", "supportsCondition": true}, {"filter": "uncaught", "default": true}]}));
        let mut breakpoints = Breakpoints::default();
        let arguments = |breakpoints: &Breakpoints| {
            tell_all(breakpoints, TriggerKind::Exception, &can).arguments.unwrap().to_string()
        };
        assert_eq!(arguments(&breakpoints), r#"{"filters":["uncaught"]}"#);
        breakpoints.set_trigger(exception("raised", Some("x")), 1);
        breakpoints.set_trigger(exception("uncaught", None), 1);
        assert_eq!(
            arguments(&breakpoints),
            r#"{"filterOptions":[{"condition":"x","filterId":"raised"}],"filters":["uncaught"]}"#
        );
        assert_eq!(tell_all(&breakpoints, TriggerKind::Exception, &can).ids, [2, 1]);
        breakpoints.set_exceptions(None, Some(Vec::new()));
        assert_eq!(arguments(&breakpoints), r#"{"filters":[]}"#);
        breakpoints.remove_triggers(&RemoveTriggers::Kind(TriggerKind::Exception));
        assert_eq!(arguments(&breakpoints), r#"{"filters":["uncaught"]}"#);
    }

    #[test]
    fn what_an_adapter_cannot_have_is_refused_by_name() {
        let mut breakpoints = Breakpoints::default();
        breakpoints.set_trigger(function("main"), 1);
        breakpoints.set_trigger(exception("all", None), 1);
        breakpoints.set_trigger(exception("raised", Some("x")), 1);
        let can = capabilities(json!({"exceptionBreakpointFilters": [{"filter": "raised"}]}));
        let functions = tell_all(&breakpoints, TriggerKind::Function, &can);
        assert_eq!(functions.arguments, None);
        assert!(functions.refused[0].1.contains("function breakpoints"), "{functions:?}");
        let exceptions = tell_all(&breakpoints, TriggerKind::Exception, &can).refused;
        assert!(exceptions[0].1.contains("no such exception filter (raised)"), "{exceptions:?}");
        assert!(exceptions[1].1.contains("conditions on exceptions"), "{exceptions:?}");
    }

    #[test]
    fn an_editor_has_a_say_in_functions_alone() {
        let mut breakpoints = Breakpoints::default();
        let hits =
            |name: &str, text: &str| SetTrigger { hit_condition: Some(text.to_owned()), ..function(name) };
        let kept = breakpoints.set_trigger(hits("kept", "> 2"), 0);
        breakpoints.set_trigger(function("gone"), 0);
        let unheard = breakpoints.set_trigger(function("unheard"), 0);
        let other = breakpoints.set_trigger(exception("raised", None), 0);
        let not_yet = BTreeSet::from([Place::Function("unheard".to_owned())]);
        let heard = || vec![hits("kept", ">2"), function("users")];
        assert!(breakpoints.replace_functions(heard(), &not_yet));
        let ids: Vec<i64> = breakpoints.triggers().iter().map(|known| known.id).collect();
        assert_eq!(ids, [kept, unheard, other, 5]);
        let known = breakpoints.find_trigger(kept).unwrap();
        assert_eq!(known.hit_condition.as_deref(), Some("> 2"), "as it was asked for");
        assert!(!breakpoints.replace_functions(heard(), &not_yet), "nothing is new");
        assert!(breakpoints.replace_functions(vec![hits("kept", ">3")], &BTreeSet::new()));
        let known = breakpoints.find_trigger(kept).unwrap();
        assert_eq!(known.hit_condition.as_deref(), Some(">3"), "the user changed it");
    }

    #[test]
    fn a_choice_of_exceptions_is_said_for_any_adapter() {
        let mut breakpoints = Breakpoints::default();
        let choice =
            |breakpoints: &Breakpoints| breakpoints.exception_choice().map(|all| json!(all).to_string());
        assert_eq!(choice(&breakpoints), None, "each adapter chooses");
        breakpoints.set_exceptions(None, Some(vec![exception("all", None), exception("raised", Some("x"))]));
        let both = r#"{"filterOptions":[{"condition":"x","filterId":"raised"}],"filters":["all"]}"#;
        assert_eq!(choice(&breakpoints).as_deref(), Some(both));
        breakpoints.set_exceptions(None, Some(Vec::new()));
        assert_eq!(choice(&breakpoints).as_deref(), Some(r#"{"filterOptions":[],"filters":[]}"#));
    }

    #[test]
    fn without_an_editor_each_client_has_its_own_functions_and_exceptions() {
        let of = |owner: &str, wish: SetTrigger| SetTrigger { owner: Some(owner.to_owned()), ..wish };
        let mut breakpoints = Breakpoints::default();
        let anns = breakpoints.set_trigger(of("ann", function("f")), 0);
        let bobs = breakpoints.set_trigger(of("bob", function("f")), 0);
        let choose = |breakpoints: &mut Breakpoints, owner: &str, names: Option<&[&str]>| {
            let wishes = names.map(|names| {
                names.iter().map(|name| of(owner, exception(name, None))).collect::<Vec<SetTrigger>>()
            });
            breakpoints.set_exceptions(Some(owner.to_owned()), wishes)
        };
        let ids = |breakpoints: &Breakpoints, kind, client: &str| {
            let wanted = breakpoints.of_kind(kind, 1, client).wanted;
            wanted.map(|wanted| wanted.iter().map(|wanted| wanted.id).collect::<Vec<i64>>())
        };
        assert_eq!(ids(&breakpoints, TriggerKind::Function, "ann"), Some(vec![anns]));
        assert_eq!(ids(&breakpoints, TriggerKind::Function, "bob"), Some(vec![bobs]));
        let chosen = choose(&mut breakpoints, "ann", Some(&["all"]));
        choose(&mut breakpoints, "bob", Some(&[]));
        assert_eq!(ids(&breakpoints, TriggerKind::Exception, "ann"), Some(chosen));
        assert_eq!(ids(&breakpoints, TriggerKind::Exception, "bob"), Some(Vec::new()));
        assert_eq!(ids(&breakpoints, TriggerKind::Exception, "cid"), None, "the adapter chooses");
        choose(&mut breakpoints, "ann", None);
        assert_eq!(ids(&breakpoints, TriggerKind::Exception, "ann"), None);
        choose(&mut breakpoints, "bob", None);
        assert_eq!(ids(&breakpoints, TriggerKind::Exception, "bob"), None);
    }

    #[test]
    fn data_and_instructions_stay_in_their_session() {
        let data = |access| SetTrigger {
            trigger: Trigger::Data { data_id: "x".to_owned(), access },
            owner: None,
            condition: None,
            hit_condition: Some("> 2".to_owned()),
        };
        let mut breakpoints = Breakpoints::default();
        let id = breakpoints.set_trigger(data(None), 1);
        let write = Some(crate::types::triggers::Access::Write);
        assert_eq!(breakpoints.set_trigger(data(write), 1), id);
        assert_ne!(breakpoints.set_trigger(data(None), 2), id);
        let can =
            capabilities(json!({"supportsDataBreakpoints": true, "supportsHitConditionalBreakpoints": true}));
        let told = tell_all(&breakpoints, TriggerKind::Data, &can);
        assert_eq!(
            told.arguments.unwrap().to_string(),
            r#"{"breakpoints":[{"accessType":"write","dataId":"x","hitCondition":">2"}]}"#
        );
        breakpoints.unbind(1);
        assert_eq!(breakpoints.triggers().len(), 1);
    }

    #[test]
    fn ids_are_shared_with_those_on_lines() {
        let mut breakpoints = Breakpoints::default();
        let line = crate::types::SetBreakpoint { path: "/a".into(), line: 1, ..Default::default() };
        assert_eq!(breakpoints.set_trigger(function("f"), 0), 1);
        assert_eq!(breakpoints.set(line), 2);
        breakpoints.bind(7, 1, Binding { verified: true, line: Some(3), ..Binding::default() });
        assert!(breakpoints.find_trigger(1).unwrap().verified);
    }
}
