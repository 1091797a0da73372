//! CORE: hides the values of what looks like a secret by its name: variables, members in a printed value, names
//! that an expression ends with.

use baton_agent_debug::types::{StopEvent, Variable};
use baton_proto::redact::{HIDDEN, is_secret, text};

/// Hides the secrets among variables.
pub(super) fn variables(variables: &mut [Variable]) {
    for variable in variables {
        // A container shows its members in its value; those have names of their own.
        variable.value = if is_secret(&variable.name) && variable.variables_reference == 0 {
            HIDDEN.to_owned()
        } else if is_secret(&variable.name) {
            format!("{HIDDEN} ({})", variable.type_name.as_deref().unwrap_or("a container"))
        } else {
            text(&variable.value)
        };
    }
}

/// Hides the secrets in what is told with a stop.
pub(super) fn stop(stop: &mut StopEvent) {
    let own = stop.own.as_mut().map(|own| &mut own.variables);
    for scope in [Some(&mut stop.top_frame_variables), own].into_iter().flatten().flatten() {
        variables(&mut scope.variables);
    }
}

/// Hides the secrets in the value of an expression.
pub(super) fn value(expression: &str, value: &str) -> String {
    let is_name = |char: char| char.is_alphanumeric() || char == '_';
    let names = expression.split(|char| !is_name(char)).filter(|name| !name.is_empty());
    // An expression that names a secret anywhere may print it: `str(password)`, `config["token"]`.
    if names.into_iter().any(is_secret) { HIDDEN.to_owned() } else { text(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_that_names_a_secret_is_hidden() {
        assert_eq!(value("config['db_password']", "'x'"), "[redacted]");
        assert_eq!(value("str(token)", "'x'"), "[redacted]");
        assert_eq!(value("len(items)", "3"), "3");
        assert_eq!(value("config", "{'pwd': 'x'}"), "{'pwd': [redacted]}");
    }
}
