//! A program that comes to a stop in a library is told with what it was doing itself.

use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::types::{Evaluate, StopEvent, Waited};

use crate::programs::{PATIENCE, Program, debugger, wait_for};

const JAVASCRIPT: &str = "const fs = require('fs');
function load(name) {
  const own = 41;
  return fs.readFileSync(name).length + own; // here
}
load('/there/is/none');
";
const JAVA: &str = "public class Program {
  static int load(String text) {
    int own = 41;
    return Integer.parseInt(text) + own; // here
  }
  public static void main(String[] args) {
    System.out.println(load(\"x\"));
  }
}
";
const C: &str = "#include <stdlib.h>
int load(const char *name) {
  int own = 41;
  if (name) abort(); // here
  return own;
}
int main(void) {
  return load(\"x\");
}
";
const RUST: &str = "fn load(text: &str) -> i32 {
    let own = 41;
    text.parse::<i32>().unwrap() + own // here
}
fn main() {
    println!(\"{}\", load(\"x\"));
}
";
const GO: &str = "package main

func load(names []string) int {
\town := 41
\treturn len(names[own]) // here
}

func main() {
\tload(nil)
}
";

fn program(adapter: &str, language: &str) -> Program {
    let looping = |text: &str| text.lines().find(|line| line.ends_with("// here")).unwrap().trim().to_owned();
    let (name, text) = match language {
        "js" => ("program.js", JAVASCRIPT),
        "java" => ("Program.java", JAVA),
        "c" => ("program.c", C),
        "rs" => ("program.rs", RUST),
        "go" => ("program.go", GO),
        other => panic!("{adapter}: {other}"),
    };
    Program::built(name, text, &looping(text))
}

/// The frame of the program's own, its variables, and an expression there.
async fn own_frame(adapter: &str, language: &str) {
    let program = program(adapter, language);
    let debugger = debugger(&program);
    let wish = Wish::Launch(Launch {
        adapter: Some(adapter.to_owned()),
        program: program.path.clone(),
        ..Launch::default()
    });
    let start = debugger.configure(&wish).await.unwrap();
    let waited = debugger.start(start, wait_for(PATIENCE)).await;
    let Ok(Waited::Stopped(stop)) = waited else { panic!("{waited:?}") };
    let stop: &StopEvent = &stop;
    assert_ne!(stop.source.as_ref().map(|source| source.path.as_str()), program.source.to_str(), "{stop:#?}");
    let own = stop.own.as_ref().unwrap_or_else(|| panic!("{stop:#?}"));
    let frame = stop.call_stack.iter().find(|frame| frame.frame_id == own.frame_id).unwrap();
    assert_eq!(
        (frame.file_path.as_str(), frame.line_number),
        (program.source.to_str().unwrap(), i64::from(program.line)),
        "{stop:#?}"
    );
    let variables = &own.variables.as_ref().unwrap_or_else(|| panic!("{stop:#?}")).variables;
    let value = variables.iter().find(|variable| variable.name == "own").map(|variable| &*variable.value);
    assert_eq!(value, Some("41"), "{stop:#?}");
    let expression =
        Evaluate { expression: "own + 1".to_owned(), frame_id: stop.meant_frame().unwrap(), context: None };
    assert_eq!(debugger.evaluate(expression).await.unwrap().result, "42");
    debugger.stop_all().await;
}

macro_rules! tests {
    ($($name:ident: $adapter:literal, $language:literal;)*) => {
        $(#[tokio::test]
        async fn $name() {
            own_frame($adapter, $language).await;
        })*
    };
}

tests! {
    an_exception_in_nodes_own_code_is_told_with_the_programs_frame: "js-debug", "js";
    an_exception_in_javas_library_is_told_with_the_programs_frame: "java", "java";
    a_signal_in_c_under_gdb_is_told_with_the_programs_frame: "gdb", "c";
    a_signal_in_c_under_lldb_is_told_with_the_programs_frame: "lldb-dap", "c";
    a_signal_in_c_under_codelldb_is_told_with_the_programs_frame: "codelldb", "c";
    a_panic_of_rust_under_gdb_is_told_with_the_programs_frame: "gdb", "rs";
    a_panic_of_rust_under_lldb_is_told_with_the_programs_frame: "lldb-dap", "rs";
    a_panic_of_rust_under_codelldb_is_told_with_the_programs_frame: "codelldb", "rs";
    a_panic_of_go_is_told_with_the_programs_frame: "delve", "go";
}
