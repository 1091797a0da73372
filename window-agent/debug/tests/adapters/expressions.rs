//! Expressions of Java are worked out as Java does: each is compiled into the program, which prints its own value.
//! And where breakpoints stop that are in classes in classes.

use baton_agent_debug::Debugger;
use baton_agent_debug::adapters::wish::{Launch, Wish};
use baton_agent_debug::types::{Evaluate, Resume, SetBreakpoint, StopEvent, Waited};

use crate::programs::{PATIENCE, Program, debugger, wait_for};
use crate::quirks::{at, printed, start_to_stop};
use crate::values::java;

const EXPRESSIONS: &[&str] = &[
    // What is not chosen is not worked out.
    "none != null && none.isEmpty()",
    "none == null || none.isEmpty()",
    "none == null ? \"nobody\" : none.trim()",
    "count > 3 ? count > 5 ? \"large\" : \"middle\" : fails()",
    "names != null && names.size() == 2 && !names.get(0).startsWith(\"x\")",
    "!(count > 2 && count < 5) || fails() > 0",
    // Numbers.
    "2 + 3 * 4 - 10 / 4 % 2",
    "(2 + 3) * 4",
    "10 - 3 - 2",
    "-7 / 2",
    "-7 % 3",
    "-7 >> 1",
    "-7 >>> 28",
    "count << 33",
    "(long) count << 40",
    "~count & 0xFF",
    "count | 8 ^ 1",
    "0b101 + 017 + 1_000",
    "2147483647 + 1",
    "-2147483648",
    "-9223372036854775808L",
    "0xFFFFFFFF",
    "-7 >>> 60L",
    "-7L >>> 60",
    "3 << -1",
    "-2147483648 / -1",
    "2147483647 * 2147483647",
    "9223372036854775807L + 1",
    "1.1f % 0.3f",
    "16777216f + 1",
    "0.1f * 3 / 7 - 1e-9f",
    "1.1f * 3.0",
    "1 / 2.0",
    "1.0f / 3",
    "0.1 + 0.2",
    "1e3 + .5 + 2. + 5d",
    "(int) 3.99 + (int) -3.99",
    "(byte) 300",
    "(short) 70000 + (char) 98",
    "(double) count / 4",
    "1 / 0.0 > 1e300",
    "Double.NaN == Double.NaN",
    "0.0 == -0.0",
    // What is imported.
    "Date.valueOf(\"2020-02-03\").toString()",
    "String.format(\"%s\", Date.valueOf(\"2020-02-03\").before(new Date(0L)))",
    // Letters and texts.
    "letter == 97",
    "letter + 1",
    "(char) (letter + 1)",
    "letter + \"!\"",
    "letter >= 'a' && letter <= 'z'",
    "'\\n' + 0",
    "'\\u0041' + \"\\101\\t\\\\\"",
    "2 + 3 + \"x\" + 2 + 3",
    "null + \"x\"",
    "\"\" + 1.0f + 2.5 + 'c' + true + null",
    "\"item: \" + item",
    "\"abc\".substring(1).length()",
    "\"a,b\".split(\",\")[1]",
    "name == \"shop\"",
    "name.equals(\"shop\")",
    "new_name == \"shop\"",
    // Boxes.
    "numbers.contains(3)",
    "numbers.indexOf(2) + numbers.get(0)",
    "numbers.get(0) == 1",
    "prices.get(2)",
    "prices.getOrDefault(9, \"no\")",
    "prices.containsKey(count)",
    "Integer.valueOf(1000) == Integer.valueOf(1000)",
    "Integer.valueOf(1000).equals(1000)",
    "is_open ? 1 : 2",
    "(int) boxed + 1",
    "boxed * 2 == 10",
    "(Object) count instanceof Integer",
    // Methods of one name.
    "item.kind(1)",
    "item.kind(1L)",
    "item.kind(letter)",
    "item.kind(\"x\")",
    "item.kind(1.5)",
    "item.kind(1, 2, 3)",
    "item.kind()",
    "item.join(\"more: \", 1, null, \"x\")",
    "item.join(\"more: \")",
    "item.sides() + item.price",
    "Math.max(count, 10)",
    "Math.max(1, 2.5)",
    "Math.abs(-count)",
    "String.valueOf(count) + String.valueOf(letter) + String.valueOf(true)",
    "String.join(\"-\", names)",
    "String.format(\"%d %s %.1f\", count, letter, 2.0)",
    "Objects.equals(none, null)",
    "Integer.parseInt(\"12\") % 5",
    // Names.
    "sold + own + this.own + Program.this.sold",
    "twice(count) + Program.LIMIT - LIMIT",
    "Integer.MAX_VALUE + 1",
    "Long.MAX_VALUE",
    "Color.RED",
    "Color.valueOf(\"GREEN\").ordinal()",
    "Program.Color.RED.name().toLowerCase()",
    "java.util.Objects.hash(1, 2)",
    "Shape.SIDES + Shape.of(3)",
    "Item.made",
    // Classes that the program has not loaded, and new objects.
    "Unseen.COUNT + Unseen.next()",
    "Unseen.Deep.NAME",
    "Stream.of(3, 1, 2).sorted().findFirst().get()",
    "IntStream.range(0, count).sum()",
    "LocalDate.of(2024, 2, 29).plusYears(1)",
    "java.util.zip.Adler32.class.getSimpleName()",
    "new StringBuilder(\"ab\").append(count).reverse().toString()",
    "new ArrayList<>(names).size() + new int_list().size()",
    "new Fresh(2, \"a\", \"b\").said + new Fresh().said",
    "new java.math.BigInteger(\"9223372036854775807\").add(BigInteger.ONE)",
    "count > 100 ? new Fresh(fails()).said : \"not made\"",
    "((Item) shape).price",
    "((List<String>) names).size()",
    "shape instanceof Item && shape instanceof Shape",
    "names instanceof java.util.Collection",
    "shape instanceof Program.Item",
    "grid[1][0] + grid.length + ints[ints.length - 1]",
    "grid[numbers.get(0)][0]",
    "names.toArray().length",
    "true ^ false & true | false",
    "count > 2 == true",
    // What changes something; each is the same when it is done again.
    "a = b = 4",
    "(a = 3) + a",
    "a <<= 33",
    "a >>>= 1",
    "a = -7",
    "a /= 2",
    "a %= 2",
    "a ^= 5",
    "--a",
    "-a-- - a",
    "a++ + ++a",
    "small = 100",
    "small += 100",
    "mark = 98",
    "mark += 1",
    "mark++",
    "mark",
    "wide = count",
    "wide <<= 40",
    "wide -= 1.5",
    "ratio = 1",
    "ratio /= 4",
    "flag = count > 3",
    "flag &= false",
    "flag ? (a = 1) : (a = 2)",
    "false && (a = 9) > 0",
    "a",
    "box = 5",
    "box++",
    "box += 2",
    "text = null",
    "text += count",
    "text = \"x\"",
    "text == \"x\"",
    "text += 'c'",
    "some[0] = 2",
    "some[0]++ + some[0]",
    "some[a = 1] = some[0] = 9",
    "some[1] + some[0]",
    "table[0][0] = 1",
    "table[0][0] -= 4",
    "(table[0] = new int[] {7, 8})[1]",
    "kept = 2",
    "this.kept += 3",
    "Program.this.other = 5",
    "other--",
    "tally = 3",
    "Program.tally *= 2",
    "(any = item) == item",
    "any = null",
    "(copy = new ArrayList<>(names)).size()",
    "item.kind(a = 1)",
    "super.hashCode() == this.hashCode()",
    "super.equals(names)",
    // New arrays.
    "new int[2].length",
    "new int[2][3][1].length",
    "(new int[2][3])[1].length",
    "new int[3][].length",
    "new int[] {1, 2}[1]",
    "new int[][] {{1}, {2, 3}}[1][1]",
    "new int[] {1,}.length + new int[] {}.length",
    "new char[] {'a', 98}[1]",
    "new long[] {1}[0] + 1",
    "new String[] {\"a\", null}.length",
    "new Object[] {1, \"x\"}[0]",
    "new Shape[] {item}[0].sides()",
    "Arrays.toString(new double[] {1, count})",
    "Arrays.deepToString(new int[2][2])",
    "Arrays.asList(new Integer[] {1, 2}).size()",
];

/// What is said when it cannot be done.
const ERRORS: &[(&str, &str)] = &[
    ("nothing", "cannot find `nothing`: no variable here, and no class, has this name"),
    (
        "Nowhere.of(1)",
        "cannot find `Nowhere`: no variable here, and no class, has this name; write a class with its package",
    ),
    ("new Nowhere()", "cannot find `Nowhere`: no class has this name; write a class with its package"),
    ("Unseen.NONE", "Program$Unseen has no static `NONE`"),
    ("Broken.VALUE", "cannot load Program$Broken: java.lang.ExceptionInInitializerError"),
    ("item.nothing", "Program$Item has no field `nothing`"),
    ("item.nothing()", "Program$Item has no method `nothing`"),
    ("none.length()", "`length()` of null"),
    ("item.join(1)", "no method `join` of Program$Item takes (int)"),
    ("item.fail()", "fail() threw java.lang.IllegalStateException: no"),
    ("count / 0", "division by zero"),
    ("1 << 2.0", "`<<` needs whole numbers"),
    ("1.5 & 1", "`&` needs whole numbers"),
    ("count ? 1 : 2", "expected true or false, found a value of type int"),
    ("count + 1 = 3", "`=` can change a variable, a field or an element, and nothing else"),
    ("twice(1)++", "`++` can change a variable, a field or an element, and nothing else"),
    ("count = 1.5", "a value of type double cannot be assigned to what is of type int"),
    ("count = none", "null cannot be assigned to what is of type int"),
    ("small = 300", "a value of type int cannot be assigned to what is of type byte"),
    ("name = count", "a value of type int cannot be assigned to what is of type java.lang.String"),
    (
        "shape = names",
        "a value of type java.util.ArrayList cannot be assigned to what is of type Program$Shape",
    ),
    ("item.price = 6", "`price` is final"),
    ("LIMIT++", "`LIMIT` is final"),
    ("ints[3] = 1", "index 3 is out of bounds"),
    ("names.forEach(one -> one)", "a lambda is not supported in an expression"),
    ("names.forEach(names::add)", "a lambda is not supported in an expression"),
    ("count +", "unexpected `the end`"),
    ("(count", "expected `)`, found `the end`"),
    ("(Item) names", "a java.util.ArrayList cannot be cast to Item"),
    ("ints[3]", "index 3 is out of bounds: the array has 3"),
    ("new Item(1)", "no constructor of Program$Item takes (int)"),
    ("new Shape()", "`new` cannot make a Program$Shape"),
    ("new Color()", "`new` cannot make a Program$Color"),
    ("new Fresh(-1)", "new Program$Fresh() threw java.lang.IllegalArgumentException: -1"),
    ("new int[-1]", "newInstance() threw java.lang.NegativeArraySizeException: -1"),
    ("new int[] {1.5}", "a value of type double cannot be assigned to what is of type int"),
    ("super.own", "java.lang.Object has no field `own`"),
];

/// Says what each expression is, where `// said` stands.
const PROGRAM: &str = r#"import java.math.BigInteger;
import java.sql.Date;
import java.time.LocalDate;
import java.util.*;
import java.util.stream.*;
import java.util.zip.*;
public class Program {
  static final int LIMIT = Integer.parseInt("7");
  enum Color { RED, GREEN }
  interface Shape {
    int SIDES = Integer.parseInt("4");
    default int sides() { return SIDES; }
    static int of(int n) { return 2 * n; }
  }
  static class Item implements Shape {
    static int made;
    final int price = 5;
    Item() { made++; }
    String kind(Object one) { return "object"; }
    String kind(String one) { return "text"; }
    String kind(long one) { return "long"; }
    String kind(int... all) { return all.length + " ints"; }
    String join(String first, Object... more) { return first + more.length; }
    String fail() { throw new IllegalStateException("no"); }
    public String toString() { return "Item of " + price; }
  }
  static class Unseen {
    static final int COUNT = Integer.parseInt("11");
    static int next() { return COUNT + 1; }
    static class Deep { static final String NAME = "deep".trim(); }
  }
  static class Broken { static final int VALUE = Integer.parseInt("x"); }
  static class int_list extends ArrayList<Integer> {}
  static class Base { String said = "none"; Base() {} Base(String only) {} }
  static class Fresh extends Base {
    Fresh() {}
    Fresh(int n, String... more) {
      if (n < 0) throw new IllegalArgumentException("" + n);
      said = n + String.join("", more);
    }
  }
  static int tally;
  Adler32 sum;
  int sold = 3;
  int other;
  int twice(int n) { return 2 * n; }
  static int thrice(int n) {
    Late.calls++;
    return 3 * n; // called by expressions alone
  }
  /** Is loaded by a condition. */
  static class Late { static int calls; }
  static int fails() { throw new IllegalStateException("worked out"); }
  static void say(int n, Object value) { System.out.println(n + " " + value); }
  class Inner {
    int own = 4;
    int kept;
    void run(int count, char letter, List<String> names, List<Integer> numbers) {
      String none = null;
      String name = "shop";
      String new_name = new String("shop");
      Integer boxed = 5;
      Boolean is_open = false;
      Item item = new Item();
      Shape shape = item;
      int[] ints = {1, 2, 3};
      int[][] grid = {{1}, {2, 3}};
      Map<Integer, String> prices = new HashMap<>(Map.of(2, "two"));
      int a = 0, b = 0;
      byte small = 0;
      char mark = 'm';
      long wide = 0;
      double ratio = 0;
      boolean flag = false;
      String text = null;
      Integer box = 0;
      int[] some = {0, 0};
      int[][] table = {{0}};
      Shape any = null;
      List<String> copy = null;
      int sides = Shape.SIDES + Color.values().length; // here
      // said
      for (int n = 0; n < 5; n++) {
        sold += n; // by a condition
      }
    }
  }
  public static void main(String[] args) {
    new Program().new Inner().run(6, 'a', new ArrayList<>(List.of("a", "b")), List.of(1, 2, 3));
    System.out.println("the end"); // by one that fails
    System.out.println(args.length); // by one that changes something
  }
}
"#;

fn program() -> Program {
    let said: String = EXPRESSIONS
        .iter()
        .enumerate()
        .map(|(n, expression)| format!("      say({n}, {expression});\n"))
        .collect();
    let text = PROGRAM.replace("      // said\n", &said);
    java(&text, "int sides = Shape.SIDES + Color.values().length; // here")
}

async fn evaluate(debugger: &Debugger, stop: &StopEvent, expression: &str) -> String {
    let frame_id = stop.call_stack[0].frame_id;
    let wish = Evaluate { expression: expression.to_owned(), frame_id, context: None };
    match debugger.evaluate(wish).await {
        Ok(value) => value.result,
        Err(error) => error.to_string(),
    }
}

async fn resume(debugger: &Debugger, stop: &StopEvent, how: Resume) -> Waited {
    debugger.resume(Some(&stop.session), stop.thread_id, how, wait_for(PATIENCE)).await.unwrap()
}

#[tokio::test]
async fn expressions_of_java_are_what_java_says() {
    let program = program();
    let line = |mark: &str| {
        let text = std::fs::read_to_string(&program.source).unwrap();
        u32::try_from(text.lines().position(|line| line.ends_with(mark)).unwrap()).unwrap() + 1
    };
    let debugger = debugger(&program);
    let stop = start_to_stop(&debugger, &program, "java").await;
    let Waited::Stopped(stop) = resume(&debugger, &stop, Resume::StepOver).await else { panic!("it steps") };
    let mut told = Vec::new();
    for expression in EXPRESSIONS {
        told.push(evaluate(&debugger, &stop, expression).await.replace('"', ""));
    }
    assert_eq!(evaluate(&debugger, &stop, "a = a + 1 ;").await, "2", "a statement");
    let imported = evaluate(&debugger, &stop, "new Adler32().getValue()").await;
    assert_eq!(imported, "1", "a class that is imported and not yet loaded");
    for (expression, why) in ERRORS {
        let told = evaluate(&debugger, &stop, expression).await;
        assert!(told.contains(why), "{expression}: {told}");
    }

    // A method that an expression calls does not stop, whatever stands in it.
    let when = |mark: &str, condition: &str| SetBreakpoint {
        condition: Some(condition.to_owned()),
        ..at(&program.source, line(mark))
    };
    debugger.set_breakpoint(at(&program.source, line("// called by expressions alone"))).await.unwrap();
    debugger
        .set_breakpoint(when("// by a condition", "thrice(n) == 9 && names.contains(\"b\")"))
        .await
        .unwrap();
    debugger.set_breakpoint(when("// by one that fails", "nobody > 1")).await.unwrap();
    debugger.set_breakpoint(when("// by one that changes something", "(args = null) == null")).await.unwrap();
    let Waited::Stopped(stop) = resume(&debugger, &stop, Resume::Continue).await else {
        panic!("its condition holds")
    };
    assert_eq!(
        (stop.line, evaluate(&debugger, &stop, "n").await.as_str()),
        (Some(line("// by a condition").into()), "3")
    );
    let Waited::Stopped(stop) = resume(&debugger, &stop, Resume::Continue).await else {
        panic!("it stops when it cannot know")
    };
    assert_eq!(stop.line, Some(line("// by one that fails").into()));
    assert_eq!(evaluate(&debugger, &stop, "thrice(6)").await, "18");
    let Waited::Stopped(stop) = resume(&debugger, &stop, Resume::Continue).await else {
        panic!("it stops when it must not do what it is told")
    };
    assert_eq!(evaluate(&debugger, &stop, "args.length").await, "1");
    let Waited::Completed(ended) = resume(&debugger, &stop, Resume::Continue).await else {
        panic!("nothing more is there")
    };

    let said = printed(&debugger, &ended.session).await;
    assert!(said.contains("the condition `nobody > 1` failed: cannot find `nobody`"), "{said}");
    assert!(said.contains("failed: a condition cannot change anything; compare with `==`"), "{said}");
    let mut wrong = Vec::new();
    for (n, (expression, told)) in EXPRESSIONS.iter().zip(&told).enumerate() {
        let truth = said.lines().find_map(|line| line.strip_prefix(&format!("{n} "))).unwrap_or_default();
        if told != truth {
            wrong.push(format!("{expression} is {truth}, and {told} is told"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A class that is loaded, or comes, is told to the adapter more than once; classes in classes are others than that of
/// the file.
#[tokio::test]
async fn a_breakpoint_of_java_stops_once_in_whichever_class_it_is() {
    const TEXT: &str = "package shop;
public class Program {
  static class Inner {
    static void run() {
      System.out.println(\"inner\"); // here
    }
  }
  public static void main(String[] args) {
    Inner.run();
    Other.run();
    Inner.run();
    System.out.println(\"end\");
  }
}
class Other {
  static void run() {
    System.out.println(\"other\");
  }
}
";
    let mut program = java(TEXT, "System.out.println(\"inner\"); // here");
    let in_package = program.source.with_file_name("shop").join("Program.java");
    std::fs::create_dir(in_package.parent().unwrap()).unwrap();
    std::fs::rename(&program.source, &in_package).unwrap();
    (program.path, program.source) = (in_package.clone(), in_package);
    for stop_on_entry in [false, true] {
        let debugger = debugger(&program);
        debugger.set_breakpoint(at(&program.source, 5)).await.unwrap();
        let launch = Launch {
            adapter: Some("java".to_owned()),
            program: program.path.clone(),
            stop_on_entry,
            ..Launch::default()
        };
        let start = debugger.configure(&Wish::Launch(launch)).await.unwrap();
        let mut waited = debugger.start(start, wait_for(PATIENCE)).await.unwrap();
        let mut lines = Vec::new();
        while let Waited::Stopped(stop) = &waited {
            lines.extend(stop.line);
            // One class is not there yet, the other is.
            let more = if stop.line == Some(5) { 17 } else { 12 };
            debugger.set_breakpoint(at(&program.source, more)).await.unwrap();
            waited = resume(&debugger, stop, Resume::Continue).await;
        }
        assert!(matches!(waited, Waited::Completed(_)), "{waited:?}");
        let at_entry: &[i64] = if stop_on_entry { &[9] } else { &[] };
        assert_eq!(lines, [at_entry, &[5, 17, 5, 12]].concat());
    }
}
