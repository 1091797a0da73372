//! What collections hold: of each the shape, the first members and how many there are; of those that are not made yet,
//! nothing that costs the answers about all others.

use baton_agent_debug::Debugger;
use baton_agent_debug::types::{Evaluate, Paging, StopEvent, Waited};
use serde_json::json;

use crate::programs::{PATIENCE, Program, debugger, wait_for};
use crate::quirks::{at, start_to_stop, step_to_next_line};

const CPP: &str = r#"#include <array>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>
struct Item { int price = 3; };
int main() {
  std::vector<int> list{1, 2};
  std::vector<Item> items(2);
  std::vector<std::vector<int>> nested{{1}, {2, 3}};
  std::map<std::string, Item> named{{"k", Item{}}};
  std::unordered_map<int, int> hashed{{1, 2}};
  std::set<int> set{1, 2};
  std::deque<int> deque{1, 2};
  std::list<int> chain{1, 2};
  std::array<int, 2> array{1, 2};
  std::optional<int> some{5};
  std::tuple<int, std::string> tuple{1, "x"};
  std::pair<int, Item> pair{1, Item{}};
  auto owner = std::make_unique<Item>();
  std::vector<int> large(20000, 7);
  std::map<int, int> map;
  for (int n = 0; n < 1000; n++) map[n] = n * 2;
  return list[0]; // here
}
"#;
const HERE: &str = "return list[0]; // here";
/// What each is under lldb, in both adapters.
const LLDB: [(&str, &str); 13] = [
    ("list", "size=2 {1, 2}"),
    ("items", "size=2 {{price=3}, {price=3}}"),
    ("nested", "size=2 {size=1 {1}, size=2 {2, 3}}"),
    ("named", "size=1 {\"k\": {price=3}}"),
    ("hashed", "size=1 {1: 2}"),
    ("set", "size=2 {1, 2}"),
    ("deque", "size=2 {1, 2}"),
    ("chain", "size=2 {1, 2}"),
    ("array", "{1, 2}"),
    ("some", "5"),
    ("tuple", "(1, \"x\")"),
    ("pair", "(1, {price=3})"),
    ("large", "size=20000 {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, ...}"),
];
const GDB: [(&str, &str); 12] = [
    ("list", "std::vector of length 2, capacity 2 = {1, 2}"),
    ("items", "std::vector of length 2, capacity 2 = {{price = 3}, {price = 3}}"),
    ("named", "std::map with 1 element = {[\"k\"] = {price = 3}}"),
    ("hashed", "std::unordered_map with 1 element = {[1] = 2}"),
    ("set", "std::set with 2 elements = {[0] = 1, [1] = 2}"),
    ("deque", "std::deque with 2 elements = {1, 2}"),
    ("chain", "std::__cxx11::list = {[0] = 1, [1] = 2}"),
    ("array", "{_M_elems = {1, 2}}"),
    ("some", "std::optional<int> = {[contained value] = 5}"),
    ("tuple", "std::tuple containing = {[1] = 1, [2] = \"x\"}"),
    ("pair", "{first = 1, second = {price = 3}}"),
    (
        "large",
        "std::vector of length 20000, capacity 20000 = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7...}",
    ),
];

/// In `use`, none of the collections is made when its first line is reached.
const NOT_MADE: &str = r#"#include <deque>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>
__attribute__((noinline)) void fill() {
  volatile unsigned char bytes[4096];
  for (int n = 0; n < 4096; n++) bytes[n] = n * 37 % 251 + 1;
}
__attribute__((noinline)) int use(int given) {
  std::vector<int> vector; // here
  std::map<int, int> map;
  std::list<int> list;
  std::string text;
  std::deque<int> deque;
  std::unordered_map<int, int> hashed;
  return vector.size() + map.size() + list.size() + text.size() + deque.size() + hashed.size() + given;
}
int main() {
  fill();
  return use(3);
}
"#;

const RUST: &str = r#"use std::collections::{BTreeMap, HashMap, VecDeque};
struct Item { price: i32, name: String }
fn main() {
    let list = vec![1, 2];
    let items = vec![Item { price: 3, name: "x".to_owned() }];
    let named = HashMap::from([("k".to_owned(), 1)]);
    let sorted = BTreeMap::from([(1, 2)]);
    let deque = VecDeque::from([1, 2]);
    let large: Vec<i32> = (0..20_000).collect();
    let (shared, bytes, grid) = (std::rc::Rc::new(5), b"hi", [[1, 2], [3, 4]]);
    let sums = (items[0].price, items[0].name.len(), named.len(), sorted.len(), deque.len(), large.len());
    println!("{sums:?} {list:?} {shared} {bytes:?} {grid:?}"); // here
}
"#;
const PRINT: &str = "println!(\"{sums:?} {list:?} {shared} {bytes:?} {grid:?}\"); // here";

pub(crate) async fn told(debugger: &Debugger, stop: &StopEvent, expression: &str) -> (String, i64) {
    let frame_id = stop.call_stack[0].frame_id;
    let wish = Evaluate { expression: expression.to_owned(), frame_id, context: None };
    let told = debugger.evaluate(wish).await.unwrap_or_else(|error| panic!("{expression}: {error}"));
    (told.result, told.variables_reference)
}

async fn are_told(adapter: &str, program: &Program, expected: &[(&str, &str)]) -> (Debugger, StopEvent) {
    let debugger = debugger(program);
    let stop = start_to_stop(&debugger, program, adapter).await;
    for (name, expected) in expected {
        assert_eq!((*name, told(&debugger, &stop, name).await.0.as_str()), (*name, *expected), "{adapter}");
    }
    (debugger, stop)
}

/// The last two of the map's thousand.
async fn last_of_map(debugger: &Debugger, stop: &StopEvent) -> Vec<(String, String)> {
    let reference = told(debugger, stop, "map").await.1;
    let page = debugger.variables(reference, Paging { start: Some(998), count: Some(2) }).await.unwrap();
    page.variables.into_iter().map(|member| (member.name, member.value)).collect()
}

fn pairs(pairs: [(&str, &str); 2]) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// As its programmers write it, and not as the library spells it out.
async fn types_are_plain(debugger: &Debugger, stop: &StopEvent) {
    for (expression, expected) in [
        ("named", "std::map<std::string, Item>"),
        ("hashed", "std::unordered_map<int, int>"),
        ("owner", "std::unique_ptr<Item>"),
    ] {
        let frame_id = stop.call_stack[0].frame_id;
        let wish = Evaluate { expression: expression.to_owned(), frame_id, context: None };
        let told = debugger.evaluate(wish).await.unwrap().type_name;
        assert_eq!((expression, told.as_deref()), (expression, Some(expected)));
    }
}

fn cpp() -> Program {
    Program::built("program.cpp", CPP, HERE)
}

/// Debian's package of libstdc++ brings the texts that gdb's are made of.
pub(crate) fn brings_texts() -> bool {
    std::path::Path::new("/usr/share/gdb/auto-load").is_dir()
}

#[tokio::test]
async fn collections_of_cpp_under_gdb() {
    if !brings_texts() {
        return;
    }
    let (debugger, stop) = are_told("gdb", &cpp(), &GDB).await;
    assert!(told(&debugger, &stop, "owner").await.0.starts_with("std::unique_ptr<Item> = {get() = 0x"));
    types_are_plain(&debugger, &stop).await;
    assert_eq!(last_of_map(&debugger, &stop).await, pairs([("[998]", "1996"), ("[999]", "1998")]));
    debugger.stop_all().await;
}

async fn collections_under_lldb(adapter: &str) {
    let (debugger, stop) = are_told(adapter, &cpp(), &LLDB).await;
    let (owner, _) = told(&debugger, &stop, "owner").await;
    assert!(owner.starts_with("0x") && owner.ends_with(" {price=3}"), "{owner}");
    types_are_plain(&debugger, &stop).await;
    let last = last_of_map(&debugger, &stop).await;
    assert_eq!(last, pairs([("[998]", "(998, 1996)"), ("[999]", "(999, 1998)")]));
    debugger.stop_all().await;
}

#[tokio::test]
async fn collections_of_cpp_under_lldb() {
    collections_under_lldb("lldb-dap").await;
}

#[tokio::test]
async fn collections_of_cpp_under_codelldb() {
    collections_under_lldb("codelldb").await;
}

/// What a user has added as a text for some type goes before Baton's, whether in a list of commands or alone.
async fn texts_of_the_user(adapter: &str) {
    let command = r#"type summary add -x "^std::pair<.+>$" -s "mine""#;
    for commands in [json!([command]), json!(command)] {
        let program = cpp();
        let debugger = debugger(&program);
        debugger.set_breakpoint(at(&program.source, program.line)).await.unwrap();
        let mut start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
        start.configuration.insert("initCommands".to_owned(), commands);
        let waited = debugger.start(start, wait_for(PATIENCE)).await;
        let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
        for (name, expected) in [("pair", "mine"), ("tuple", "(1, \"x\")")] {
            assert_eq!((name, told(&debugger, &stop, name).await.0.as_str()), (name, expected), "{adapter}");
        }
        debugger.stop_all().await;
    }
}

#[tokio::test]
async fn texts_of_the_user_go_first_under_lldb() {
    texts_of_the_user("lldb-dap").await;
}

#[tokio::test]
async fn texts_of_the_user_go_first_under_codelldb() {
    texts_of_the_user("codelldb").await;
}

async fn what_is_not_made_yet(adapter: &str) {
    let program = Program::built("program.cpp", NOT_MADE, "std::vector<int> vector; // here");
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    let variables = &stop.top_frame_variables.as_ref().expect("the variables are told").variables;
    let given = variables.iter().find(|variable| variable.name == "given").map(|given| given.value.as_str());
    assert_eq!(given, Some("3"), "{stop:#?}");
    assert!(variables.len() >= 7, "{variables:#?}");
    for name in ["vector", "map", "list", "text", "deque", "hashed"] {
        told(&debugger, &stop, name).await;
    }
    step_to_next_line(&debugger, &stop).await;
    debugger.stop_all().await;
}

#[tokio::test]
async fn what_is_not_made_yet_costs_no_other_answer_under_gdb() {
    what_is_not_made_yet("gdb").await;
}

#[tokio::test]
async fn what_is_not_made_yet_costs_no_other_answer_under_lldb() {
    what_is_not_made_yet("lldb-dap").await;
}

#[tokio::test]
async fn what_is_not_made_yet_costs_no_other_answer_under_codelldb() {
    what_is_not_made_yet("codelldb").await;
}

fn rust() -> Program {
    Program::built("program.rs", RUST, PRINT)
}

#[tokio::test]
async fn collections_of_rust_under_gdb() {
    let expected = [
        ("list", "Vec(size=2) [1, 2]"),
        ("items", "Vec(size=1) [Item {price: 3, name: \"x\"}]"),
        ("named", "HashMap(size=1) {\"k\": 1}"),
        ("sorted", "BTreeMap(size=1) {1: 2}"),
        ("deque", "VecDeque(size=2) [1, 2]"),
        ("shared", "Rc(strong=1, weak=0) 5"),
        ("bytes", "&[104, 105]"),
        ("grid", "[[1, 2], [3, 4]]"),
        ("sums.1", "1"),
        (
            "large",
            "Vec(size=20000) [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, ...]",
        ),
    ];
    let (debugger, _) = are_told("gdb", &rust(), &expected).await;
    debugger.stop_all().await;
}

#[tokio::test]
async fn collections_of_rust_under_lldb() {
    let expected = [
        ("list", "size=2 {1, 2}"),
        ("items", "size=1 {{price=3, name=\"x\"}}"),
        ("named", "size=1 {\"k\": 1}"),
        ("deque", "size=2 {1, 2}"),
        ("shared", "strong=1, weak=0 5"),
        ("grid", "{{1, 2}, {3, 4}}"),
        ("sums.0", "3"),
        ("sums.1", "1"),
        ("large", "size=20000 {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, ...}"),
    ];
    let (debugger, _) = are_told("lldb-dap", &rust(), &expected).await;
    debugger.stop_all().await;
}

const C: &str = r#"static int large[1000000];
struct node { int value; struct node *next; char text[70000]; };
int main(void) {
  int list[3] = {7, 8, 9};
  double grid[2][2] = {{1, 2}, {3, 4}};
  static struct node node = {5};
  struct node *at = &node;
  void *place = at;
  return list[0] + large[0] + (int)grid[0][0] + at->value + !place; // here
}
"#;

async fn arrays_of_c(adapter: &str) {
    let expected = [
        ("list", "{7, 8, 9}"),
        ("grid", "{{1, 2}, {3, 4}}"),
        ("large", "{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...}"),
    ];
    let here = "return list[0] + large[0] + (int)grid[0][0] + at->value + !place; // here";
    let program = Program::built("program.c", C, here);
    let (debugger, stop) = are_told(adapter, &program, &expected).await;
    let at = told(&debugger, &stop, "at").await.0;
    assert!(at.contains('5'), "what is behind it is told: {at}");
    let place = told(&debugger, &stop, "place").await.0;
    assert!(place.starts_with("0x") && !place.contains("void"), "{place}");
    debugger.stop_all().await;
}

#[tokio::test]
async fn arrays_of_c_under_gdb() {
    arrays_of_c("gdb").await;
}

#[tokio::test]
async fn arrays_of_c_under_lldb() {
    arrays_of_c("lldb-dap").await;
}

#[tokio::test]
async fn arrays_of_c_under_codelldb() {
    arrays_of_c("codelldb").await;
}
