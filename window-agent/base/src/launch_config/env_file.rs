//! CORE: what stands in the file that a configuration's `envFile` names.

/// Longest value: Linux takes none that is longer. A few lines that each double the one before are longer soon.
const MAX_VALUE: usize = 128 * 1024;

/// Names and values, in order; lines that are neither are left out, and those whose value no
/// process can be given.
///
/// As the Python extension reads them: `NAME=value`, `export NAME=value`, `#` comments, single quotes as they
/// are, double quotes with `\n`, and `${OTHER}` for an earlier name or the environment.
pub fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim();
        if name.starts_with('#') || !is_name(name) {
            continue;
        }
        let lookup = |wanted: &str| {
            let earlier = pairs.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
            earlier.or_else(|| environment(wanted))
        };
        if let Some(value) = value_of(value.trim(), &lookup) {
            pairs.push((name.to_owned(), value));
        }
    }
    pairs
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '.' | '-'))
}

fn value_of(value: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    if let Some(inner) = quoted(value, '\'') {
        return can_be_set(inner).then(|| inner.to_owned());
    }
    if let Some(inner) = quoted(value, '"') {
        return expand(&inner.replace("\\n", "\n").replace("\\\"", "\""), lookup);
    }
    let value = value.split(" #").next().unwrap_or_default().trim_end();
    expand(value, lookup)
}

fn quoted(value: &str, quote: char) -> Option<&str> {
    let inner = value.strip_prefix(quote)?;
    let end = inner.rfind(quote)?;
    let rest = inner[end + 1..].trim();
    (rest.is_empty() || rest.starts_with('#')).then_some(&inner[..end])
}

fn can_be_set(value: &str) -> bool {
    value.len() <= MAX_VALUE && !value.contains('\0')
}

/// None when it cannot be set; what grows is given up early.
fn expand(value: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut expanded = String::new();
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let Some(len) = rest[start..].find('}') else { break };
        expanded.push_str(&rest[..start]);
        expanded.push_str(&lookup(&rest[start + 2..start + len]).unwrap_or_default());
        rest = &rest[start + len + 1..];
        can_be_set(&expanded).then_some(())?;
    }
    expanded.push_str(rest);
    can_be_set(&expanded).then_some(expanded)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_usual_forms_are_read() {
        let text = "\u{feff}# comment\nA=1\nexport B = two words  # why\nC='${A} # raw'\nD=\"x\\ny ${A}\" # c\nE=${B}/${HOME}${NO}\n\nnonsense\n=x\nF=\n";
        let environment = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let shown: Vec<String> =
            parse(text, &environment).iter().map(|(name, value)| format!("{name}={value:?}\n")).collect();
        expect![[r#"
            A="1"
            B="two words"
            C="${A} # raw"
            D="x\ny 1"
            E="two words//h"
            F=""
        "#]]
        .assert_eq(&shown.concat());
    }

    #[test]
    fn what_no_process_can_be_given_is_left_out() {
        let doubled: String = (1..40).map(|n| format!("A{n}=${{A{}}}${{A{}}}\n", n - 1, n - 1)).collect();
        let pairs = parse(&format!("A0=xxxxxxxx\n{doubled}Z=\0\nY='\0'\nB=1\n"), &|_| None);
        assert!(pairs.iter().all(|(_, value)| value.len() <= MAX_VALUE));
        let names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"A14") && !names.contains(&"A15"), "{names:?}");
        assert!(names.contains(&"B") && !names.contains(&"Z") && !names.contains(&"Y"), "{names:?}");
    }
}
