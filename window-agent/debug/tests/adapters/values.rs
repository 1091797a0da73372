//! Values are told so that they can be read: objects by their parts, those of libraries by the texts that these bring.

use std::process::Command;

use baton_agent_debug::types::{Evaluate, Paging, StopEvent};

use crate::programs::{Program, debugger};
use crate::quirks::start_to_stop;

const PYTHON: &str = "import json
class Item:
    def __init__(self):
        self.price = 3
class Shop:
    def __init__(self):
        self.name = 'x'
        self.sold = 50
        self.item = Item()
    def sell(self):
        self.sold += 1
shop = Shop()
shop.sell() # here
";
const JAVA: &str = "public class Program {
  static class Item { int price = 3; }
  static class Shop { String name = \"x\"; int sold = 50; Item item = new Item(); }
  public static void main(String[] args) {
    Shop shop = new Shop();
    System.out.println(shop.sold); // here
  }
}
";
/// What `said` is given is told as Java itself writes it.
const LIBRARY: &str = "import java.math.*;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
public class Program {
  enum Color { RED, GREEN { @Override public int code() { return 1; } }; public int code() { return 0; } }
  static class Item { int price = 3; }
  static <T> T said(String name, T value) { System.out.println(name + \" \" + value); return value; }
  static int twice(int n) { return 2 * n; }
  public static void main(String[] args) {
    List<Integer> list = said(\"list\", new ArrayList<>(List.of(1, 2, 3)));
    List<String> fixed = said(\"fixed\", List.of(\"a\", \"b\"));
    List<Integer> of_three = said(\"of_three\", List.of(1, 2, 3));
    List<Long> as_list = said(\"as_list\", Arrays.asList(1L, null));
    List<Integer> closed = said(\"closed\", Collections.unmodifiableList(list));
    List<Integer> part = said(\"part\", new ArrayList<>(List.of(1, 2, 3, 4)).subList(1, 3));
    List<Integer> linked = said(\"linked\", new LinkedList<>(list));
    List<List<String>> deep = said(\"deep\", List.of(fixed, List.of()));
    Deque<Integer> deque = said(\"deque\", new ArrayDeque<>(list));
    Queue<Integer> first = said(\"first\", new PriorityQueue<>(List.of(3, 1, 2)));
    Map<String, Integer> hashed = said(\"hashed\", new HashMap<>(Map.of(\"a\", 1, \"b\", 2)));
    Map<String, List<Integer>> chained = said(\"chained\", new LinkedHashMap<>(Map.of(\"k\", list)));
    Map<Integer, String> sorted = said(\"sorted\", new TreeMap<>(Map.of(2, \"b\", 1, \"a\", 3, \"c\")));
    Map<String, Integer> at_once = said(\"at_once\", new ConcurrentHashMap<>(Map.of(\"a\", 1)));
    Map<String, Integer> one = said(\"one\", Map.of(\"a\", 1));
    Map<String, Integer> three = said(\"three\", Map.of(\"a\", 1, \"b\", 2, \"c\", 3));
    Map<Color, Integer> by_color = said(\"by_color\", new EnumMap<>(Map.of(Color.GREEN, 5)));
    Set<Integer> set = said(\"set\", new TreeSet<>(Set.of(3, 1, 2)));
    Set<String> few = said(\"few\", Set.of(\"a\", \"b\", \"c\"));
    Set<String> words = said(\"words\", new LinkedHashSet<>(fixed));
    Set<Color> colors = said(\"colors\", EnumSet.allOf(Color.class));
    Set<String> none = said(\"none\", Collections.emptySet());
    Color color = said(\"color\", Color.GREEN);
    Optional<String> maybe = said(\"maybe\", Optional.of(\"x\"));
    Optional<String> empty = said(\"empty\", Optional.empty());
    OptionalInt number = said(\"number\", OptionalInt.of(4));
    Integer boxed = said(\"boxed\", 5);
    Double half = said(\"half\", 0.5);
    Boolean truth = said(\"truth\", true);
    AtomicInteger counter = said(\"counter\", new AtomicInteger(7));
    AtomicBoolean flag = said(\"flag\", new AtomicBoolean(true));
    StringBuilder text = said(\"text\", new StringBuilder(\"abc\").append(1));
    StringBuilder wide = said(\"wide\", new StringBuilder(\"\\u4e2d\\u6587\"));
    BigInteger big = said(\"big\", new BigInteger(\"-123456789012345678901234567890\"));
    BigDecimal price = said(\"price\", new BigDecimal(\"12.30\"));
    UUID id = said(\"id\", UUID.fromString(\"0a5f4d53-0000-4000-8000-000000000001\"));
    LocalDate day = said(\"day\", LocalDate.of(2026, 11, 28));
    LocalDateTime noon = said(\"noon\", LocalDateTime.of(2026, 11, 28, 12, 0));
    ZonedDateTime there = said(\"there\", ZonedDateTime.of(noon, ZoneId.of(\"Asia/Shanghai\")));
    Instant instant = said(\"instant\", Instant.ofEpochSecond(1_700_000_000L, 5));
    Duration while_ = said(\"while_\", Duration.ofMinutes(90));
    java.nio.file.Path path = said(\"path\", java.nio.file.Path.of(\"/tmp/x\"));
    int[] ints = {1, 2, 3};
    said(\"ints\", Arrays.toString(ints));
    Integer[] boxes = {1, null};
    said(\"boxes\", Arrays.toString(boxes));
    List<Item> items = List.of(new Item());
    List<Integer> many = new ArrayList<>();
    for (int n = 0; n < 2_000; n++) many.add(n);
    System.out.println(many.size()); // here
  }
}
";
const CPP: &str = "#include <string>
#include <vector>
struct Item { int price = 3; };
struct Shop { std::string name = \"x\"; int sold = 50; Item item; std::vector<int> all{1, 2}; Shop *next = this; };
int main() {
  Shop shop;
  Shop *at = &shop, *none = nullptr;
  const Shop &same = shop;
  int list[3] = {7, 8, 9};
  return shop.sold - list[0]; // here
}
";
const RUST: &str = "#[derive(Debug)]
enum Kind { Fruit { ripe: bool }, Tool(u32), Other }
#[derive(Debug)]
struct Item { price: Option<i32>, kind: Kind }
#[derive(Debug)]
struct Shop { name: String, sold: i32, item: Item, all: Vec<i32>, others: (Kind, Kind) }
fn main() {
    let item = Item { price: Some(3), kind: Kind::Fruit { ripe: true } };
    let others = (Kind::Tool(4), Kind::Other);
    let shop = Shop { name: \"x\".to_owned(), sold: 50, item, all: vec![1, 2], others };
    let at = &shop;
    println!(\"{shop:?} {at:?}\"); // here
}
";

/// What a stop tells of `shop`, and what an evaluation of it gives.
async fn told(adapter: &str, program: &Program) -> (StopEvent, String, String) {
    let debugger = debugger(program);
    let stop = start_to_stop(&debugger, program, adapter).await;
    let variables = stop.top_frame_variables.clone().expect("there are variables").variables;
    let shop = variables.iter().find(|variable| variable.name == "shop").expect("one is the shop");
    let wish =
        Evaluate { expression: "shop".to_owned(), frame_id: stop.call_stack[0].frame_id, context: None };
    let evaluated = debugger.evaluate(wish).await.unwrap().result;
    let value = shop.value.clone();
    debugger.stop_all().await;
    (stop, value, evaluated)
}

fn value_of<'a>(stop: &'a StopEvent, name: &str) -> &'a str {
    let variables = &stop.top_frame_variables.as_ref().expect("there are variables").variables;
    &variables.iter().find(|variable| variable.name == name).expect("it is there").value
}

fn names(stop: &StopEvent) -> Vec<&str> {
    let variables = &stop.top_frame_variables.as_ref().expect("there are variables").variables;
    variables.iter().map(|variable| variable.name.as_str()).collect()
}

#[tokio::test]
async fn an_object_of_python_is_its_parts() {
    let (stop, value, evaluated) =
        told("debugpy", &Program::new("program.py", PYTHON, "shop.sell() # here")).await;
    assert_eq!(value, "Shop(item=Item(...), name='x', sold=50)");
    assert_eq!(evaluated, value);
    assert_eq!(names(&stop), ["shop"], "no groups of names that are not the program's");
}

pub(crate) fn java(text: &str, here: &str) -> Program {
    Program::built("Program.java", text, here)
}

#[tokio::test]
async fn an_object_of_java_is_its_parts() {
    let program = java(JAVA, "System.out.println(shop.sold); // here");
    let (_, value, evaluated) = told("java", &program).await;
    assert_eq!(value, "Shop(name=\"x\", sold=50, item=Item(...))");
    assert_eq!(evaluated, value);
}

/// Java's own words for them are true.
#[tokio::test]
async fn values_of_javas_library_are_what_java_says() {
    let program = java(LIBRARY, "System.out.println(many.size()); // here");
    let mut run = Command::new("java");
    run.arg("-Dstdout.encoding=UTF-8").arg("-Dfile.encoding=UTF-8").arg("-cp");
    let ran =
        run.arg(program.source.with_file_name("out")).arg("Program").output().expect("a JDK is installed");
    let said = String::from_utf8(ran.stdout).expect("it is UTF-8");
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "java").await;
    let variables = stop.top_frame_variables.clone().expect("there are variables").variables;
    let value = |name: &str| {
        let variable = variables.iter().find(|variable| variable.name == name);
        variable.unwrap_or_else(|| panic!("there is no {name}")).value.clone()
    };
    let all: Vec<(&str, &str)> = said.lines().filter_map(|line| line.split_once(' ')).collect();
    assert!(all.len() > 40, "{said}");
    for (name, truth) in all {
        // Java writes texts without quotes. The order of these is another one in each run.
        let is_open = ["three", "few"].contains(&name);
        let shown = value(name).replace('"', "");
        let same = if is_open { sorted(&shown) == sorted(truth) } else { shown == truth };
        assert!(same, "{name} is {truth}, and {shown} is told");
    }
    assert_eq!(value("items"), "[Item(price=3)]");
    assert_eq!(value("many"), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... 1990 more]");
    debugger.stop_all().await;
}

fn sorted(text: &str) -> Vec<char> {
    let mut chars: Vec<char> = text.chars().collect();
    chars.sort_unstable();
    chars
}

#[tokio::test]
async fn expressions_of_java_may_call_methods_one_after_the_other() {
    let program = java(LIBRARY, "System.out.println(many.size()); // here");
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "java").await;
    for (expression, result) in [
        ("list.size()", "3"),
        ("list.size() + many.size()", "2003"),
        ("counter.incrementAndGet()", "8"),
        ("counter", "8"),
        ("list.get(2)", "3"),
        ("twice(ints[2]) + ints[1]", "8"),
        ("day.plusDays(3)", "2026-12-01"),
        ("hashed", "{\"a\"=1, \"b\"=2}"),
    ] {
        let wish = Evaluate {
            expression: expression.to_owned(),
            frame_id: stop.call_stack[0].frame_id,
            context: None,
        };
        assert_eq!(
            debugger.evaluate(wish).await.map(|value| value.result).as_deref(),
            Ok(result),
            "{expression}"
        );
    }
    debugger.stop_all().await;
}

#[tokio::test]
async fn a_file_of_javascript_has_the_programs_variables() {
    let text = "const shop = { sold: 50 };\nconsole.log(shop); // here\n";
    let (stop, value, _) =
        told("js-debug", &Program::new("program.js", text, "console.log(shop); // here")).await;
    assert_eq!(value, "{sold: 50}");
    assert_eq!(names(&stop), ["shop"]);
    let declared = format!("function helper() {{}}\nclass Item {{}}\n{text}");
    let beside = Program::new("program.js", &declared, "console.log(shop); // here");
    assert_eq!(names(&told("js-debug", &beside).await.0), ["shop"], "what is declared is no news");
    let text = format!("function run() {{\n{text}}}\nrun();\n");
    let inside = Program::new("program.js", &text, "console.log(shop); // here");
    assert_eq!(names(&told("js-debug", &inside).await.0), ["shop"], "`this` is no object of the program");
}

#[tokio::test]
async fn a_module_of_javascript_has_its_variables() {
    let text = "export const shop = { sold: 50 };\nconsole.log(shop); // here\n";
    let (stop, value, _) =
        told("js-debug", &Program::new("program.mjs", text, "console.log(shop); // here")).await;
    assert_eq!((value.as_str(), names(&stop)), ("{sold: 50}", vec!["shop"]));
}

fn cpp() -> Program {
    Program::built("program.cpp", CPP, "return shop.sold - list[0]; // here")
}

#[tokio::test]
async fn a_structure_under_gdb_is_its_parts() {
    let (stop, value, evaluated) = told("gdb", &cpp()).await;
    // Debian's package of libstdc++ brings its own.
    let brings_texts = std::path::Path::new("/usr/share/gdb/auto-load").is_dir();
    let name = if brings_texts {
        "{name = \"x\", sold = 50, item = {price = 3}, all = std::vector"
    } else {
        "{name = {"
    };
    assert!(value.starts_with(name), "{value}");
    assert_eq!(evaluated, value);
    assert_eq!((value_of(&stop, "list"), value_of(&stop, "none")), ("{7, 8, 9}", "0x0"));
    let at = value_of(&stop, "at");
    assert!(at.starts_with("0x") && at.contains(&format!(" {name}")), "{at}");
    assert!(value_of(&stop, "same").starts_with(name));
}

#[tokio::test]
async fn a_structure_under_lldb_is_its_parts() {
    let (stop, value, evaluated) = told("lldb-dap", &cpp()).await;
    assert!(
        value.starts_with("Shop(name=\"x\", sold=50, item=Item(...), all=size=2 {1, 2}, next=0x"),
        "{value}"
    );
    assert_eq!(evaluated, value);
    let at = value_of(&stop, "at");
    assert!(at.starts_with("0x") && at.ends_with(&value), "{at}");
    assert!(!value_of(&stop, "none").contains(' '), "nothing is there");
}

fn rust() -> Program {
    Program::built("program.rs", RUST, "println!(\"{shop:?} {at:?}\"); // here")
}

/// Each debugger in its own words.
async fn values_of_rust_are_those_of_its_toolchain(adapter: &str, parts: &[&str]) {
    let (stop, value, evaluated) = told(adapter, &rust()).await;
    assert_eq!(stop.output.text, "", "nothing was printed");
    let at = value_of(&stop, "at");
    for part in parts {
        assert!(
            value.contains(part) && evaluated.contains(part) && at.contains(part),
            "{value} {evaluated} {at}"
        );
    }
}

#[tokio::test]
async fn rust_under_gdb() {
    let whole = "Shop {name: \"x\", sold: 50, item: Item {price: Some(3), kind: Fruit {ripe: true}}, all: Vec(size=2) [1, 2], \
        others: (Tool(4), Other)}";
    values_of_rust_are_those_of_its_toolchain("gdb", &[whole]).await;
}

#[tokio::test]
async fn rust_under_lldb() {
    values_of_rust_are_those_of_its_toolchain("lldb-dap", &["name=\"x\"", "sold=50", "all=size=2 {1, 2}"])
        .await;
}

#[tokio::test]
async fn rust_under_codelldb() {
    // How much of the whole it tells depends on how long that takes it.
    let program = rust();
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "codelldb").await;
    let variables = stop.top_frame_variables.expect("there are variables").variables;
    let shop = variables.iter().find(|variable| variable.name == "shop").expect("one is the shop");
    let parts = debugger.variables(shop.variables_reference, Paging::default()).await.unwrap().variables;
    let value = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.value.as_str());
    assert_eq!((value("name"), value("sold"), value("all")), (Some("\"x\""), Some("50"), Some("size=2")));
    debugger.stop_all().await;
}
