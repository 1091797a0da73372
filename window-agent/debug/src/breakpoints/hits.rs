//! CORE: conditions, hit conditions and log messages of breakpoints, in the form that each adapter takes.

use crate::adapter::HitStyle;
use crate::codelldb;

/// How the names begin under which a debuggee counts hits.
pub(crate) const HITS_KEY: &str = "_baton_hits_";

/// What a breakpoint does beside stopping.
pub(super) struct Wishes<'a> {
    pub(super) condition: &'a Option<String>,
    pub(super) hit_condition: &'a Option<String>,
    pub(super) log_message: &'a Option<String>,
}

/// The same as an adapter is told it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) condition: Option<String>,
    pub(super) hit_condition: Option<String>,
    pub(super) log_message: Option<String>,
}

impl Wishes<'_> {
    /// For the breakpoint with this id, or why this adapter cannot have it.
    pub(super) fn for_adapter(
        &self,
        id: i64,
        can: impl Fn(&str) -> bool,
        style: HitStyle,
    ) -> Result<Told, String> {
        let condition = able(self.condition, can("supportsConditionalBreakpoints"), "conditions")?;
        let has_logs = style == HitStyle::JavasOwn || can("supportsLogPoints");
        let log_message = able(self.log_message, has_logs, "log messages")?;
        let is_untold = matches!(style, HitStyle::DelvesOwn | HitStyle::JavasOwn);
        let has_hits = is_untold || can("supportsHitConditionalBreakpoints");
        let hit = told_hits(self.hit_condition, has_hits, style)?;
        let parsed = self.hit_condition.as_deref().and_then(HitCondition::parse);
        match (style, &condition, parsed) {
            (HitStyle::PythonsOwn, Some(own), Some(hit)) => {
                Ok(Told { condition: Some(hit.in_python(own, id)), hit_condition: None, log_message })
            }
            (HitStyle::GdbsOwn, own, Some(hit)) => {
                let condition = Some(hit.in_gdb(own.as_deref(), id));
                Ok(Told { condition, hit_condition: None, log_message })
            }
            (HitStyle::LldbsOwn, own, Some(parsed)) if hit.is_none() => {
                let condition = Some(parsed.in_lldb(own.as_deref(), id));
                Ok(Told { condition, hit_condition: None, log_message })
            }
            (HitStyle::JavasOwn, own, hit) => {
                let own = own.as_deref().unwrap_or_default();
                let condition = for_java(own, hit.map(|hit| hit.in_java(id)), log_message.as_deref());
                Ok(Told { condition: Some(condition).filter(|all| !all.is_empty()), ..Told::default() })
            }
            // It would take the first of them, and forget the others.
            (HitStyle::JavaScriptsOwn, own, hit)
                if [own.is_some(), hit.is_some(), log_message.is_some()]
                    .iter()
                    .filter(|is_there| **is_there)
                    .count()
                    > 1 =>
            {
                let own = own.as_ref().map(|own| format!("({own}\n)"));
                let hit = hit.map(|hit| hit.in_javascript(id));
                let log = log_message.as_deref().map(log_in_javascript);
                let all: Vec<String> = [own, hit, log].into_iter().flatten().collect();
                Ok(Told { condition: Some(all.join(" && ")), ..Told::default() })
            }
            (HitStyle::CodelldbsOwn, ..) => Ok(Told {
                condition: condition.as_deref().map(codelldb::condition),
                hit_condition: hit,
                log_message: log_message.as_deref().map(log_for_codelldb),
            }),
            _ => Ok(Told { condition, hit_condition: hit, log_message }),
        }
    }
}

/// All of a breakpoint in one condition that `Wish.java` reads.
fn for_java(condition: &str, hits: Option<String>, log_message: Option<&str>) -> String {
    let log = log_message.map(|message| format!("\u{1}log {}\n", message.replace('\n', "\u{2}")));
    [hits, log, Some(condition.to_owned())].into_iter().flatten().collect()
}

/// A log message that codelldb reads as it is meant.
fn log_for_codelldb(message: &str) -> String {
    let mut told = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('{') {
        let Some(end) = end_of_expression(after).filter(|end| *end > 0) else { break };
        told.push_str(&format!("{before}{{{}}}", codelldb::logged(&after[..end])));
        rest = &after[end + 1..];
    }
    told + rest
}

/// Text of an adapter about a breakpoint, with its own condition instead of the one that the adapter was given.
pub(super) fn with_own_condition(text: &str, id: i64, own: &str, hit: Option<&str>) -> String {
    match hit.and_then(HitCondition::parse) {
        Some(hit) => {
            let text = text.replace(&hit.in_python(own, id), own);
            // What stands below a place in it stays below that.
            text.replace(&hit.in_lldb(Some(own), id), &format!("({own})"))
        }
        None => text.to_owned(),
    }
}

/// Logs as js-debug does, and is false.
fn log_in_javascript(message: &str) -> String {
    let (mut format, mut values) = (String::new(), Vec::new());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('{') {
        let Some(end) = end_of_expression(after).filter(|end| *end > 0) else { break };
        format.push_str(&before.replace('%', "%%"));
        format.push_str("%O");
        // One that fails is told in its place.
        values.push(format!(
            "(() => {{ try {{ return {}\n; }} catch (e) {{ return String(e); }} }})()",
            &after[..end]
        ));
        rest = &after[end + 1..];
    }
    format.push_str(&rest.replace('%', "%%"));
    let mut arguments = vec![serde_json::Value::String(format).to_string()];
    arguments.append(&mut values);
    format!("(console.log({}), false)", arguments.join(", "))
}

/// Where the brace is that ends an expression; braces in its strings are the strings'.
fn end_of_expression(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (1, None);
    let mut chars = text.char_indices();
    while let Some((idx, char)) = chars.next() {
        match (quote, char) {
            (Some(_), '\\') => _ = chars.next(),
            (Some(open), char) if open == char => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(char),
            (None, '{') => depth += 1,
            (None, '}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(idx);
                }
            }
            (None, _) => {}
        }
    }
    None
}

/// What an adapter can have, or that it cannot.
fn able(wish: &Option<String>, can: bool, what: &str) -> Result<Option<String>, String> {
    if wish.is_some() && !can {
        return Err(format!("not set: the debug adapter does not support {what}"));
    }
    Ok(wish.clone())
}

/// A hit condition in an adapter's form, or why it cannot have it.
fn told_hits(wish: &Option<String>, can: bool, hits: HitStyle) -> Result<Option<String>, String> {
    let Some(text) = able(wish, can, "hit conditions")? else { return Ok(None) };
    let hit = HitCondition::parse(&text).ok_or("not set: its hit condition is not valid")?;
    match hits {
        HitStyle::LldbsOwn => Ok(hit.for_adapter(HitStyle::AtLeast).ok()),
        _ => Ok(Some(hit.for_adapter(hits)?)),
    }
}

/// A condition on the number of hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HitCondition {
    operator: HitOperator,
    count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum HitOperator {
    Equal,
    Above,
    AtLeast,
    Below,
    AtMost,
    EveryNth,
}

/// Of the operators, in their order.
const SIGNS: [&str; 6] = ["==", ">", ">=", "<", "<=", "%"];

impl HitCondition {
    /// Parses `> 5`, `== 3`, `= 3`, `3`, `% 2`, `% 2 == 0`; `None` for anything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        const OPERATORS: [(&str, HitOperator); 7] = [
            (">=", HitOperator::AtLeast),
            ("<=", HitOperator::AtMost),
            ("==", HitOperator::Equal),
            (">", HitOperator::Above),
            ("<", HitOperator::Below),
            ("=", HitOperator::Equal),
            ("%", HitOperator::EveryNth),
        ];
        let text = text.trim();
        let (operator, rest) = OPERATORS
            .iter()
            .find_map(|(sign, operator)| Some((*operator, text.strip_prefix(sign)?)))
            .unwrap_or((HitOperator::Equal, text));
        let mut number = rest.trim();
        if operator == HitOperator::EveryNth
            && let Some((divisor, remainder)) = number.split_once("==")
        {
            if remainder.trim() != "0" {
                return None;
            }
            number = divisor.trim();
        }
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let count: u32 = number.parse().ok()?;
        let is_senseless = count == 0 && matches!(operator, HitOperator::EveryNth | HitOperator::Below);
        (!is_senseless).then_some(Self { operator, count })
    }

    /// As an adapter wants it, or why it cannot be.
    pub(crate) fn for_adapter(self, style: HitStyle) -> Result<String, &'static str> {
        match (style, self.operator) {
            (
                HitStyle::Operators
                | HitStyle::PythonsOwn
                | HitStyle::JavaScriptsOwn
                | HitStyle::CodelldbsOwn
                | HitStyle::DelvesOwn
                | HitStyle::GdbsOwn
                | HitStyle::JavasOwn
                | HitStyle::LldbsOwn,
                _,
            ) => Ok(self.to_adapter()),
            (HitStyle::AtLeast, HitOperator::AtLeast) => Ok(self.count.to_string()),
            (HitStyle::AtLeast, HitOperator::Above) => Ok(self.count.saturating_add(1).to_string()),
            (HitStyle::Skipped, HitOperator::AtLeast) => Ok(self.count.saturating_sub(1).to_string()),
            (HitStyle::Skipped, HitOperator::Above) => Ok(self.count.to_string()),
            (HitStyle::AtLeast | HitStyle::Skipped, _) => {
                Err("not set: this debug adapter stops at a hit and all later ones only; use >= N or > N")
            }
            (HitStyle::None, _) => Err("not set: the debug adapter does not support hit conditions"),
        }
    }

    /// What compares a count with it, in Python and in JavaScript.
    fn comparison(self) -> String {
        let sign = if self.operator == HitOperator::EveryNth { " == 0" } else { "" };
        format!("{}{sign}", self.to_adapter())
    }

    /// Of the hits at which a condition holds. The count is kept beside the program's own names.
    fn in_python(self, condition: &str, id: i64) -> String {
        let key = format!("{HITS_KEY}{id} {}", self.to_adapter());
        let counter =
            format!("__import__('sys').__dict__.setdefault('{key}', __import__('itertools').count(1))");
        // A comment may end the condition.
        format!("({condition}\n) and next({counter}) {}", self.comparison())
    }

    /// The same in JavaScript, without the condition.
    fn in_javascript(self, id: i64) -> String {
        let key = format!("Symbol.for('{HITS_KEY}{id} {}')", self.to_adapter());
        format!("((all, key) => all[key] = (all[key] || 0) + 1)(globalThis, {key}) {}", self.comparison())
    }

    /// By the function of `gdb_calls.py`, which is told the operator by its place in [`SIGNS`].
    fn in_gdb(self, condition: Option<&str>, id: i64) -> String {
        let own = condition.map(|own| format!("({own}) && ")).unwrap_or_default();
        format!("{own}$_baton_hit({id}, {}, {})", self.operator as u8, self.count)
    }

    /// For lldb's compiler of C++. All places of a breakpoint count together, in what `lldb_texts.py` makes for it:
    /// pairs of a breakpoint with its wish, and its hits.
    fn in_lldb(self, condition: Option<&str>, id: i64) -> String {
        let own = condition.map(|own| format!("({own}) && ")).unwrap_or_default();
        let key = (id << 32) ^ (i64::from(self.count) << 3) ^ i64::from(self.operator as u8);
        let comparison = self.comparison();
        format!(
            "{own}[](long long *all) {{ int n = 0; while (n < 510 && all[n] && all[n] != {key}) n += 2; \
             all[n] = {key}; return ++all[n + 1] {comparison}; }}($_baton_hits)"
        )
    }

    /// A line for `Wish.java`.
    fn in_java(self, id: i64) -> String {
        format!("\u{1}hits {id} {} {}\n", SIGNS[self.operator as usize], self.count)
    }

    /// With an operator.
    pub(crate) fn to_adapter(self) -> String {
        format!("{}{}", SIGNS[self.operator as usize], self.count)
    }
}

/// Hit conditions in the form that adapters take.
pub(crate) fn normal_hits(text: &str) -> String {
    HitCondition::parse(text).map_or_else(|| text.to_owned(), |hit| hit.to_adapter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_conditions_are_brought_to_one_form() {
        let normal = |text: &str| HitCondition::parse(text).map(|hit| hit.to_adapter());
        for (text, expected) in [
            ("> 5", ">5"),
            (" >=5", ">=5"),
            ("== 3", "==3"),
            ("= 3", "==3"),
            ("3", "==3"),
            ("% 2 == 0", "%2"),
            ("%2", "%2"),
            ("< 4", "<4"),
            ("<= 4", "<=4"),
        ] {
            assert_eq!(normal(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "x > 5", "> x", "% 2 == 1", "% 0", "< 0", "5 5", "> -1", "99999999999", "!= 3"] {
            assert_eq!(normal(text), None, "{text}");
        }
    }

    #[test]
    fn gdb_counts_by_a_function() {
        let in_gdb = |hits: &str, own| HitCondition::parse(hits).unwrap().in_gdb(own, 7);
        assert_eq!(in_gdb("3", None), "$_baton_hit(7, 0, 3)");
        assert_eq!(in_gdb("% 2", Some("a || b")), "(a || b) && $_baton_hit(7, 5, 2)");
    }

    #[test]
    fn lldb_counts_in_what_it_compiles_where_it_cannot_itself() {
        let text = |text: &str| Some(text.to_owned());
        let told = |hits: &str| {
            let wishes = Wishes { condition: &text("a"), hit_condition: &text(hits), log_message: &None };
            wishes.for_adapter(7, |_| true, HitStyle::LldbsOwn).unwrap()
        };
        let itself = Told { condition: text("a"), hit_condition: text("3"), log_message: None };
        assert_eq!((told(">= 3"), told("> 2")), (itself, Told { hit_condition: text("3"), ..told("> 2") }));
        let counted = "(a) && [](long long *all) { int n = 0; while (n < 510 && all[n] && all[n] != 30064771101) \
                       n += 2; all[n] = 30064771101; return ++all[n + 1] %3 == 0; }($_baton_hits)";
        assert_eq!(told("% 3"), Told { condition: text(counted), ..Told::default() });
        let failed = format!("error evaluating condition: \"{counted}\"");
        assert_eq!(with_own_condition(&failed, 7, "a", Some("% 3")), "error evaluating condition: \"(a)\"");
    }

    #[test]
    fn java_gets_all_of_a_breakpoint_in_one_condition() {
        let hits = |text: &str| HitCondition::parse(text).map(|hit| hit.in_java(7));
        assert_eq!(for_java("a > b", None, None), "a > b", "one alone is as it was");
        let all = for_java("a > b", hits(">= 2"), Some("a is {a}\nb is {b}"));
        assert_eq!(all, "\u{1}hits 7 >= 2\n\u{1}log a is {a}\u{2}b is {b}\na > b");
        assert_eq!(for_java("", hits("3"), None), "\u{1}hits 7 == 3\n");
    }

    #[test]
    fn javascript_gets_all_of_a_breakpoint_in_one_condition() {
        let text = |text: &str| Some(text.to_owned());
        let told = |condition, hit_condition, log_message| {
            let wishes =
                Wishes { condition: &condition, hit_condition: &hit_condition, log_message: &log_message };
            wishes.for_adapter(7, |_| true, HitStyle::JavaScriptsOwn).unwrap()
        };
        assert_eq!(
            told(None, text(">= 2"), None),
            Told { hit_condition: text(">=2"), ..Told::default() },
            "one alone js-debug has itself"
        );
        assert_eq!(told(text("a"), None, None), Told { condition: text("a"), ..Told::default() });
        assert_eq!(told(None, None, text("{a}")), Told { log_message: text("{a}"), ..Told::default() });
        let both = told(text("a // b"), text("% 2"), None);
        let counter = "((all, key) => all[key] = (all[key] || 0) + 1)(globalThis, Symbol.for('_baton_hits_7 %2')) %2 == 0";
        assert_eq!(both, Told { condition: Some(format!("(a // b\n) && {counter}")), ..Told::default() });
        let logged = told(text("a"), None, text("100% {a} of {({b: 1}).b}, { }{"));
        let condition = logged.condition.unwrap();
        assert!(condition.starts_with("(a\n) && (console.log(\"100%% %O of %O, %O{\", "), "{condition}");
        assert!(condition.ends_with(", false)") && condition.contains("return ({b: 1}).b\n;"), "{condition}");
        assert_eq!((logged.hit_condition, logged.log_message), (None, None));
    }

    #[test]
    fn each_expression_of_a_log_message_is_marked_for_codelldb() {
        assert_eq!(
            log_for_codelldb("100 {a.b}, { p->n } {/py len(x)} {}{a && b"),
            "100 {a.b}, {/nat p->n} {/py len(x)} {}{a && b"
        );
    }

    #[test]
    fn braces_in_the_strings_of_an_expression_do_not_end_it() {
        for (text, end) in [
            ("a}", Some(1)),
            ("{b: 1}.b} {c}", Some(8)),
            ("'}' + a} b", Some(7)),
            (r#""\"}" + a}"#, Some(9)),
            ("`${a}{`}", Some(7)),
            ("'}", None),
            ("{a}", None),
        ] {
            assert_eq!(end_of_expression(text), end, "{text}");
        }
    }
}
