//! CORE: pages of what has many members: what an adapter is asked for, and what of its answer is the page.
//!
//! The protocol pages members with an index apart from those with a name (`variables`, its `filter`); both together are
//! numbered here as one list, those with an index first.

use serde_json::{Value, json};

use crate::dap::body;
use crate::types::{MAX_VARIABLES, Paging};

/// How many members there are, as the adapter told with the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    indexed: usize,
    named: usize,
}

impl Size {
    /// `indexedVariables` and `namedVariables`.
    pub(crate) fn of(indexed: Option<i64>, named: Option<i64>) -> Self {
        let number = |told: Option<i64>| told.and_then(|told| usize::try_from(told).ok()).unwrap_or_default();
        Self { indexed: number(indexed), named: number(named) }
    }

    fn total(self) -> usize {
        self.indexed.saturating_add(self.named)
    }

    /// Whether all members fit into one answer, as far as known.
    pub(crate) fn is_small(self) -> bool {
        self.total() <= MAX_VARIABLES
    }
}

/// Adapters count members with 32 bits.
const MAX_START: usize = i32::MAX as usize;

/// A page that an adapter was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The place of its first member in the list of all.
    start: usize,
    /// Members at most.
    count: usize,
    /// The place of the first member that is asked for.
    base: usize,
    /// Members that are asked for; `None` for all from there on.
    asked: Option<usize>,
    /// Members in all, as far as known.
    total: usize,
}

impl Page {
    /// What is wanted of something of this size; `pages_all`: the adapter pages also what it told no size of.
    pub(crate) fn new(size: Size, paging: Paging, pages_all: bool) -> Self {
        let count = paging.count.unwrap_or(MAX_VARIABLES).min(MAX_VARIABLES);
        let start = paging.start.unwrap_or(0).min(MAX_START);
        let total = size.total();
        if total == 0 && pages_all {
            // One more, to know whether there are more.
            return Self { start, count, base: start, asked: Some(count + 1), total };
        }
        if size.is_small() {
            return Self { start, count, base: 0, asked: None, total };
        }
        if size.indexed > 0 && start >= size.indexed {
            // Those with a name are few.
            return Self { start, count, base: size.indexed, asked: None, total };
        }
        let end = if size.indexed > 0 { size.indexed } else { total };
        let count = count.min(end.saturating_sub(start));
        Self { start, count, base: start, asked: Some(count), total }
    }

    /// The arguments of the request.
    pub(crate) fn arguments(&self, reference: i64, size: Size) -> Value {
        let mut arguments = json!({ "variablesReference": reference });
        if self.base > 0 && self.asked.is_none() {
            arguments["filter"] = json!("named");
        }
        if let Some(count) = self.asked {
            if size.indexed > 0 {
                arguments["filter"] = json!("indexed");
            }
            arguments["start"] = json!(self.base);
            arguments["count"] = json!(count);
        }
        arguments
    }

    /// The page among the members that came, and how many follow it.
    pub(crate) fn cut<'a>(&self, came: &'a [body::Variable]) -> (&'a [body::Variable], usize) {
        // Who tells that many where a page was asked for pages nothing. Some add a member or two of their own.
        let is_all = self.asked.is_some() && came.len() > MAX_VARIABLES + 1;
        let base = if is_all { 0 } else { self.base };
        let total = self.total.max(base + came.len());
        let start = self.start.saturating_sub(base).min(came.len());
        let end = start.saturating_add(self.count).min(came.len());
        (&came[start..end], total.saturating_sub(self.start + (end - start)))
    }

    /// What is asked next for a page that debugpy keeps behind a member of its own: of a long sequence it tells the first
    /// hundred, then `more`, which leads to parts of a thousand, and the length.
    pub(crate) fn deeper(&self, came: &[body::Variable]) -> Option<Deeper> {
        let is = |member: &body::Variable, kind: &str| member.kind.as_deref() == Some(kind);
        if let Some(at) = came.iter().position(|member| member.name == "more" && is_part(member)) {
            let length = came.iter().rfind(|member| member.name == "len()")?;
            let total = length.value.parse().ok()?;
            let page = Self { total, base: at, ..*self };
            if self.start < at {
                return Some(Deeper::Here(Self { base: 0, count: self.count.min(at - self.start), ..page }));
            }
            return Some(Deeper::Behind(came[at].variables_reference, page));
        }
        let parts = came
            .iter()
            .filter(|member| is(member, PART))
            .filter_map(|member| Some((range(&member.name)?, member)));
        let (range, part) = parts.into_iter().find(|(range, _)| range.contains(&self.start))?;
        let count = self.count.min(range.end - self.start);
        Some(Deeper::Behind(part.variables_reference, Self { base: range.start, count, ..*self }))
    }
}

/// Where the page is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Deeper {
    /// Among the members that came.
    Here(Page),
    /// Among those of this reference.
    Behind(i64, Page),
}

/// debugpy's own types.
const PART: &str = "MoreItemsRange";
const PARTS: &str = "MoreItems";

fn is_part(member: &body::Variable) -> bool {
    member.kind.as_deref().is_some_and(|kind| [PART, PARTS].contains(&kind))
}

/// `[100:1100]`.
fn range(name: &str) -> Option<std::ops::Range<usize>> {
    let (from, to) = name.strip_prefix('[')?.strip_suffix(']')?.split_once(':')?;
    Some(from.parse().ok()?..to.parse().ok()?)
}

/// Says in words what debugpy leaves out of a large dictionary or set, where it names a variable of its own environment.
pub(crate) fn explain_cut(members: &mut [body::Variable]) {
    const CUT: &str = "Unable to handle:";
    let length = members.iter().rfind(|member| member.name == "len()").map(|length| length.value.clone());
    let Some(at) = members.iter().position(|member| member.name == CUT) else { return };
    let Some(length) = length else { return };
    members[at].name = "...".to_owned();
    members[at].kind = None;
    members[at].value = format!(
        "the debugger lists {at} of {length}; evaluate a part for the others, as in list(NAME)[{at}:{}]",
        at + 50
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: impl IntoIterator<Item = usize>) -> Vec<body::Variable> {
        let member = |name: usize| body::Variable { name: name.to_string(), ..body::Variable::default() };
        names.into_iter().map(member).collect()
    }

    fn new(size: Size, start: usize, count: usize) -> Page {
        Page::new(size, Paging { start: Some(start), count: Some(count) }, false)
    }

    fn told(page: &Page, came: &[body::Variable]) -> (Vec<String>, usize) {
        let (page, omitted) = page.cut(came);
        (page.iter().map(|member| member.name.clone()).collect(), omitted)
    }

    #[test]
    fn what_is_small_is_asked_for_whole() {
        let size = Size::of(Some(3), Some(2));
        let page = new(size, 1, 2);
        assert_eq!(page.arguments(7, size), json!({"variablesReference": 7}));
        assert_eq!(told(&page, &members(0..5)), (vec!["1".to_owned(), "2".to_owned()], 2));
        let unknown = new(Size::default(), 900, 2);
        assert_eq!(told(&unknown, &members(0..1_000)), (vec!["900".to_owned(), "901".to_owned()], 98));
        assert_eq!(told(&unknown, &members(0..5)), (Vec::new(), 0));
    }

    #[test]
    fn what_is_large_is_asked_for_page_by_page() {
        let size = Size::of(Some(100_000), Some(1));
        let page = new(size, 50_000, 2);
        let arguments = json!({"variablesReference": 7, "filter": "indexed", "start": 50_000, "count": 2});
        assert_eq!(page.arguments(7, size), arguments);
        assert_eq!(
            told(&page, &members([50_000, 50_001])),
            (vec!["50000".to_owned(), "50001".to_owned()], 49_999)
        );
        // One that pages nothing.
        let (all, omitted) = told(&page, &members(0..100_000));
        assert_eq!((all, omitted), (vec!["50000".to_owned(), "50001".to_owned()], 49_999));
        // One that adds a member of its own.
        assert_eq!(told(&page, &members([50_000, 50_001, 7])).0, ["50000", "50001"]);
        // One that tells no size, and pages all the same.
        let unknown = Page::new(Size::default(), Paging { start: Some(9), count: Some(2) }, true);
        let arguments = json!({"variablesReference": 7, "start": 9, "count": 3});
        assert_eq!(unknown.arguments(7, Size::default()), arguments);
        assert_eq!(told(&unknown, &members([9, 10, 11])), (vec!["9".to_owned(), "10".to_owned()], 1));
        assert_eq!(told(&unknown, &members([9])), (vec!["9".to_owned()], 0));
        // The last ones with an index, and the ones with a name behind them.
        let last = new(size, 99_999, 50);
        assert_eq!(last.arguments(7, size)["count"], 1);
        assert_eq!(told(&last, &members([99_999])).1, 1);
        let named = new(size, 100_000, 50);
        assert_eq!(named.arguments(7, size), json!({"variablesReference": 7, "filter": "named"}));
        assert_eq!(told(&named, &members([5])), (vec!["5".to_owned()], 0));
        let only_named = Size::of(None, Some(200_000));
        let page = new(only_named, 10, 5);
        assert_eq!(page.arguments(7, only_named), json!({"variablesReference": 7, "start": 10, "count": 5}));
        // A client may ask for any.
        let beyond = Page::new(Size::default(), Paging { start: Some(usize::MAX), count: None }, true);
        assert_eq!(beyond.arguments(7, Size::default())["start"], i32::MAX);
        assert_eq!(told(&beyond, &members([])), (Vec::new(), 0));
        assert_eq!(told(&new(only_named, usize::MAX, 5), &members([])), (Vec::new(), 0));
    }

    #[test]
    fn a_page_behind_debugpys_own_members_is_found() {
        let special = |name: &str, kind: &str, value: &str, reference: i64| body::Variable {
            name: name.to_owned(),
            kind: Some(kind.to_owned()),
            value: value.to_owned(),
            variables_reference: reference,
            ..body::Variable::default()
        };
        let mut first = members(0..100);
        first.extend([special("more", PARTS, "...", 8), special("len()", "int", "5000", 0)]);
        let near = new(Size::default(), 98, 10);
        let Some(Deeper::Here(page)) = near.deeper(&first) else { panic!("{near:?}") };
        assert_eq!(told(&page, &first), (vec!["98".to_owned(), "99".to_owned()], 4_900));
        let far = new(Size::default(), 1_099, 10);
        let Some(Deeper::Behind(8, page)) = far.deeper(&first) else { panic!("{far:?}") };
        let parts =
            [special("[100:1100]", PART, "[100:1100]", 20), special("[1100:2100]", PART, "[1100:2100]", 21)];
        let Some(Deeper::Behind(20, page)) = page.deeper(&parts) else { panic!("{page:?}") };
        let part = members(100..1_100);
        assert_eq!(page.deeper(&part), None);
        assert_eq!(told(&page, &part), (vec!["1099".to_owned()], 3_900));
        assert_eq!(new(Size::default(), 0, 10).deeper(&members(0..5)), None, "nothing is behind it");
    }

    #[test]
    fn what_debugpy_leaves_out_is_said() {
        let mut all = members(0..500);
        let own = |name: &str, value: &str| body::Variable {
            name: name.to_owned(),
            value: value.to_owned(),
            ..body::Variable::default()
        };
        all.extend([own("Unable to handle:", "Maximum number of items"), own("len()", "5000")]);
        explain_cut(&mut all);
        assert_eq!(all[500].name, "...");
        assert_eq!(
            all[500].value,
            "the debugger lists 500 of 5000; evaluate a part for the others, as in list(NAME)[500:550]"
        );
    }
}
