//! One program in four languages, made of a stream of numbers: loops, calls, recursion; exceptions and threads where a
//! language has them. It always ends, and prints what it does.

use std::fmt::Write as _;

use super::choices::Choices;

/// Deepest nesting of blocks.
const MAX_DEPTH: usize = 3;
/// No call stands deeper, so that loops of loops of calls end soon.
const MAX_CALL_DEPTH: usize = 2;

const IN_THREAD_OF_C: &str = "\
struct call {
    long (*f)(long, long, long);
    long a, b, c;
};
static void *work(void *given) {
    struct call *call = given;
    call->c = call->f(call->a, call->b, call->c);
    return 0;
}
static long in_thread(long (*f)(long, long, long), long a, long b, long c) {
    struct call call = {f, a, b, c};
    pthread_t thread;
    pthread_create(&thread, 0, work, &call); pthread_join(thread, 0);
    return call.c;
}
";
const IN_THREAD_OF_GO: &str = "\
func in_thread(f func(int, int, int) int, a int, b int, c int) int {
    done := make(chan int, 1)
    go func() { done <- f(a, b, c) }(); return <-done
}
";
/// Not by the standard library: a step would go through its code beside the thread.
const IN_THREAD_OF_RUST: &str = "\
struct Call {
    f: fn(i64, i64, i64) -> i64,
    a: i64,
    b: i64,
    c: i64,
}
unsafe extern \"C\" {
    fn pthread_create(thread: *mut usize, how: usize, work: extern \"C\" fn(&mut Call) -> usize, call: &mut Call) -> i32;
    fn pthread_join(thread: usize, told: usize) -> i32;
}
extern \"C\" fn work(call: &mut Call) -> usize {
    call.c = (call.f)(call.a, call.b, call.c);
    0
}
fn in_thread(f: fn(i64, i64, i64) -> i64, a: i64, b: i64, c: i64) -> i64 {
    let mut call = Call { f, a, b, c };
    let mut thread = 0;
    unsafe { pthread_create(&mut thread, 0, work, &mut call); pthread_join(thread, 0); }
    call.c
}
";

/// A language that programs are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    C,
    Go,
    JavaScript,
    Rust,
}

/// A program.
pub(crate) struct Written {
    pub(crate) text: String,
    /// Lines that are one statement each: every debugger stops there, once each time.
    pub(crate) statements: Vec<u32>,
    /// Heads of loops and conditions: where a debugger stops, its compiler says.
    pub(crate) heads: Vec<u32>,
}

/// Writes a program.
pub(crate) fn write(tongue: Tongue, choices: &mut Choices) -> Written {
    let written = Written { text: String::new(), statements: Vec::new(), heads: Vec::new() };
    let has_threads = tongue.has_threads() && choices.pick(3) == 2;
    let mut writer = Writer { tongue, written, n_functions: 0, n_counters: 0, has_threads };
    writer.line(0, tongue.head());
    if has_threads {
        writer.line(0, tongue.in_thread());
    }
    for _ in 0..choices.pick(4) {
        let name = format!("f{}", writer.n_functions);
        writer.function(&name, choices);
        writer.n_functions += 1;
    }
    writer.function("run", choices);
    writer.line(0, &tongue.tail(choices.pick(4)));
    writer.written
}

impl Tongue {
    /// Before all functions; its lines are no place for breakpoints.
    fn head(self) -> &'static str {
        match self {
            Self::C => {
                "#include <pthread.h>\n#include <stdio.h>\nstatic void say(const char *name, long value) {\n    printf(\"say %s %ld\\n\", name, value);\n}"
            }
            Self::Go => {
                "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc say(name string, value int) {\n\tfmt.Println(\"say\", name, value)\n}"
            }
            Self::JavaScript => "function say(name, value) {\n    console.log(`say ${name} ${value}`);\n}",
            Self::Rust => {
                "#![allow(unused)]\nfn say(name: &str, value: i64) {\n    println!(\"say {name} {value}\");\n}"
            }
        }
    }

    fn has_threads(self) -> bool {
        self != Self::JavaScript
    }

    /// Calls a function in a thread of its own and waits for it, on one line: of two threads one runs at a time.
    fn in_thread(self) -> &'static str {
        match self {
            Self::C => IN_THREAD_OF_C,
            Self::Go => IN_THREAD_OF_GO,
            Self::JavaScript => "",
            Self::Rust => IN_THREAD_OF_RUST,
        }
    }

    /// After all functions.
    fn tail(self, code: usize) -> String {
        match self {
            Self::C => format!("int main(void) {{\n    say(\"end\", run(1, 2, 3));\n    return {code};\n}}"),
            Self::Go => format!("func main() {{\n\tsay(\"end\", run(1, 2, 3))\n\tos.Exit({code})\n}}"),
            Self::JavaScript => format!("say(\"end\", run(1, 2, 3));\nprocess.exitCode = {code};"),
            Self::Rust => {
                format!("fn main() {{\n    say(\"end\", run(1, 2, 3));\n    std::process::exit({code});\n}}")
            }
        }
    }

    /// One that recovers gives back what it has made of `c` by then.
    fn function(self, name: &str, recovers: bool) -> String {
        match self {
            Self::Go if recovers => format!("func {name}(a int, b int, c int) (d int) {{"),
            Self::C => format!("static long {name}(long a, long b, long c) {{"),
            Self::Go => format!("func {name}(a int, b int, c int) int {{"),
            Self::JavaScript => format!("function {name}(a, b, c) {{"),
            Self::Rust => format!("fn {name}(mut a: i64, mut b: i64, mut c: i64) -> i64 {{"),
        }
    }

    fn end(self) -> &'static str {
        if self == Self::Go { "" } else { ";" }
    }

    fn head_of_if(self, condition: &str) -> String {
        match self {
            Self::C | Self::JavaScript => format!("if ({condition}) {{"),
            Self::Go | Self::Rust => format!("if {condition} {{"),
        }
    }

    fn head_of_for(self, counter: &str, n: usize) -> String {
        match self {
            Self::C => format!("for (int {counter} = 0; {counter} < {n}; {counter}++) {{"),
            Self::Go => format!("for {counter} := 0; {counter} < {n}; {counter}++ {{"),
            Self::JavaScript => format!("for (let {counter} = 0; {counter} < {n}; {counter}++) {{"),
            Self::Rust => format!("for {counter} in 0..{n} {{"),
        }
    }

    fn counter(self, counter: &str) -> String {
        match self {
            Self::C => format!("int {counter} = 0"),
            Self::Go => format!("{counter} := 0"),
            Self::JavaScript => format!("let {counter} = 0"),
            Self::Rust => format!("let mut {counter} = 0"),
        }
    }

    fn head_of_while(self, counter: &str, n: usize) -> String {
        match self {
            Self::C | Self::JavaScript => format!("while ({counter} < {n}) {{"),
            Self::Go => format!("for {counter} < {n} {{"),
            Self::Rust => format!("while {counter} < {n} {{"),
        }
    }
}

#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    in_loop: bool,
    in_try: bool,
}

impl Place {
    fn inner(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn indent(self) -> usize {
        self.depth + 1
    }
}

struct Writer {
    tongue: Tongue,
    written: Written,
    /// Each calls those before it.
    n_functions: usize,
    n_counters: usize,
    /// Some calls are made in a thread.
    has_threads: bool,
}

impl Writer {
    fn line(&mut self, indent: usize, lines: &str) {
        for line in lines.lines() {
            writeln!(self.written.text, "{:1$}{line}", "", indent * 4).unwrap();
        }
    }

    /// The number of the next line.
    fn next(&self) -> u32 {
        u32::try_from(self.written.text.lines().count() + 1).unwrap()
    }

    fn say(&mut self, indent: usize, statement: &str) {
        let next = self.next();
        self.written.statements.push(next);
        self.line(indent, &format!("{statement}{}", self.tongue.end()));
    }

    fn head(&mut self, indent: usize, head: &str) {
        let next = self.next();
        self.written.heads.push(next);
        self.line(indent, head);
    }

    fn function(&mut self, name: &str, choices: &mut Choices) {
        let recovers = self.tongue == Tongue::Go && name != "run" && choices.pick(3) == 2;
        self.line(0, &self.tongue.function(name, recovers));
        if recovers {
            self.line(1, "defer func() { if recover() != nil { d = c } }()");
        }
        let place = Place { depth: 0, in_loop: false, in_try: recovers };
        if name == "run" {
            // Each is called, whatever stands below.
            for nth in 0..self.n_functions {
                self.say(1, &format!("b = f{nth}(b, c, a)"));
            }
            self.block(choices, place);
        } else if choices.pick(4) == 3 {
            self.head(1, &self.tongue.head_of_if("a <= 0"));
            self.say(2, "return b");
            self.line(1, "}");
            self.say(1, &format!("c = {name}(a - 40, b, c)"));
        } else {
            self.block(choices, place);
        }
        self.say(1, "return (a + b + c) % 97");
        self.line(0, "}");
    }

    fn block(&mut self, choices: &mut Choices, place: Place) {
        for _ in 0..=choices.pick(4) {
            self.statement(choices, place);
        }
    }

    fn statement(&mut self, choices: &mut Choices, place: Place) {
        let indent = place.indent();
        let target = choices.one_of(&["a", "b", "c"]);
        let nests = place.depth < MAX_DEPTH;
        let calls = self.n_functions > 0 && place.depth < MAX_CALL_DEPTH;
        match choices.pick(12) {
            1 => self.say(indent, &format!("say(\"{target}\", {target})")),
            2 if nests => {
                self.head(indent, &self.tongue.head_of_if(condition(choices)));
                self.block(choices, place.inner());
                if choices.pick(2) == 1 {
                    self.line(indent, "} else {");
                    self.block(choices, place.inner());
                }
                self.line(indent, "}");
            }
            3 if nests => {
                let counter = format!("i{}", place.depth);
                self.head(indent, &self.tongue.head_of_for(&counter, choices.pick(4)));
                self.block(choices, Place { in_loop: true, ..place.inner() });
                self.line(indent, "}");
            }
            4 if nests => self.counted(choices, place),
            5 | 6 if calls => self.call(choices, indent, target),
            7 if nests && self.tongue == Tongue::JavaScript => self.trial(choices, place),
            8 if place.in_try => {
                let throw =
                    if self.tongue == Tongue::Go { "panic(\"no\")" } else { "throw new Error(\"no\")" };
                self.guarded(choices, indent, throw);
            }
            9 => self.guarded(choices, indent, &format!("return {target}")),
            10 if place.in_loop => {
                let word = choices.one_of(&["continue", "break"]);
                self.guarded(choices, indent, word);
            }
            _ => {
                let value = choices.one_of(&["(a + 1) % 97", "(b * 3) % 97", "(a - b) % 97", "(c + b) % 97"]);
                self.say(indent, &format!("{target} = {value}"));
            }
        }
    }

    fn counted(&mut self, choices: &mut Choices, place: Place) {
        let (counter, n) = (format!("w{}", self.n_counters), choices.pick(4));
        self.n_counters += 1;
        self.say(place.indent(), &self.tongue.counter(&counter));
        self.head(place.indent(), &self.tongue.head_of_while(&counter, n));
        self.say(place.indent() + 1, &format!("{counter} += 1"));
        self.block(choices, Place { in_loop: true, ..place.inner() });
        self.line(place.indent(), "}");
    }

    fn call(&mut self, choices: &mut Choices, indent: usize, target: &str) {
        let (first, second) = (choices.pick(self.n_functions), choices.pick(self.n_functions));
        match choices.pick(if self.has_threads { 4 } else { 3 }) {
            3 => self.say(indent, &format!("{target} = in_thread(f{first}, a, b, c)")),
            0 => self.say(indent, &format!("{target} = f{first}(a, b, c)")),
            1 => self.say(indent, &format!("{target} = f{first}(f{second}(b, c, a), a, b)")),
            _ => {
                self.head(indent, &format!("{target} = f{first}("));
                self.line(indent + 1, &format!("b,\nf{second}(a, c, b),\nc,"));
                // C and C alone knows no comma there.
                if self.tongue == Tongue::C {
                    let end = self.written.text.trim_end().len() - 1;
                    self.written.text.truncate(end);
                    self.written.text.push('\n');
                }
                self.line(indent, &format!("){}", self.tongue.end()));
            }
        }
    }

    fn trial(&mut self, choices: &mut Choices, place: Place) {
        self.line(place.indent(), "try {");
        self.block(choices, Place { in_try: true, ..place.inner() });
        self.line(place.indent(), "} catch (error) {");
        self.say(place.indent() + 1, "say(error.message, c)");
        self.line(place.indent(), "}");
    }

    /// One statement under a condition.
    fn guarded(&mut self, choices: &mut Choices, indent: usize, statement: &str) {
        self.head(indent, &self.tongue.head_of_if(condition(choices)));
        self.say(indent + 1, statement);
        self.line(indent, "}");
    }
}

fn condition(choices: &mut Choices) -> &'static str {
    choices.one_of(&["a > 3", "b % 2 == 0", "a == b", "c > a", "c == c"])
}
