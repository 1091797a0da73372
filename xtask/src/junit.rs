//! Reports of test runners, in JUnit's form: nextest and Node's runner both write it.

use std::path::Path;

use anyhow::{Context as _, Result};
use roxmltree::{Document, Node};

use crate::report::{Failure, Outcome};

/// A test as the report tells it.
#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    /// What holds it: of nextest the test binary.
    pub(crate) home: String,
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) outcome: Outcome,
}

/// All tests of the report at `path`.
pub(crate) fn read(path: &Path) -> Result<Vec<Told>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    parse(&text).with_context(|| format!("{} is not a report", path.display()))
}

fn parse(text: &str) -> Result<Vec<Told>> {
    let document = Document::parse(text)?;
    Ok(document.descendants().filter(|node| node.has_tag_name("testcase")).map(of_node).collect())
}

fn of_node(node: Node<'_, '_>) -> Told {
    let attribute = |name| node.attribute(name).unwrap_or_default().to_owned();
    let child = |name: &str| node.children().find(|child| child.has_tag_name(name));
    let outcome = match child("failure").or_else(|| child("error")) {
        Some(failure) => Outcome::Failed(Failure::new(words(node, failure))),
        None if child("skipped").is_some() => Outcome::Skipped,
        None => Outcome::Passed,
    };
    Told {
        home: attribute("classname"),
        name: attribute("name"),
        seconds: attribute("time").parse().unwrap_or_default(),
        outcome,
    }
}

/// What the test printed, and what its runner says of it.
fn words(case: Node<'_, '_>, failure: Node<'_, '_>) -> String {
    let printed =
        case.children().filter(|child| child.has_tag_name("system-out") || child.has_tag_name("system-err"));
    // Of one that took too long nothing but its kind is told.
    let told = failure.attribute("message").or_else(|| failure.attribute("type"));
    let parts = [told, failure.text()].into_iter().flatten();
    let parts = parts.chain(printed.filter_map(|child| child.text()));
    parts.map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_runners_are_read() {
        let nextest = r#"<testsuites><testsuite name="a::it"><testcase name="x::y" classname="a::it" time="1.5">
            <failure message="thread 'x::y' panicked at src/lib.rs:1:1" type="test failure">left and right</failure>
            <system-out>seen</system-out></testcase></testsuite></testsuites>"#;
        let told = parse(nextest).unwrap();
        assert_eq!((told[0].home.as_str(), told[0].name.as_str(), told[0].seconds), ("a::it", "x::y", 1.5));
        let Outcome::Failed(failure) = &told[0].outcome else { panic!("{told:?}") };
        assert!(failure.text.starts_with("thread 'x::y' panicked") && failure.text.ends_with("seen"));
        let node = r#"<?xml version="1.0"?><testsuites><testcase name="a" time="0.1" classname="test"/>
            <testsuite name="s"><testcase name="b" time="0.1" classname="test"><skipped message="no"/></testcase>
            </testsuite></testsuites>"#;
        let told = parse(node).unwrap();
        assert_eq!((&told[0].outcome, &told[1].outcome), (&Outcome::Passed, &Outcome::Skipped));
    }
}
