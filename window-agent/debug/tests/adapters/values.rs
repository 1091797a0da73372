//! Values are told so that they can be read: objects by their parts, those of libraries by the texts that these bring.

use std::process::Command;

use baton_agent_debug::types::{Evaluate, Paging, StopEvent};

use crate::programs::{Program, debugger};
use crate::quirks::start_to_stop;

const PYTHON: &str = "class Item:
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
const CPP: &str = "#include <string>
#include <vector>
struct Item { int price = 3; };
struct Shop { std::string name = \"x\"; int sold = 50; Item item; std::vector<int> all{1, 2}; };
int main() {
  Shop shop;
  int list[3] = {7, 8, 9};
  return shop.sold - list[0]; // here
}
";
const RUST: &str = "struct Item { price: i32 }
struct Shop { name: String, sold: i32, item: Item, all: Vec<i32> }
fn main() {
    let shop = Shop { name: \"x\".to_owned(), sold: 50, item: Item { price: 3 }, all: vec![1, 2] };
    println!(\"{} {} {} {}\", shop.name, shop.sold, shop.item.price, shop.all.len()); // here
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

fn java() -> Program {
    let program = Program::new("Program.java", JAVA, "System.out.println(shop.sold); // here");
    let mut build = Command::new("javac");
    build.args(["-g", "-d"]).arg(program.source.with_file_name("out")).arg(&program.source);
    assert!(build.status().expect("a JDK is installed").success());
    program
}

#[tokio::test]
async fn an_object_of_java_is_its_parts() {
    let (_, value, evaluated) = told("java", &java()).await;
    assert_eq!(value, "Shop(name=\"x\", sold=50, item=Item(...))");
    assert_eq!(evaluated, value);
}

#[tokio::test]
async fn a_file_of_javascript_has_the_programs_variables() {
    let text = "const shop = { sold: 50 };\nconsole.log(shop); // here\n";
    let (stop, value, _) =
        told("js-debug", &Program::new("program.js", text, "console.log(shop); // here")).await;
    assert_eq!(value, "{sold: 50}");
    assert_eq!(names(&stop), ["shop"]);
}

#[tokio::test]
async fn a_module_of_javascript_has_its_variables() {
    let text = "export const shop = { sold: 50 };\nconsole.log(shop); // here\n";
    let (stop, value, _) =
        told("js-debug", &Program::new("program.mjs", text, "console.log(shop); // here")).await;
    assert_eq!((value.as_str(), names(&stop)), ("{sold: 50}", vec!["shop", "this"]));
}

fn build(mut program: Program, compiler: &mut Command) -> Program {
    program.path = program.source.with_extension("");
    let built = compiler.arg("-o").arg(&program.path).arg(&program.source).status();
    assert!(built.expect("a compiler is installed").success());
    program
}

fn cpp() -> Program {
    let program = Program::new("program.cpp", CPP, "return shop.sold - list[0]; // here");
    build(program, Command::new("c++").args(["-g", "-O0"]))
}

#[tokio::test]
async fn a_structure_under_gdb_is_its_parts() {
    let (stop, value, evaluated) = told("gdb", &cpp()).await;
    let brings_texts = std::path::Path::new("/usr/share/gdb/auto-load").is_dir();
    let name = if brings_texts { "name = \"x\"" } else { "name = {...}" };
    assert!(value.starts_with(&format!("{{{name}, sold = 50, item = {{...}}, all = ")), "{value}");
    assert_eq!(evaluated, value);
    let list = &stop.top_frame_variables.expect("there are variables").variables;
    let list = list.iter().find(|variable| variable.name == "list").expect("one is the list");
    assert_eq!(list.value, "{7, 8, 9}");
}

#[tokio::test]
async fn a_structure_under_lldb_is_its_parts() {
    let (_, value, evaluated) = told("lldb-dap", &cpp()).await;
    assert_eq!(value, "Shop(name=\"x\", sold=50, item=Item(...), all=size=2)");
    assert_eq!(evaluated, value);
}

fn rust() -> Program {
    let program = Program::new("program.rs", RUST, RUST.lines().nth(4).unwrap().trim());
    build(program, Command::new("rustc").arg("-g"))
}

/// Each debugger in its own words.
async fn values_of_rust_are_those_of_its_toolchain(adapter: &str, parts: &[&str]) {
    let (_, value, evaluated) = told(adapter, &rust()).await;
    for part in parts {
        assert!(value.contains(part) && evaluated.contains(part), "{value} {evaluated}");
    }
}

#[tokio::test]
async fn rust_under_gdb() {
    let parts = ["name = \"x\"", "sold = 50", "all = Vec(size=2)"];
    values_of_rust_are_those_of_its_toolchain("gdb", &parts).await;
}

#[tokio::test]
async fn rust_under_lldb() {
    values_of_rust_are_those_of_its_toolchain("lldb-dap", &["name=\"x\"", "sold=50", "all=size=2"]).await;
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
