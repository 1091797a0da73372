//! Programs of loops, calls, exceptions and threads, made of a stream of numbers: a shorter stream, and smaller numbers, make a
//! simpler program, so that a failing one shrinks by itself.

use std::fmt::Write;

use super::choices::Choices;

/// Deepest nesting of blocks.
const MAX_DEPTH: usize = 3;

/// Calls a function in a thread of its own, and waits for it: of two threads one runs at a time.
const IN_THREAD: &str = "\
from concurrent.futures import ThreadPoolExecutor
def safe(f, a, b):
    try:
        return f(a, b)
    except ValueError:
        return 0
def in_thread(f, a, b):
    with ThreadPoolExecutor(1) as pool:
        c = pool.submit(safe, f, a, b).result()
    return c
";

/// A Python program that always ends.
pub(crate) fn python(choices: &mut Choices) -> String {
    let mut writer = Writer { text: String::new(), n_functions: 0, n_counters: 0, has_threads: false };
    writer.line(0, "a = 1\nb = 2\nc = 3");
    if choices.pick(3) == 2 {
        writer.has_threads = true;
        writer.line(0, IN_THREAD);
    }
    for _ in 0..choices.pick(4) {
        writer.function(choices);
    }
    writer.block(choices, &Place { depth: 0, in_function: false, in_loop: false });
    writer.line(0, "print(\"end\", a, b, c)");
    writer.text
}

struct Place {
    depth: usize,
    in_function: bool,
    in_loop: bool,
}

impl Place {
    fn inner(&self) -> Self {
        Self { depth: self.depth + 1, ..*self }
    }

    fn indent(&self) -> usize {
        self.depth + usize::from(self.in_function)
    }
}

struct Writer {
    text: String,
    /// Each calls those before it.
    n_functions: usize,
    n_counters: usize,
    /// Some calls are made in a thread.
    has_threads: bool,
}

impl Writer {
    fn line(&mut self, indent: usize, lines: &str) {
        for line in lines.lines() {
            writeln!(self.text, "{:1$}{line}", "", indent * 4).unwrap();
        }
    }

    fn function(&mut self, choices: &mut Choices) {
        let name = format!("f{}", self.n_functions);
        match choices.pick(4) {
            0 | 1 => {
                self.line(0, &format!("def {name}(a, b):"));
                self.line(1, "c = a");
                self.block(choices, &Place { depth: 0, in_function: true, in_loop: false });
                self.line(1, "return (a + b + c) % 97");
            }
            2 => {
                self.line(0, &format!("def {name}(a, b):"));
                self.line(1, "if a <= 0:\n    return b");
                self.line(1, &format!("c = {name}(a // 2 - 1, b)"));
                self.line(1, "return c + 1");
            }
            _ => {
                self.line(0, &format!("def {name}(a, b):"));
                self.line(1, "def inner(c):\n    a = c + b\n    return a");
                self.line(1, "c = inner(a)");
                self.block(choices, &Place { depth: 0, in_function: true, in_loop: false });
                self.line(1, "return inner(c) % 97");
            }
        }
        self.n_functions += 1;
    }

    fn block(&mut self, choices: &mut Choices, place: &Place) {
        for _ in 0..=choices.pick(4) {
            self.statement(choices, place);
        }
    }

    fn statement(&mut self, choices: &mut Choices, place: &Place) {
        let indent = place.indent();
        let target = choices.one_of(&["a", "b", "c"]);
        let nests = place.depth < MAX_DEPTH;
        match choices.pick(13) {
            1 => self.line(indent, &format!("print(\"say\", {target})")),
            2 if nests => {
                let condition = condition(choices);
                self.line(indent, &format!("if {condition}:"));
                self.block(choices, &place.inner());
                if choices.pick(2) == 1 {
                    self.line(indent, "else:");
                    self.block(choices, &place.inner());
                }
            }
            3 if nests => {
                let n = choices.pick(4);
                self.line(indent, &format!("for i{} in range({n}):", place.depth));
                self.block(choices, &Place { in_loop: true, ..place.inner() });
            }
            4 if nests => {
                let (counter, n) = (format!("w{}", self.n_counters), choices.pick(4));
                self.n_counters += 1;
                self.line(indent, &format!("{counter} = 0\nwhile {counter} < {n}:\n    {counter} += 1"));
                self.block(choices, &Place { in_loop: true, ..place.inner() });
            }
            5 | 6 if self.n_functions > 0 => {
                let (first, second) = (choices.pick(self.n_functions), choices.pick(self.n_functions));
                let call = match choices.pick(4) {
                    3 if self.has_threads => format!("{target} = in_thread(f{first}, a, b)"),
                    0 => format!("{target} = f{first}(a, b)"),
                    1 => format!("{target} = f{first}(f{second}(b, c), a)"),
                    _ => format!("{target} = f{first}(\n    b,\n    f{second}(a, c),\n)"),
                };
                self.line(indent, &call);
            }
            7 if nests => {
                self.line(indent, "try:");
                self.block(choices, &place.inner());
                match choices.pick(3) {
                    0 => self.line(indent, "except ValueError:\n    c = 0"),
                    1 => self.line(
                        indent,
                        "except ValueError as error:\n    print(\"caught\", error)\nfinally:\n    b = 5",
                    ),
                    _ => self.line(indent, "finally:\n    print(\"finally\")"),
                }
            }
            8 => {
                let condition = condition(choices);
                self.line(indent, &format!("if {condition}:\n    raise ValueError(f\"no {{{target}}}\")"));
            }
            9 if place.in_function => {
                let condition = condition(choices);
                self.line(indent, &format!("if {condition}:\n    return {target}"));
            }
            10 => self.line(indent, "print(\n    \"lines\",\n    a,\n    b,\n)"),
            11 => self.line(
                indent,
                &format!("{target} = sum(x + 1 for x in [a, b]) % 97\nd = [x for x in range(3)]"),
            ),
            12 if place.in_loop => {
                let (condition, word) = (condition(choices), choices.one_of(&["continue", "break"]));
                self.line(indent, &format!("if {condition}:\n    {word}"));
            }
            _ => {
                let value = choices.one_of(&["a + 1", "(b * 3) % 97", "a - b", "c + b"]);
                self.line(indent, &format!("{target} = {value}"));
            }
        }
    }
}

fn condition(choices: &mut Choices) -> &'static str {
    choices.one_of(&["a > 3", "b % 2 == 0", "a == b", "c > a", "True"])
}
