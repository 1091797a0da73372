//! The first stop of a program: where it begins, in a function, in a recursion without end.

use baton_agent_debug::Debugger;
use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::types::control::{Category, OutputWish};
use baton_agent_debug::types::triggers::{SetTrigger, Trigger};
use baton_agent_debug::types::{Resume, StopEvent, Waited};

use crate::programs::{PATIENCE, Program, debugger, wait_for};

const JAVASCRIPT: &str = "console.log('first');
function twice(n) {
  return n * 2;
}
console.log(twice(2));
";

/// It is before anything of the program ran, and not in the first function that it calls.
#[tokio::test]
async fn the_entry_of_javascript_is_its_first_line() {
    let program = Program::new("program.js", JAVASCRIPT, "console.log('first');");
    let debugger = debugger(&program);
    let wish =
        Wish::Launch(Launch { stop_on_entry: true, program: program.path.clone(), ..Launch::default() });
    let start = debugger.configure(&wish).await.unwrap();
    let stop = first_stop(debugger.start(start, wait_for(PATIENCE)).await.unwrap());
    assert_eq!((stop.reason.as_str(), stop.line), ("entry", Some(i64::from(program.line))), "{stop:#?}");
    assert_eq!(stop.source.as_ref().map(|source| source.path.as_str()), program.source.to_str());
    assert_eq!(said(&debugger, &stop).await, "");
    let step =
        debugger.resume(Some(&stop.session), stop.thread_id, Resume::StepOver, wait_for(PATIENCE)).await;
    let next = first_stop(step.unwrap());
    assert_eq!((next.line, said(&debugger, &next).await.as_str()), (Some(5), "first\n"), "{next:#?}");
    debugger.stop_all().await;
}

/// node's loader catches what a module throws at its top level: no debugger calls it uncaught. The filter of all
/// exceptions stops there, and without it the output has the text and the line.
#[tokio::test]
async fn what_a_module_of_javascript_throws_at_its_top_level_is_told() {
    const MODULE: &str = "export const shop = 'open';\nthrow new Error(`no ${shop} shop`);\n";
    let program = Program::new("program.mjs", MODULE, "throw new Error");
    for filter in [None, Some("all")] {
        let debugger = debugger(&program);
        let wish = filter.map(|filter| {
            let trigger = Trigger::Exception { filter: filter.to_owned() };
            vec![SetTrigger { trigger, condition: None, hit_condition: None, owner: None }]
        });
        debugger.set_exception_filters(None, wish).await.unwrap();
        let start = debugger.configure(&program.start("js-debug", "", false)).await.unwrap();
        let mut waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
        if let Waited::Stopped(stop) = &waited {
            assert_eq!((stop.reason.as_str(), stop.line), ("exception", Some(2)), "{filter:?} {stop:#?}");
            assert!(stop.text.as_deref().is_some_and(|text| text.contains("no open shop")), "{stop:#?}");
            let go =
                debugger.resume(Some(&stop.session), stop.thread_id, Resume::Continue, wait_for(PATIENCE));
            waited = go.await.unwrap();
        } else {
            assert_eq!(filter, None, "{waited:?}");
        }
        let Waited::Completed(end) = waited else { panic!("{filter:?} {waited:?}") };
        assert_eq!(end.exit_code, Some(1), "{end:?}");
        assert!(
            end.output.text.contains("program.mjs:2") && end.output.text.contains("no open shop"),
            "{end:?}"
        );
    }
}

const C: &str = "int twice(int n) {
  return n * 2; // here
}
int deeper(int n) {
  volatile char room[4096];
  room[0] = (char)n;
  return deeper(n + 1) + room[0];
}
int main(int argc, char **argv) {
  int sum = twice(argc);
  return argv[argc - 1][0] == 'd' ? deeper(sum) : 0;
}
";

/// A name that no function has is told so, beside one that has one.
async fn a_function_that_is_not_there_is_told(adapter: &str) {
    let program = Program::compiled(C, "return n * 2; // here", &[]);
    let debugger = debugger(&program);
    for name in ["twice", "nosuch"] {
        let trigger = Trigger::Function { name: name.to_owned() };
        let wish = SetTrigger { trigger, condition: None, hit_condition: None, owner: None };
        debugger.set_trigger(None, wish).await.unwrap();
    }
    let start = debugger.configure(&program.start(adapter, "", false)).await.unwrap();
    let stop = first_stop(debugger.start(start, wait_for(PATIENCE)).await.unwrap());
    assert_eq!(stop.line, Some(i64::from(program.line)), "{stop:#?}");
    let [twice, nosuch] = &debugger.triggers().await[..] else { panic!("two were set") };
    assert!(twice.verified && !nosuch.verified, "{twice:?} {nosuch:?}");
    let step =
        debugger.resume(Some(&stop.session), stop.thread_id, Resume::Continue, wait_for(PATIENCE)).await;
    let Ok(Waited::Completed(end)) = step else { panic!("{step:?}") };
    let missed: Vec<i64> = end.never_called.iter().map(|trigger| trigger.id).collect();
    assert_eq!(missed, [nosuch.id], "{end:?}");
}

/// Its innermost frames are told, with their lines and variables.
async fn a_recursion_without_end_is_told_with_its_frames(adapter: &str) {
    let program = Program::compiled(C, "return deeper(n + 1) + room[0];", &[]);
    let debugger = debugger(&program);
    let start = debugger.configure(&program.start(adapter, "deeper", false)).await.unwrap();
    let stop = first_stop(debugger.start(start, wait_for(PATIENCE)).await.unwrap());
    let source = program.source.to_str();
    assert_eq!(stop.source.as_ref().map(|source| source.path.as_str()), source, "{stop:#?}");
    assert!(format!("{:?} {:?}", stop.text, stop.description).contains("SIGSEGV"), "{stop:#?}");
    assert!(stop.call_stack.len() > 10, "{stop:#?}");
    for frame in &stop.call_stack {
        assert_eq!((frame.function_name.as_str(), frame.file_path.as_str()), ("deeper", source.unwrap()));
    }
    assert_eq!(stop.call_stack[1].line_number, i64::from(program.line));
    let names =
        stop.top_frame_variables.as_ref().map(|told| told.variables.iter().any(|told| told.name == "n"));
    assert_eq!(names, Some(true), "{stop:#?}");
    debugger.stop_all().await;
}

/// Tests of both for each of the debuggers of compiled programs.
macro_rules! compiled {
    ($($module:ident: $adapter:literal;)*) => {
        $(mod $module {
            #[tokio::test]
            async fn a_function_that_is_not_there_is_told() {
                super::a_function_that_is_not_there_is_told($adapter).await;
            }

            #[tokio::test]
            async fn a_recursion_without_end_is_told_with_its_frames() {
                super::a_recursion_without_end_is_told_with_its_frames($adapter).await;
            }
        })*
    };
}

compiled! {
    gdb: "gdb";
    lldb_dap: "lldb-dap";
    codelldb: "codelldb";
}

fn first_stop(waited: Waited) -> StopEvent {
    match waited {
        Waited::Stopped(stop) => *stop,
        other => panic!("{other:?}"),
    }
}

/// What the program itself has printed.
async fn said(debugger: &Debugger, stop: &StopEvent) -> String {
    let all = OutputWish {
        session: Some(stop.session.clone()),
        since: Some(0),
        categories: vec![Category::Stdout],
        max_bytes: usize::MAX,
    };
    debugger.output(all).await.unwrap().entries.iter().map(|entry| entry.text.as_str()).collect()
}
