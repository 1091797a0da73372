//! The setting `programs`: debug adapters and language servers that the user has somewhere of their own.

use std::path::Path;

use baton_daemon::configuration::nearest_of;
use baton_link::home::Home;
use serde::Deserialize;

use super::adapters;
use super::settings::stored_settings;

/// One line of what is listed.
#[derive(Deserialize)]
struct Listed {
    name: String,
}

/// What is wrong with these names and paths, a sentence each.
pub(super) async fn problems(programs: impl Iterator<Item = (&String, &String)>) -> Vec<String> {
    let programs: Vec<_> = programs.collect();
    if programs.is_empty() {
        return Vec::new();
    }
    let mut known = Vec::new();
    for verb in ["adapters", "servers"] {
        let listed = serde_json::from_value::<Vec<Listed>>(adapters::listed(verb).await);
        // Without it nobody knows the names, which is told elsewhere.
        known.extend(listed.unwrap_or_default().into_iter().map(|listed| listed.name));
    }
    programs.into_iter().filter_map(|(name, path)| problem(name, path, &known)).collect()
}

fn problem(name: &str, path: &str, known: &[String]) -> Option<String> {
    if name == "debugpy" {
        let hint =
            "its program is the Python that runs the code: set BATON_PYTHON, or `python` in a configuration";
        return Some(format!("debugpy cannot be named; {hint}"));
    }
    if !known.is_empty() && !known.iter().any(|known| known == name) {
        let hint = match nearest_of(name, known) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None => "see `baton adapters list` and `baton servers list`".to_owned(),
        };
        return Some(format!("there is no debug adapter or language server '{name}'; {hint}"));
    }
    (!Path::new(path).exists()).then(|| format!("{path}, the program of {name}, does not exist"))
}

/// What tells the agent's program where they are, as it is told by its own window otherwise. What the environment says
/// itself counts more.
pub(super) fn variables(verb: &str) -> Vec<(String, String)> {
    let Ok(home) = Home::from_env() else { return Vec::new() };
    let prefix = if verb == "adapters" { "BATON_ADAPTER_" } else { "BATON_SERVER_" };
    let variable = |name: &str| format!("{prefix}{}", name.to_uppercase().replace('-', "_"));
    let programs = stored_settings(&home).programs.into_iter();
    let named = programs.map(|(name, path)| (variable(&name), path));
    named.filter(|(variable, _)| std::env::var_os(variable).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_program_is_one_sentence() {
        let known = ["lldb-dap", "ty"].map(str::to_owned);
        assert_eq!(problem("ty", "/", &known), None);
        let told = |name, path| problem(name, path, &known).unwrap();
        assert!(told("lldb_dap", "/").ends_with("did you mean 'lldb-dap'?"));
        assert!(told("vim", "/").ends_with("see `baton adapters list` and `baton servers list`"));
        assert_eq!(told("ty", "/no/such"), "/no/such, the program of ty, does not exist");
        assert!(told("debugpy", "/").contains("BATON_PYTHON"));
        assert_eq!(problem("vim", "/", &[]), None, "nobody knows the names");
    }
}
