//! A page from the middle of a large collection is told as fast as one from its beginning.

use baton_agent_debug::Debugger;
use baton_agent_debug::types::{Evaluate, Paging, StopEvent, Variables};

use crate::programs::{Program, debugger};
use crate::quirks::start_to_stop;

const PYTHON: &str = "items = list(range(100000))
table = {n: n for n in items}
print(len(items)) # here
";
const JAVASCRIPT: &str = "const items = Array.from({ length: 100000 }, (_, n) => n);
console.log(items.length); // here
";
const C: &str = "int items[100000];
int main(void) {
  for (int n = 0; n < 100000; n++) items[n] = n;
  return items[0]; // here
}
";
const GO: &str = "package main

import \"fmt\"

func main() {
\titems := make([]int, 100000)
\tfor n := range items {
\t\titems[n] = n
\t}
\tfmt.Println(len(items)) // here
}
";
const JAVA: &str = "import java.util.*;
public class Program {
  public static void main(String[] args) {
    List<Integer> list = new ArrayList<>();
    for (int n = 0; n < 100000; n++) list.add(n);
    int[] items = list.stream().mapToInt(n -> n).toArray();
    System.out.println(items.length); // here
  }
}
";

fn program(name: &str, text: &str) -> Program {
    let looping = text.lines().find(|line| line.ends_with("here")).unwrap().trim();
    Program::built(name, text, looping)
}

async fn page(debugger: &Debugger, stop: &StopEvent, expression: &str, start: usize) -> Variables {
    let frame_id = stop.call_stack[0].frame_id;
    let wish = Evaluate { expression: expression.to_owned(), frame_id, context: None };
    let reference = debugger.evaluate(wish).await.unwrap().variables_reference;
    debugger.variables(reference, Paging { start: Some(start), count: Some(3) }).await.unwrap()
}

async fn a_page_from_the_middle(adapter: &str, name: &str, text: &str) {
    // codelldb lists what it comes to in 5 s.
    let n_items: usize = if adapter == "codelldb" { 10_000 } else { 100_000 };
    let program = program(name, &text.replace("100000", &n_items.to_string()));
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, adapter).await;
    for start in [0, n_items / 2, n_items - 3] {
        let page = page(&debugger, &stop, "items", start).await;
        let values: Vec<&str> = page.variables.iter().map(|member| member.value.as_str()).collect();
        let expected: Vec<String> = (start..start + 3).map(|n| n.to_string()).collect();
        assert_eq!(values, expected, "{page:?}");
        let left = n_items - start - 3;
        // lldb tells no size: of more, one is known.
        let known = if adapter == "lldb-dap" { left.min(1) } else { left };
        assert!((known..known + 5).contains(&page.omitted), "{} after {start}", page.omitted);
    }
    debugger.stop_all().await;
}

#[tokio::test]
async fn a_list_of_python_has_pages() {
    a_page_from_the_middle("debugpy", "program.py", PYTHON).await;
}

#[tokio::test]
async fn an_array_of_javascript_has_pages() {
    a_page_from_the_middle("js-debug", "program.js", JAVASCRIPT).await;
}

#[tokio::test]
async fn an_array_of_c_has_pages_under_gdb() {
    a_page_from_the_middle("gdb", "program.c", C).await;
}

#[tokio::test]
async fn an_array_of_c_has_pages_under_lldb() {
    a_page_from_the_middle("lldb-dap", "program.c", C).await;
}

#[tokio::test]
async fn an_array_of_c_has_pages_under_codelldb() {
    a_page_from_the_middle("codelldb", "program.c", C).await;
}

#[tokio::test]
async fn a_slice_of_go_has_pages() {
    a_page_from_the_middle("delve", "program.go", GO).await;
}

#[tokio::test]
async fn an_array_of_java_has_pages() {
    a_page_from_the_middle("java", "Program.java", JAVA).await;
}

/// Some list the beginning alone: that is said, with what tells the rest.
#[tokio::test]
async fn what_a_debugger_does_not_list_is_said() {
    for (adapter, name, text, expression, at, expected) in [
        ("debugpy", "program.py", PYTHON, "table", 499, "the debugger lists 500 of 100000; evaluate a part"),
        ("java", "Program.java", JAVA, "list", 999, "the debugger lists 1000 of 100000; an expression tells"),
    ] {
        let program = program(name, text);
        let debugger = debugger(&program);
        let stop = start_to_stop(&debugger, &program, adapter).await;
        let page = page(&debugger, &stop, expression, at).await;
        let member = &page.variables[1];
        assert!(member.name == "..." && member.value.contains(expected), "{page:?}");
        debugger.stop_all().await;
    }
}
