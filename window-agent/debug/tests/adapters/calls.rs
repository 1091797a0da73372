//! Functions that expressions and conditions call, as often as anybody likes, and steps into functions.

use baton_agent_debug::types::{Evaluate, Paging, Phase, Resume, SetBreakpoint, Waited};

use crate::collections::{brings_texts, told};
use crate::programs::{PATIENCE, Program, debugger, wait_for};
use crate::quirks::{at, printed, start_to_stop, step_to_next_line};

const CPP: &str = r#"#include <map>
#include <optional>
#include <set>
#include <string>
#include <strings.h>
struct Loose {
  bool operator()(const std::string &one, const std::string &other) const {
    return strcasecmp(one.c_str(), other.c_str()) < 0;
  }
};
struct Cart {
  int total = 0;
  int add(int n) { total += n; return total; }
};
int twice(int n) { return n * 2; }
int main() {
  Cart cart;
  std::string word = "hello";
  std::map<int, int> prices{{1, 2}, {3, 4}};
  std::map<std::string, Cart> carts{{"k", Cart{7}}};
  std::set<int> set{5};
  std::optional<int> some{5}, none;
  std::map<std::string, int, Loose> loose{{"HELLO", 1}};
  int sum = twice(cart.add(1)) + word.compare("hello") + loose.count("x");
  sum += prices.size() + carts.size() + set.size() + some.has_value(); // here
  return sum == 6;
}
"#;

fn program() -> Program {
    Program::built(
        "program.cpp",
        CPP,
        "sum += prices.size() + carts.size() + set.size() + some.has_value(); // here",
    )
}

async fn functions_are_called_again_and_again(adapter: &str) {
    let program = program();
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    // The frame of the stop, for all of them.
    for n in 1..=7 {
        let total = (1 + 2 * n).to_string();
        for (expression, expected) in [
            ("twice(4)", "8"),
            ("cart.add(2)", &total),
            ("word.compare(\"hello\")", "0"),
            ("cart.total", &total),
        ] {
            let value = told(&debugger, &stop, expression).await.0;
            assert_eq!((expression, value.as_str()), (expression, expected), "round {n}");
        }
    }
    // What was told of the stop is read anew.
    let scopes = debugger.scopes(stop.call_stack[0].frame_id).await.unwrap();
    let locals =
        debugger.variables(scopes[0].variables_reference, Paging::default()).await.unwrap().variables;
    let cart = locals.iter().find(|variable| variable.name == "cart").unwrap();
    let members = debugger.variables(cart.variables_reference, Paging::default()).await.unwrap().variables;
    let total = members.iter().find(|member| member.name == "total").map(|total| total.value.as_str());
    assert_eq!(total, Some("15"), "{members:?}");
    step_to_next_line(&debugger, &stop).await;
    debugger.stop_all().await;
}

#[tokio::test]
async fn functions_are_called_again_and_again_under_gdb() {
    functions_are_called_again_and_again("gdb").await;
}

#[tokio::test]
async fn functions_are_called_again_and_again_under_lldb() {
    functions_are_called_again_and_again("lldb-dap").await;
}

#[tokio::test]
async fn functions_are_called_again_and_again_under_codelldb() {
    functions_are_called_again_and_again("codelldb").await;
}

/// Where a condition leads to, and what was printed by then.
async fn with_condition(program: &Program, adapter: &str, condition: &str) -> (Waited, String) {
    let debugger = debugger(program);
    let breakpoint =
        SetBreakpoint { condition: Some(condition.to_owned()), ..at(&program.source, program.line) };
    debugger.set_breakpoint(breakpoint).await.unwrap();
    let start = debugger.configure(&program.start(adapter, "loop", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
    let session = match &waited {
        Waited::Stopped(stop) => stop.session.clone(),
        Waited::Completed(end) => end.session.clone(),
        other => panic!("{other:?}"),
    };
    let printed = printed(&debugger, &session).await;
    debugger.stop_all().await;
    (waited, printed)
}

#[tokio::test]
async fn a_condition_that_fails_under_gdb_is_told() {
    let program = program();
    let (waited, printed) = with_condition(&program, "gdb", "*(int *)0 == 1").await;
    assert!(matches!(waited, Waited::Stopped(_)), "{waited:?}");
    assert!(printed.contains("`*(int *)0 == 1` cannot be evaluated: Cannot access memory"), "{printed}");
    for (condition, is_true) in [
        ("twice(cart.total) == 2", true),
        ("word == \"hello\"", true),
        ("word == \"other\"", false),
        ("word != \"hello\"", false),
    ] {
        let (waited, printed) = with_condition(&program, "gdb", condition).await;
        assert_eq!(matches!(waited, Waited::Stopped(_)), is_true, "{condition} {waited:?}");
        assert_eq!(printed, "", "{condition}");
    }
    // It is evaluated once.
    let (waited, printed) = with_condition(&program, "gdb", "sum++ == 2").await;
    let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
    let variables = stop.top_frame_variables.unwrap().variables;
    let sum = variables.iter().find(|variable| variable.name == "sum").map(|sum| sum.value.as_str());
    assert_eq!((sum, printed.as_str()), (Some("3"), ""));
}

/// An expression that gdb refuses is an answer; the program stands where it did, and goes on from there.
#[tokio::test]
async fn a_cast_that_fails_under_gdb_leaves_the_program_stopped() {
    let program = program();
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "gdb").await;
    for (expression, says) in [
        ("(struct nosuch *)&sum", "No struct type named nosuch."),
        ("(nosuch)sum", "No symbol \"nosuch\" in current context."),
        ("sum.total", "Attempt to extract a component of a value that is not a structure."),
    ] {
        let frame_id = stop.call_stack[0].frame_id;
        let wish = Evaluate { expression: expression.to_owned(), frame_id, context: None };
        let refused = debugger.evaluate(wish).await.unwrap_err().to_string();
        assert!(refused.contains(says), "{expression}: {refused}");
        let status = debugger.status(Some(&stop.session)).await.unwrap();
        assert_eq!(status.phase, Phase::Stopped, "{expression}");
        assert_eq!(told(&debugger, &stop, "twice(sum)").await.0, "4", "{expression}");
    }
    step_to_next_line(&debugger, &stop).await;
    debugger.stop_all().await;
}

const PLACES: &str = r#"#define SAME(name, given) static int name(int given) { return given; }
SAME(one, n) SAME(other, m)
int main() { return other(1) + one(2) - 3; }
"#;

#[tokio::test]
async fn a_condition_with_a_name_that_its_place_does_not_know_is_told_under_gdb() {
    let program = Program::built("program.cpp", PLACES, "SAME(one, n) SAME(other, m)");
    let (waited, printed) = with_condition(&program, "gdb", "nosuch == 1").await;
    let Waited::Completed(end) = waited else { panic!("{waited:?}") };
    let [missed] = &end.never_hit[..] else { panic!("{end:?}") };
    let why = "never bound: No symbol \"nosuch\" in current context.";
    assert_eq!((missed.message.as_deref(), printed.as_str()), (Some(why), ""));
    // Of two places one knows it.
    let (waited, printed) = with_condition(&program, "gdb", "n == 2").await;
    let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
    assert_eq!((stop.call_stack[0].function_name.as_str(), printed.as_str()), ("one", ""));
}

#[tokio::test]
async fn a_condition_that_fails_under_delve_is_no_error_of_the_program() {
    let (waited, printed) = with_condition(&Program::of("delve"), "delve", "nosuch == 1").await;
    let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
    assert_eq!((stop.reason.as_str(), &stop.text), ("breakpoint", &None));
    let told =
        "The condition of a breakpoint here cannot be evaluated: could not find symbol value for nosuch";
    assert!(printed.contains(told), "{printed}");
}

#[tokio::test]
async fn methods_of_cpp_that_no_program_calls_are_read_under_gdb() {
    if !brings_texts() {
        return;
    }
    let program = program();
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "gdb").await;
    for (expression, expected) in [
        ("prices[3]", "4"),
        ("prices.at(1)", "2"),
        ("prices.count(2)", "0"),
        ("carts[\"k\"].total", "7"),
        ("set.count(5)", "1"),
        ("*some", "5"),
        ("word == \"hello\"", "true"),
        // In its own order, as the program itself has it.
        ("loose.count(word)", "1"),
    ] {
        let value = told(&debugger, &stop, expression).await.0;
        assert_eq!((expression, value.as_str()), (expression, expected));
    }
    for (expression, expected) in [
        ("prices[2]", "It has no such key."),
        ("*none", "It has no value."),
        ("twice(prices.at(2))", "It has no such key."),
        ("nobody", "No symbol \"nobody\" in current context."),
    ] {
        let frame_id = stop.call_stack[0].frame_id;
        let wish = Evaluate { expression: expression.to_owned(), frame_id, context: None };
        let error = debugger.evaluate(wish).await.unwrap_err().to_string();
        assert_eq!((expression, error.as_str()), (expression, expected));
    }
    assert_eq!(printed(&debugger, &stop.session).await, "");
    debugger.stop_all().await;
}

const STEPS: &str = r#"#include <string>
#include <vector>
struct Item { std::string name; int price; };
int total(const std::vector<Item> &items, const std::string &label) {
  int sum = 0;
  for (const auto &item : items) sum += item.price;
  return sum + label.size();
}
int main() {
  std::vector<Item> items{{"a", 1}, {"b", 2}};
  return total(items, "label"); // here
}
"#;

/// Each ends in the program's own code, whatever makes an argument or leads through a loop.
async fn a_step_passes_over_the_library(adapter: &str) {
    let program = Program::built("program.cpp", STEPS, "return total(items, \"label\"); // here");
    let debugger = debugger(&program);
    let mut stop = start_to_stop(&debugger, &program, adapter).await;
    let mut lines = Vec::new();
    for _ in 0..4 {
        let waited =
            debugger.resume(Some(&stop.session), stop.thread_id, Resume::StepInto, wait_for(PATIENCE)).await;
        let Ok(Waited::Stopped(next)) = waited else { panic!("{waited:?}") };
        let frame = &next.call_stack[0];
        assert_eq!(
            (frame.function_name.as_str(), frame.file_path.as_str()),
            ("total", program.source.to_str().unwrap())
        );
        lines.push(frame.line_number);
        stop = *next;
    }
    assert_eq!(lines, [5, 6, 7, 8]);
    debugger.stop_all().await;
}

#[tokio::test]
async fn a_step_passes_over_the_library_under_gdb() {
    a_step_passes_over_the_library("gdb").await;
}

#[tokio::test]
async fn a_step_passes_over_the_library_under_lldb() {
    a_step_passes_over_the_library("lldb-dap").await;
}

const C: &str = r#"struct shop { int n, open; };
static int sold(struct shop *shop) {
  int sum = 0;
  for (int i = 0; i < 10; i++) {
    shop->n = i;
    shop->open = i > 5;
    sum += i; // here
  }
  return sum;
}
int main(void) { struct shop shop = {0, 0}; return sold(&shop); }
"#;

/// The value of `i` at the first stop with a condition, or that there is none, and what was printed.
async fn first_with(adapter: &str, wish: SetBreakpoint) -> (Option<String>, String) {
    let program = Program::built("program.c", C, "sum += i; // here");
    let debugger = debugger(&program);
    let wish = SetBreakpoint { path: program.source.clone(), line: program.line, ..wish };
    debugger.set_breakpoint(wish).await.unwrap();
    let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
    let value = match &waited {
        Waited::Stopped(stop) => Some(told(&debugger, stop, "i").await.0),
        Waited::Completed(_) => None,
        other => panic!("{other:?}"),
    };
    let printed = printed(&debugger, waited.session()).await;
    debugger.stop_all().await;
    (value, printed)
}

/// In C they are, and not in what a debugger makes of Python's rules.
async fn conditions_are_meant_in_c(adapter: &str) {
    let text = |text: &str| Some(text.to_owned());
    for (condition, first) in [
        ("i == 3 && sum > 0", Some("3")),
        ("shop->n == 4", Some("4")),
        ("!(i < 2)", Some("2")),
        ("i", Some("1")),
        ("shop->open", Some("6")),
        ("i & 8 || 0", Some("8")),
        ("i == 0x7", Some("7")),
        ("(long)i == 5", Some("5")),
        ("i == 'a' - 95", Some("2")),
        (r"i == '\n' - 7", Some("3")),
        ("shop->n == 10", None),
    ] {
        let (value, printed) = first_with(adapter, when(condition)).await;
        assert_eq!((condition, value.as_deref(), printed.as_str()), (condition, first, ""));
    }
    if adapter != "gdb" {
        // gdb does not take it, and the breakpoint itself says so.
        let (value, printed) = first_with(adapter, when("nosuch == 3")).await;
        assert_eq!(value.as_deref(), Some("0"));
        assert!(printed.contains("nosuch") && printed.len() < 500, "{printed}");
    } else {
        let log = SetBreakpoint { log_message: text("{i}"), ..when("*(int *)0 == 1") };
        let printed = logged(adapter, log).await;
        assert!(printed.starts_with("The condition `*(int *)0 == 1` cannot be evaluated: "), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
    }
    let logs = text("{i}: {shop->n} {i > 2 && sum}.");
    let log = SetBreakpoint { log_message: logs.clone(), ..when("i == 3") };
    assert!(["3: 3 1.\n", "3: 3 true.\n"].contains(&logged(adapter, log).await.as_str()));
    let log =
        SetBreakpoint { log_message: text("{i}"), hit_condition: text(">= 9"), ..SetBreakpoint::default() };
    assert_eq!(logged(adapter, log).await, "8\n9\n");
}

/// How often a line was passed when a hit condition stopped there first.
async fn turns_before(adapter: &str, condition: Option<&str>, hits: &str) -> String {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let wish = SetBreakpoint {
        condition: condition.map(str::to_owned),
        hit_condition: Some(hits.to_owned()),
        ..at(&program.source, program.line)
    };
    debugger.set_breakpoint(wish).await.unwrap();
    let start = debugger.configure(&program.start(adapter, "loop", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
    let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
    let turns = told(&debugger, &stop, "turns").await.0;
    debugger.stop_all().await;
    turns
}

async fn hit_conditions_count(adapter: &str) {
    for (condition, hits, expected) in [
        (None, "3", "2"),
        (None, "== 5", "4"),
        (None, "> 3", "3"),
        (None, "% 2", "1"),
        (None, "<= 2", "0"),
        (Some("turns > 10"), ">= 3", "13"),
    ] {
        assert_eq!((hits, turns_before(adapter, condition, hits).await.as_str()), (hits, expected));
    }
}

/// It does not announce that it has them.
#[tokio::test]
async fn hit_conditions_count_under_delve() {
    hit_conditions_count("delve").await;
}

/// It has a number to pass over, and no more.
#[tokio::test]
async fn hit_conditions_count_under_gdb() {
    hit_conditions_count("gdb").await;
}

/// It has a number, from which on it stops, and no more.
#[tokio::test]
async fn hit_conditions_count_under_lldb_dap() {
    hit_conditions_count("lldb-dap").await;
}

/// Nor does its adapter have log points; both are Baton's.
#[tokio::test]
async fn hit_conditions_count_under_java() {
    hit_conditions_count("java").await;
}

/// What a log point says that counts its hits, until the program stops behind it.
async fn log_points_count_their_hits(adapter: &str) {
    for (condition, hits, expected) in [
        (Some("turns < 6"), ">= 3", "2 3 4 5"),
        (None, "% 3", "2 5 8"),
        (None, "4", "3"),
        (None, "< 3", "0 1"),
    ] {
        let program = Program::of(adapter);
        let debugger = debugger(&program);
        let log = SetBreakpoint {
            log_message: Some("turn {turns}.".to_owned()),
            hit_condition: Some(hits.to_owned()),
            condition: condition.map(str::to_owned),
            ..at(&program.source, program.line)
        };
        debugger.set_breakpoint(log).await.unwrap();
        let behind = SetBreakpoint {
            condition: Some("turns == 9".to_owned()),
            ..at(&program.source, program.line + 1)
        };
        debugger.set_breakpoint(behind).await.unwrap();
        let start = debugger.configure(&program.start(adapter, "loop", false)).await.unwrap();
        let waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
        let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
        assert_eq!(told(&debugger, &stop, "turns").await.0, "9");
        let printed = printed(&debugger, &stop.session).await;
        let said = |line: &str| Some(line.split_once("turn ")?.1.trim_end_matches('.').to_owned());
        let said: Vec<String> = printed.lines().filter_map(said).collect();
        assert_eq!((hits, said.join(" ").as_str()), (hits, expected), "{printed}");
        debugger.stop_all().await;
    }
}

#[tokio::test]
async fn log_points_count_their_hits_under_delve() {
    log_points_count_their_hits("delve").await;
}

#[tokio::test]
async fn log_points_count_their_hits_under_gdb() {
    log_points_count_their_hits("gdb").await;
}

#[tokio::test]
async fn log_points_count_their_hits_under_lldb_dap() {
    log_points_count_their_hits("lldb-dap").await;
}

#[tokio::test]
async fn log_points_count_their_hits_under_java() {
    log_points_count_their_hits("java").await;
}

async fn hits_are_counted_on_when_another_breakpoint_is_set(adapter: &str, hits: &str) {
    let program = Program::of(adapter);
    let debugger = debugger(&program);
    let counted = SetBreakpoint { hit_condition: Some(hits.to_owned()), ..at(&program.source, program.line) };
    debugger.set_breakpoint(counted).await.unwrap();
    let behind = SetBreakpoint { path: program.source.clone(), line: program.line + 1, ..when("turns == 2") };
    debugger.set_breakpoint(behind).await.unwrap();
    let start = debugger.configure(&program.start(adapter, "loop", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
    let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
    debugger.set_breakpoint(at(&program.source, program.line + 3)).await.unwrap();
    let resumed = debugger
        .resume(Some(&stop.session), stop.thread_id, Resume::Continue, wait_for(PATIENCE))
        .await
        .unwrap();
    let Waited::Stopped(stop) = resumed else { panic!("{resumed:?}") };
    assert_eq!(told(&debugger, &stop, "turns").await.0, "3");
    debugger.stop_all().await;
}

/// gdb itself begins anew whenever a breakpoint of the file is set.
#[tokio::test]
async fn hits_are_counted_on_when_another_breakpoint_is_set_under_gdb() {
    hits_are_counted_on_when_another_breakpoint_is_set("gdb", ">= 4").await;
}

#[tokio::test]
async fn hits_are_counted_on_when_another_breakpoint_is_set_under_lldb_dap() {
    hits_are_counted_on_when_another_breakpoint_is_set("lldb-dap", "4").await;
}

async fn hits_of_rust_count(adapter: &str) {
    let program = Program::built("program.rs", RUST, "sum += i; // here");
    let debugger = debugger(&program);
    let wish = SetBreakpoint {
        path: program.source.clone(),
        line: program.line,
        hit_condition: Some("2".to_owned()),
        ..when("i > 2")
    };
    debugger.set_breakpoint(wish).await.unwrap();
    let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
    let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
    assert_eq!(told(&debugger, &stop, "i").await.0, "4");
    debugger.stop_all().await;
}

#[tokio::test]
async fn hits_of_rust_count_under_gdb() {
    hits_of_rust_count("gdb").await;
}

#[tokio::test]
async fn hits_of_rust_count_under_lldb_dap() {
    hits_of_rust_count("lldb-dap").await;
}

/// A line with two places, each twice in turn.
const TEMPLATE: &str = "int n = 0;
template <class T> T twice(T x) {
  n += 1;
  return x + x; // here
}
int main() {
  for (int i = 0; i < 4; i++) twice(i) + twice(i * 0.5);
  return 0;
}
";

/// What the program counts itself where a hit condition stops.
async fn all_places_of_a_line_count_together(adapter: &str) {
    let program = Program::built("program.cpp", TEMPLATE, "return x + x; // here");
    for (hits, expected) in
        [("2", "2"), ("= 5", "5"), ("% 3", "3 6"), ("<= 3", "1 2 3"), ("< 2", "1"), ("> 6", "7 8")]
    {
        let debugger = debugger(&program);
        let wish =
            SetBreakpoint { hit_condition: Some(hits.to_owned()), ..at(&program.source, program.line) };
        debugger.set_breakpoint(wish).await.unwrap();
        let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
        let mut waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
        let mut seen = Vec::new();
        while let Waited::Stopped(stop) = waited {
            seen.push(told(&debugger, &stop, "n").await.0);
            let (session, thread) = (Some(&stop.session), stop.thread_id);
            waited = debugger.resume(session, thread, Resume::Continue, wait_for(PATIENCE)).await.unwrap();
        }
        debugger.stop_all().await;
        assert_eq!((hits, seen.join(" ").as_str()), (hits, expected));
    }
}

#[tokio::test]
async fn all_places_of_a_line_count_together_under_gdb() {
    all_places_of_a_line_count_together("gdb").await;
}

#[tokio::test]
async fn all_places_of_a_line_count_together_under_lldb_dap() {
    all_places_of_a_line_count_together("lldb-dap").await;
}

#[tokio::test]
async fn all_places_of_a_line_count_together_under_codelldb() {
    all_places_of_a_line_count_together("codelldb").await;
}

fn when(condition: &str) -> SetBreakpoint {
    SetBreakpoint { condition: Some(condition.to_owned()), ..SetBreakpoint::default() }
}

async fn logged(adapter: &str, log: SetBreakpoint) -> String {
    let (value, printed) = first_with(adapter, log).await;
    assert_eq!(value, None, "a log point does not stop");
    printed
}

#[tokio::test]
async fn conditions_are_meant_in_c_under_gdb() {
    conditions_are_meant_in_c("gdb").await;
}

#[tokio::test]
async fn conditions_are_meant_in_c_under_lldb_dap() {
    conditions_are_meant_in_c("lldb-dap").await;
}

#[tokio::test]
async fn conditions_are_meant_in_c_under_codelldb() {
    conditions_are_meant_in_c("codelldb").await;
}

const RUST: &str = r#"struct Shop { n: i32, open: bool, name: String, pair: (i32, i32), sizes: Vec<i32> }
impl Shop {
    fn sold(&mut self) -> i32 {
        let mut sum = 0;
        for i in 0..10 {
            self.n = i;
            self.open = i > 5;
            sum += i; // here
        }
        sum
    }
}
fn main() {
    let mut shop = Shop { n: 0, open: false, name: String::from("abc"), pair: (1, 2), sizes: vec![3, 4] };
    std::process::exit(shop.sold() + shop.n + shop.name.len() as i32 + shop.pair.0 + shop.sizes[0]);
}
"#;

#[tokio::test]
async fn conditions_of_rust_are_understood_under_codelldb() {
    for (condition, first) in [
        ("self.open", "6"),
        ("self.open == true && i > 6", "7"),
        ("self.n == 3", "3"),
        ("i == 4 && !self.open", "4"),
        ("i == 5 and self.n == 5", "5"),
        ("self.name == \"abc\"", "0"),
        ("self.pair.1 == i", "2"),
        ("self.sizes[1] == i", "4"),
    ] {
        let program = Program::built("program.rs", RUST, "sum += i; // here");
        let debugger = debugger(&program);
        let wish =
            SetBreakpoint { condition: Some(condition.to_owned()), ..at(&program.source, program.line) };
        debugger.set_breakpoint(wish).await.unwrap();
        let start = debugger.configure(&program.start("codelldb", "", false)).await.unwrap();
        let waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
        let Waited::Stopped(stop) = waited else { panic!("{condition}: {waited:?}") };
        assert_eq!((condition, told(&debugger, &stop, "i").await.0.as_str()), (condition, first));
        debugger.stop_all().await;
    }
}

#[tokio::test]
async fn operators_are_the_programs_own_under_codelldb() {
    let program = Program::built("program.rs", RUST, "sum += i; // here");
    let debugger = debugger(&program);
    let wish = SetBreakpoint { condition: Some("i == 3".to_owned()), ..at(&program.source, program.line) };
    debugger.set_breakpoint(wish).await.unwrap();
    let log = SetBreakpoint {
        log_message: Some("{self.pair.0} {self.sizes[1]} {self.n * 2} {i +} {i.}".to_owned()),
        ..at(&program.source, program.line - 1)
    };
    debugger.set_breakpoint(log).await.unwrap();
    let start = debugger.configure(&program.start("codelldb", "", false)).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
    let Waited::Stopped(stop) = waited else { panic!("{waited:?}") };
    for (expression, expected) in [
        ("i / 2", "1"),
        ("-i % 2", "-1"),
        ("self.open == true", "false"),
        ("self.open == false", "true"),
        ("!self.open && self.n == 3", "true"),
        ("self.pair.0 + 1", "2"),
        ("self.pair.1", "2"),
        ("self.sizes[0] + 1", "4"),
        ("self.name == \"abc\"", "true"),
        ("self.name", "\"abc\""),
        ("i ** 2", "9"),
    ] {
        assert_eq!((expression, told(&debugger, &stop, expression).await.0.as_str()), (expression, expected));
    }
    let frame_id = stop.call_stack[0].frame_id;
    let wish = Evaluate { expression: "nosuch + 1".to_owned(), frame_id, context: None };
    let refused = debugger.evaluate(wish).await.unwrap_err().to_string();
    assert!(
        refused.contains("undeclared identifier 'nosuch'") && !refused.contains("Traceback"),
        "{refused}"
    );
    let printed = printed(&debugger, &stop.session).await;
    assert!(printed.starts_with("1 4 0 {Error: "), "{printed}");
    debugger.stop_all().await;
}
