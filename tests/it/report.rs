//! `baton report`: what is in it, and what never is (T20). It is unpacked by the system's own tar.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use baton_tests::world::{WindowOptions, World};
use serde_json::Value;

use super::audit::{CANARY, holds, make_calls, secrets, write_project};

/// Its files, by their names without the folder.
fn unpack(world: &World, report: &Path) -> BTreeMap<String, Vec<u8>> {
    let folder = world.scratch().join("unpacked");
    std::fs::create_dir(&folder).expect("a temporary folder");
    let mut tar = world.command("tar");
    let unpacked = tar.arg("-xzf").arg(report).arg("-C").arg(&folder).output().expect("tar is there");
    assert!(unpacked.status.success(), "{unpacked:?}");
    let inner = std::fs::read_dir(&folder).expect("it was made").flatten().next().expect("one folder").path();
    let mut found = BTreeMap::new();
    for folder in [inner.clone(), inner.join("logs")] {
        for entry in
            std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_file())
        {
            let name = entry.path().strip_prefix(&inner).expect("it lies there").display().to_string();
            found.insert(name, std::fs::read(entry.path()).expect("it was unpacked"));
        }
    }
    found
}

fn json_of(parts: &BTreeMap<String, Vec<u8>>, name: &str) -> Value {
    let bytes = parts.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", parts.keys()));
    serde_json::from_slice(bytes).expect("it is JSON")
}

#[test]
fn t20_a_report_holds_no_secret_and_no_content() {
    // Messages are in the log, because they were asked for.
    let world = World::new().with_env("BATON_LOG", "trace,baton_bodies=trace");
    let mut world = world.with_env("A_SECRET_OF_THE_USER", CANARY);
    let folder = world.scratch().join("projects/canary");
    write_project(&folder);
    world.window_with("canary", WindowOptions { folder: Some(folder), ..WindowOptions::default() });
    world.await_live("canary");
    let token = world.token();
    // Nobody listens on the discard port.
    world.baton_ok(&["settings", "error_dsn", &format!("http://{CANARY}@127.0.0.1:9/1")]);
    make_calls(&world, &token);
    let entries = std::fs::read_dir(world.home().join("logs")).expect("there are logs").flatten();
    let logged: Vec<String> =
        entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect();
    assert!(logged.iter().any(|text| text.contains(CANARY)), "the log holds what the report must not");
    let report = world.scratch().join("report.tar.gz");
    world.baton_ok(&["report", "--output", report.to_str().expect("a path of text")]);
    let parts = unpack(&world, &report);
    let all_secrets = secrets(&world, &[token]);
    for (name, bytes) in &parts {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains(CANARY), "{name}: {:?}", text.lines().find(|line| line.contains(CANARY)));
        let held = all_secrets.iter().find(|(_, secret)| holds(bytes, secret));
        assert!(held.is_none(), "{:?} is in {name}", held.map(|(what, _)| what));
    }
    assert_eq!(json_of(&parts, "settings.json")["error_dsn"], "[dsn]");
    assert_eq!(json_of(&parts, "environment.json")["A_SECRET_OF_THE_USER"], "(set)");
    let logs: Vec<&String> = parts.keys().filter(|name| name.starts_with("logs/")).collect();
    assert!(logs.len() >= 2 && logs.iter().all(|name| parts[*name].len() > 100), "{logs:?}");
}

#[test]
fn a_report_tells_what_runs_and_what_is_wrong() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.baton_ok(&["settings", "routing", "any"]);
    let told = world.baton(&["report", "--output", world.scratch().to_str().expect("a path of text")]);
    let report = Path::new(told.out.trim());
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.err.contains("Read it before you send it."), "{told:?}");
    let name = report.file_name().and_then(|name| name.to_str()).expect("it has a name");
    assert!(name.starts_with("baton-report-20") && name.ends_with(".tar.gz"), "{name}");
    let mode = std::fs::metadata(report).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let parts = unpack(&world, report);
    let status = json_of(&parts, "status.json");
    assert_eq!((&status["running"], &status["windows"][0]["name"]), (&true.into(), &"shop".into()));
    assert_eq!(json_of(&parts, "settings.json")["routing"], "any");
    let metrics = String::from_utf8_lossy(&parts["metrics.txt"]);
    assert!(metrics.contains("\nbaton_calls_running 0\n"), "{metrics}");
    let found = json_of(&parts, "doctor.json");
    assert!(found.as_array().expect("a list").iter().any(|finding| finding["check"] == "window"), "{found}");
    let adapters = json_of(&parts, "adapters.json");
    assert!(adapters.to_string().contains("debugpy"), "{adapters}");
    let files = json_of(&parts, "state-folder.json").to_string();
    assert!(files.contains("state.json") && files.contains("100600"), "{files}");
    assert!(json_of(&parts, "system.json")["kernel"].is_string());
    let log = String::from_utf8_lossy(
        &parts[parts.keys().find(|name| name.starts_with("logs/baton")).expect("a log")],
    );
    assert!(log.contains("the coordinator is ready") || log.contains("shop"), "{log}");
    let home = world.scratch().join("user").display().to_string();
    assert!(parts.values().all(|bytes| !holds(bytes, home.as_bytes())), "the home folder is written as ~");
    // An earlier one is never written over.
    let again = world.baton(&["report", "--output", report.to_str().expect("a path of text")]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("File exists") && again.err.contains("hint: write it elsewhere"), "{again:?}");
}

#[test]
fn a_report_can_be_written_when_nothing_works() {
    let world = World::new();
    let report = world.scratch().join("first.tar.gz");
    world.baton_ok(&["report", "-o", report.to_str().expect("a path of text")]);
    let parts = unpack(&world, &report);
    assert_eq!(json_of(&parts, "status.json")["error"], "the coordinator is not running");
    assert!(!world.home().join("coordinator.lock").exists(), "looking starts nothing");
    std::fs::set_permissions(world.home(), std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    let report = world.scratch().join("second.tar.gz");
    let told = world.baton(&["report", "-o", report.to_str().expect("a path of text")]);
    std::fs::set_permissions(world.home(), std::fs::Permissions::from_mode(0o700)).expect("it is ours");
    assert_eq!(told.code, 0, "{told:?}");
    std::fs::remove_dir_all(world.scratch().join("unpacked")).expect("it is ours");
    let parts = unpack(&world, &report);
    assert!(json_of(&parts, "state-folder.json")["error"].is_string());
}
