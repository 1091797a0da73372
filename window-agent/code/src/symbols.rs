//! CORE: the symbols of a file: from what a server tells to a tree, and from a name to the symbol that was meant.

use serde_json::Value;

use super::lsp::answers::Named;
use super::lsp::lenient::list;
use super::lsp::{DocumentSymbol, Range};
use super::text::is_word;
use baton_agent_base::names;

/// Deepest nesting taken from a server; data files nest as deep as they like.
const MAX_DEPTH: usize = 40;

/// Names that an error lists.
const MAX_CANDIDATES: usize = 20;

/// A symbol of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// In one word.
    pub kind: &'static str,
    /// More about it.
    pub detail: Option<String>,
    /// All of it, as the server counts.
    pub range: Range,
    /// Its name in the text.
    pub name_range: Range,
    /// What it holds.
    pub children: Vec<Symbol>,
}

impl Symbol {
    /// Whether what it holds is local to code that runs.
    pub fn is_code(&self) -> bool {
        matches!(
            self.kind,
            "function" | "method" | "constructor" | "property" | "variable" | "constant" | "field"
        )
    }

    /// Whether it only groups others.
    pub fn is_group(&self) -> bool {
        matches!(self.kind, "module" | "namespace" | "package" | "file")
    }
}

/// The word for a kind of the protocol.
pub fn kind_name(kind: u8) -> &'static str {
    const NAMES: [&str; 26] = [
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "enum member",
        "struct",
        "event",
        "operator",
        "type parameter",
    ];
    usize::from(kind).checked_sub(1).and_then(|idx| NAMES.get(idx)).copied().unwrap_or("symbol")
}

/// The word for the kind of a completion.
pub fn completion_kind(kind: u64) -> Option<&'static str> {
    const NAMES: [&str; 25] = [
        "text",
        "method",
        "function",
        "constructor",
        "field",
        "variable",
        "class",
        "interface",
        "module",
        "property",
        "unit",
        "value",
        "enum",
        "keyword",
        "snippet",
        "color",
        "file",
        "reference",
        "folder",
        "enum member",
        "constant",
        "struct",
        "event",
        "operator",
        "type parameter",
    ];
    let idx = usize::try_from(kind).ok()?.checked_sub(1)?;
    NAMES.get(idx).copied()
}

/// The tree in an answer to `textDocument/documentSymbol`.
pub fn from_answer(answer: &Value) -> Vec<Symbol> {
    // VS Code's own symbols are of both forms at once.
    let entries = list::<DocumentSymbol>(answer);
    if entries.is_empty() {
        return nest(list(answer));
    }
    entries.into_iter().map(|entry| from_hierarchy(entry, MAX_DEPTH)).collect()
}

fn from_hierarchy(entry: DocumentSymbol, depth: usize) -> Symbol {
    let children = entry.children.unwrap_or_default();
    let children = if depth == 0 { Vec::new() } else { children };
    Symbol {
        name: entry.name,
        kind: kind_name(entry.kind),
        detail: entry.detail.filter(|detail| !detail.is_empty()),
        range: entry.range,
        name_range: entry.selection_range,
        children: children.into_iter().map(|child| from_hierarchy(child, depth - 1)).collect(),
    }
}

/// A symbol whose range lies in another's is inside it.
fn nest(flat: Vec<Named>) -> Vec<Symbol> {
    let symbol = |entry: Named| {
        let (kind, range) = (kind_name(entry.kind?), entry.location.range?);
        Some(Symbol { name: entry.name, kind, detail: None, range, name_range: range, children: Vec::new() })
    };
    let mut flat: Vec<Symbol> = flat.into_iter().filter_map(symbol).collect();
    // An outer one comes before its inner ones.
    flat.sort_by_key(|symbol| (symbol.range.start, std::cmp::Reverse(symbol.range.end)));
    let mut open: Vec<Symbol> = Vec::new();
    let mut roots = Vec::new();
    let close = |open: &mut Vec<Symbol>, roots: &mut Vec<Symbol>| {
        let Some(closed) = open.pop() else { return };
        match open.last_mut() {
            Some(parent) => parent.children.push(closed),
            None => roots.push(closed),
        }
    };
    for symbol in flat {
        while open.last().is_some_and(|last| !last.range.holds(&symbol.range) || open.len() >= MAX_DEPTH) {
            close(&mut open, &mut roots);
        }
        open.push(symbol);
    }
    while !open.is_empty() {
        close(&mut open, &mut roots);
    }
    roots
}

/// A symbol with the names of what holds it.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// The symbol.
    pub symbol: &'a Symbol,
    /// Names from the outermost to its own, with dots.
    pub path: String,
}

/// All symbols with their paths, in the order of the file.
pub fn flatten(symbols: &[Symbol]) -> Vec<Found<'_>> {
    fn walk<'a>(symbols: &'a [Symbol], prefix: &str, all: &mut Vec<Found<'a>>) {
        for symbol in symbols {
            let path =
                if prefix.is_empty() { symbol.name.clone() } else { format!("{prefix}.{}", symbol.name) };
            all.push(Found { symbol, path: path.clone() });
            walk(&symbol.children, &path, all);
        }
    }
    let mut all = Vec::new();
    walk(symbols, "", &mut all);
    all
}

/// What a name led to.
#[derive(Clone, Debug)]
pub enum Match<'a> {
    /// One symbol, or several definitions of one name in one place; `true` when the name was corrected.
    One(Vec<Found<'a>>, bool),
    /// Several, of the best fit there is; `true` when that is not the name as given.
    Several(Vec<Found<'a>>, bool),
    /// None; names that are nearest.
    Nearest(Vec<String>),
}

/// Finds the symbol that a name means: its name, the end of its path (`Class.method`), or a part of a name.
pub fn find<'a>(symbols: &'a [Symbol], given: &str) -> Match<'a> {
    let all = flatten(symbols);
    let wanted = normalise(given);
    if wanted.is_empty() {
        return Match::Nearest(all.into_iter().map(|found| found.path).take(MAX_CANDIDATES).collect());
    }
    let best = all.iter().filter_map(|found| fit(&normalise(&found.path), &wanted)).min();
    let Some(best) = best else { return Match::Nearest(nearest(&all, &wanted)) };
    let mut fitting: Vec<Found<'a>> =
        all.into_iter().filter(|found| fit(&normalise(&found.path), &wanted) == Some(best)).collect();
    // What an outer symbol of the same fit holds was not meant, as with a variable in a function of its name;
    // and a real symbol goes before a local variable.
    if fitting.len() > 1 && fitting.iter().any(|found| !is_local(found)) {
        fitting.retain(|found| !is_local(found));
    }
    let mut prefer = |is_meant: &dyn Fn(&Found<'_>) -> bool| {
        if fitting.iter().any(is_meant) {
            fitting.retain(is_meant);
        }
    };
    prefer(&|found| found.path == given.trim());
    // A type's name means the type, and not what is implemented for it, least of all a trait; `impl A` means just that.
    prefer(&|found| is_impl(&found.symbol.name) == is_impl(given.trim()));
    prefer(&|found| !is_impl(&found.symbol.name) || !found.symbol.name.contains(" for "));
    // A class goes before its constructor, and an interface before how it is called.
    let paths: Vec<String> = fitting.iter().map(|found| normalise(&found.path)).collect();
    let is_outer = |found: &Found<'_>| {
        let own = normalise(&found.path);
        found.symbol.name.contains(is_word) && !paths.iter().any(|outer| is_of_same_name(outer, &own))
    };
    if fitting.iter().any(is_outer) {
        fitting.retain(is_outer);
    }
    let is_one_name = fitting.iter().all(|found| found.path == fitting[0].path);
    if is_one_name {
        return Match::One(fitting, best > Fit::Path);
    }
    Match::Several(fitting, best > Fit::Path)
}

/// Whether one is called like what holds it: `A.A` in `A`.
fn is_of_same_name(outer: &str, own: &str) -> bool {
    let inner = own.strip_prefix(outer).and_then(|rest| rest.strip_prefix('.'));
    inner.is_some_and(|inner| outer == inner || outer.ends_with(&format!(".{inner}")))
}

fn is_impl(name: &str) -> bool {
    name.starts_with("impl ") || name.starts_with("impl<")
}

/// Whose an implementation in Rust is, without type parameters: `A` of `impl<T> Display for A<T>`.
fn implemented(name: &str) -> Option<String> {
    let rest = name.strip_prefix("impl").filter(|_| is_impl(name))?;
    let (mut plain, mut depth) = (String::new(), 0_u32);
    for sign in rest.chars() {
        match sign {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            sign if depth == 0 => plain.push(sign),
            _ => {}
        }
    }
    let whose = plain.rsplit(" for ").next().unwrap_or(&plain);
    Some(whose.trim().to_owned())
}

fn is_local(found: &Found<'_>) -> bool {
    matches!(found.symbol.kind, "variable") && found.path.contains('.')
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Nothing holds it that was not named.
    Whole,
    Path,
    PathOtherCase,
    Prefix,
    Suffix,
    Part,
}

/// Smaller is better.
fn fit(path: &str, wanted: &str) -> Option<Fit> {
    let ends_so = |path: &str, wanted: &str| {
        path.strip_suffix(wanted).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if path == wanted {
        return Some(Fit::Whole);
    }
    if ends_so(path, wanted) {
        return Some(Fit::Path);
    }
    let (path, wanted) = (path.to_lowercase(), wanted.to_lowercase());
    if ends_so(&path, &wanted) {
        return Some(Fit::PathOtherCase);
    }
    let name = path.rsplit('.').next().unwrap_or(&path);
    // With a holder named, that has to fit as a whole.
    let (holder, wanted) = wanted.rsplit_once('.').unwrap_or(("", &wanted));
    if !holder.is_empty() && !path.strip_suffix(name)?.trim_end_matches('.').ends_with(holder) {
        return None;
    }
    match () {
        () if name.starts_with(wanted) => Some(Fit::Prefix),
        () if name.ends_with(wanted) => Some(Fit::Suffix),
        () if name.contains(wanted) => Some(Fit::Part),
        () => None,
    }
}

/// Whether a full name is the one that was given, or ends so.
pub fn is_named(path: &str, given: &str) -> bool {
    fit(&normalise(path), &normalise(given)).is_some_and(|fit| fit <= Fit::Path)
}

/// What stands before the last name, in one form: `A` of `A::b`.
pub fn holder(path: &str) -> Option<String> {
    normalise(path).rsplit_once('.').map(|(holder, _)| holder.to_owned())
}

/// The last name: `b` of `A::b()`.
pub fn last_name(given: &str) -> &str {
    let given = given.trim().trim_end_matches("()");
    given.rsplit(['.', ':', '#']).next().unwrap_or(given)
}

/// The symbol whose name stands on a line, from 0.
pub fn named_on<'a>(symbols: &'a [Symbol], line: u32, name: &str) -> Option<Found<'a>> {
    let is_it = |found: &Found<'_>| found.symbol.name_range.start.line == line && is_named(&found.path, name);
    flatten(symbols).into_iter().find(is_it)
}

/// One form for `A::b`, `A.b`, `A#b`, `A/b`, `b()`, `(*A).b`, `impl A` and `impl T for A`.
fn normalise(name: &str) -> String {
    let name = name.trim().trim_end_matches("()").trim_end_matches(';');
    let whose = implemented(name);
    let name = whose.as_deref().unwrap_or(name);
    name.replace("::", ".")
        .replace(['#', '/'], ".")
        .replace(['(', '*', ')', '`'], "")
        .trim_matches('.')
        .to_owned()
}

fn nearest(all: &[Found<'_>], wanted: &str) -> Vec<String> {
    const LEAST: f64 = 0.3;
    let wanted = wanted.rsplit('.').next().unwrap_or(wanted);
    let named = all.iter().map(|found| (found.symbol.name.clone(), found.path.clone()));
    names::nearest(wanted, named, LEAST)
}

/// The innermost symbol that holds a range, with its path.
pub fn enclosing<'a>(symbols: &'a [Symbol], range: &Range) -> Option<Found<'a>> {
    flatten(symbols).into_iter().rfind(|found| found.symbol.range.holds(range) && !is_local(found))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn tree() -> Vec<Symbol> {
        let range = |start: u32, end: u32| json!({"start": {"line": start, "character": 0}, "end": {"line": end, "character": 0}});
        let symbol = |name: &str, kind: u8, start: u32, end: u32, children: Value| json!({"name": name, "kind": kind, "range": range(start, end), "selectionRange": range(start, start), "children": children});
        from_answer(&json!([
            symbol("helper", 12, 0, 5, json!([symbol("value", 13, 1, 1, json!([]))])),
            symbol(
                "Reader",
                5,
                6,
                20,
                json!([
                    symbol("read", 6, 7, 9, json!([])),
                    symbol("read_all", 6, 10, 12, json!([symbol("value", 13, 11, 11, json!([]))])),
                ])
            ),
            symbol(
                "Writer",
                5,
                21,
                30,
                json!([symbol("read", 6, 22, 23, json!([])), symbol("write", 6, 24, 25, json!([]))])
            ),
            symbol("write", 12, 31, 32, json!([])),
            symbol("write", 12, 33, 34, json!([])),
        ]))
    }

    fn check(given: &str, expected: Expect) {
        let tree = tree();
        let paths = |found: &[Found<'_>]| {
            found
                .iter()
                .map(|found| format!("{}@{}", found.path, found.symbol.range.start.line))
                .collect::<Vec<_>>()
                .join(" ")
        };
        expected.assert_eq(&match find(&tree, given) {
            Match::One(found, corrected) => {
                format!("{}{}", paths(&found), if corrected { " corrected" } else { "" })
            }
            Match::Several(found, corrected) => {
                format!("several{}: {}", if corrected { " like it" } else { "" }, paths(&found))
            }
            Match::Nearest(names) => format!("nearest: {}", names.join(" ")),
        });
    }

    #[test]
    fn names_find_their_symbols() {
        check("helper", expect!["helper@0"]);
        check("Reader.read", expect!["Reader.read@7"]);
        check("Reader::read_all()", expect!["Reader.read_all@10"]);
        check("read", expect!["several: Reader.read@7 Writer.read@22"]);
        check("reader", expect!["Reader@6 corrected"]);
        check("READER.READ_A", expect!["Reader.read_all@10 corrected"]);
        check("elp", expect!["helper@0 corrected"]);
        check("re", expect!["several like it: Reader@6 Reader.read@7 Reader.read_all@10 Writer.read@22"]);
        check("_all", expect!["Reader.read_all@10 corrected"]);
        check("Writer.write", expect!["Writer.write@24"]);
        check("write", expect!["write@31 write@33"]);
        check("hepler_function", expect!["nearest: "]);
        check("raeder", expect!["nearest: Reader"]);
        check(
            "",
            expect![
                "nearest: helper helper.value Reader Reader.read Reader.read_all Reader.read_all.value Writer Writer.read Writer.write write write"
            ],
        );
    }

    #[test]
    fn a_type_is_not_what_is_implemented_for_it() {
        let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}});
        let symbol = |name: &str, kind: u8, children: Value| json!({"name": name, "kind": kind, "range": range, "selectionRange": range, "children": children});
        let tree = from_answer(&json!([
            symbol("Reader", 23, json!([])),
            symbol("impl Reader", 19, json!([symbol("read", 12, json!([]))])),
            symbol("impl Display for Reader", 19, json!([])),
            symbol("impl Lonely", 19, json!([])),
            symbol("impl<T: Into<u8>> Named for Circle<T>", 19, json!([symbol("name", 12, json!([]))])),
            symbol("Named", 11, json!([symbol("name", 12, json!([]))])),
        ]));
        let found = |given: &str| match find(&tree, given) {
            Match::One(found, false) => {
                found.iter().map(|found| found.path.clone()).collect::<Vec<_>>().join(" ")
            }
            other => format!("{other:?}"),
        };
        assert_eq!(found("Reader"), "Reader");
        assert_eq!(found("impl Reader"), "impl Reader");
        assert_eq!(found("Reader::read"), "impl Reader.read");
        assert_eq!(found("Lonely"), "impl Lonely");
        assert_eq!(found("Circle::name"), "impl<T: Into<u8>> Named for Circle<T>.name");
        assert_eq!(found("Named::name"), "Named.name");
    }

    #[test]
    fn what_holds_others_of_its_name_is_meant() {
        let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}});
        let symbol = |name: &str, kind: u8, children: Value| json!({"name": name, "kind": kind, "range": range, "selectionRange": range, "children": children});
        let tree = from_answer(&json!([
            symbol("geo", 3, json!([symbol("Circle", 5, json!([symbol("Circle", 9, json!([]))]))])),
            symbol("Unary", 11, json!([symbol("()", 12, json!([]))])),
        ]));
        for (given, path) in
            [("Circle", "geo.Circle"), ("Circle::Circle", "geo.Circle.Circle"), ("Unary", "Unary")]
        {
            let Match::One(found, false) = find(&tree, given) else {
                panic!("{given}: {:?}", find(&tree, given))
            };
            assert_eq!((found.len(), found[0].path.as_str()), (1, path));
        }
    }

    #[test]
    fn flat_answers_are_nested() {
        let entry = |name: &str, start: u32, end: u32| {
            json!({"name": name, "kind": 5, "location": {"uri": "file:///a", "range": {
                "start": {"line": start, "character": 0}, "end": {"line": end, "character": 0}}}})
        };
        let tree =
            from_answer(&json!([entry("c", 2, 3), entry("a", 0, 9), entry("b", 1, 4), entry("d", 10, 11)]));
        let paths: Vec<String> = flatten(&tree).into_iter().map(|found| found.path).collect();
        assert_eq!(paths, ["a", "a.b", "a.b.c", "d"]);
        assert!(from_answer(&Value::Null).is_empty());
    }

    #[test]
    fn the_innermost_symbol_holds_a_place() {
        let tree = tree();
        let at = |line: u32| {
            let place = super::super::lsp::Position { line, character: 0 };
            enclosing(&tree, &Range { start: place, end: place }).map(|found| found.path)
        };
        assert_eq!(at(8).as_deref(), Some("Reader.read"));
        assert_eq!(at(11).as_deref(), Some("Reader.read_all"));
        assert_eq!(at(40), None);
    }
}
