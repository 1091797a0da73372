//! `cargo xtask demo`: the main job on real programs, with a timeline in milliseconds.
//!
//! Three windows register and rules decide; an official MCP client debugs a Python program through the stable
//! URL; the user takes another window in the middle; the live window and then the coordinator are killed -9.
//! All of it in one client session.

mod adapters;
mod code;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Instant;

use baton_proto::control::{Status, WindowState};
use baton_tests::client::{Client, ClientKind};
use baton_tests::process::kill9;
use baton_tests::story::{DEBUGGER_TOOLS, configurations, debug_to_stop, finish, step};
use baton_tests::world::{World, live_name, state_of};

/// Prints what happened when.
pub(crate) struct Timeline {
    start: Instant,
    last: Instant,
    /// A person looks at the page meanwhile: no step begins before they want it.
    waits: bool,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { start: now, last: now, waits: false }
    }

    #[expect(clippy::print_stdout, reason = "the timeline is what the demo is for")]
    pub(crate) fn say(&mut self, what: &str) {
        let now = Instant::now();
        let (at, took) = (now - self.start, now - self.last);
        self.last = now;
        println!("{:>7} ms  {:>+7} ms  {what}", at.as_millis(), took.as_millis() as i64);
    }

    /// Says where the page is; it ends with its coordinator, as the story has one end.
    #[expect(clippy::print_stdout, reason = "the timeline is what the demo is for")]
    fn page(&mut self, world: &World) {
        let link = world.baton_ok(&["open", "--print"]);
        println!("\nThe page, for a browser on this machine, within a minute:\n{link}");
        self.waits = true;
    }

    #[expect(clippy::print_stdout, reason = "the timeline is what the demo is for")]
    pub(crate) fn heading(&mut self, what: &str) {
        if self.waits && std::io::stdin().is_terminal() {
            println!("\nPress Enter to go on.");
            // Whoever closes the input waits for nothing.
            let _ = std::io::stdin().read_line(&mut String::new());
        }
        println!("\n{what}");
        self.last = Instant::now();
    }
}

/// How much of a process's command line is shown.
const WIDTH: usize = 100;

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--adapters") {
        return adapters::demo();
    }
    if std::env::args().any(|argument| argument == "--code") {
        return code::demo();
    }
    let stay = std::env::args().any(|argument| argument == "--stay");
    let with_page = std::env::args().any(|argument| argument == "--page");
    let mut timeline = Timeline::new();
    let mut world = World::new();
    register(&mut world, &mut timeline);
    if with_page {
        timeline.page(&world);
    }
    let client = play(&mut world, &mut timeline);
    if with_page {
        timeline.page(&world);
    }
    if stay {
        drop(client);
        leave(world);
        return ExitCode::SUCCESS;
    }
    client.close();
    timeline.heading("6. everything ends");
    end(&mut world, &mut timeline)
}

/// Ends the world; a process that outlives it is a failure.
fn end(world: &mut World, timeline: &mut Timeline) -> ExitCode {
    let survivors = world.end();
    if !survivors.is_empty() {
        timeline.say(&format!("left running, and killed: {survivors:?}"));
        return ExitCode::FAILURE;
    }
    timeline.say("nothing is left running");
    ExitCode::SUCCESS
}

fn register(world: &mut World, timeline: &mut Timeline) {
    timeline.heading("1. three windows register, rules decide");
    for name in ["shop", "weather", "robots"] {
        world.window(name);
        if name == "shop" {
            world.await_live(name);
        }
        let status = world.status().expect("the coordinator runs");
        timeline.say(&format!("{name} registered: {}", standing(&status, name)));
    }
    let status = world.status().expect("the coordinator runs");
    assert_eq!(live_name(&status), Some("shop"), "the first window is live (R1)");
    assert_eq!(state_of(&status, "weather"), Some(WindowState::Standby), "the others yield (R2)");
    assert_eq!(state_of(&status, "robots"), Some(WindowState::Standby), "the others yield (R2)");
}

fn play(world: &mut World, timeline: &mut Timeline) -> Client {
    timeline.heading(&format!("2. an MCP client connects to {} and debugs", world.url()));
    let mut client = world.client(ClientKind::Python1);
    timeline.say(&format!("connected: MCP {}", client.ready["protocol"].as_str().unwrap_or("?")));
    let tools = client.list();
    assert!(DEBUGGER_TOOLS.iter().all(|tool| tools.iter().any(|found| found == tool)), "{tools:?}");
    timeline.say(&format!("{} tools listed", tools.len()));
    let folder = world.folder("shop");
    let stopped = debug_to_stop(&mut client, "shop", &folder, |what| timeline.say(what));
    let stepped = step(&mut client, &stopped);
    timeline.say(&format!("stepped to line {}", stepped["line"]));

    timeline.heading("3. the user takes another window in the middle; the same client session goes on");
    client.forget_events();
    world.take("weather");
    timeline.say("`baton take weather` accepted");
    assert_eq!(configurations(&mut client), ["warmest"]);
    timeline.say("the next call is answered by weather");
    client.await_list_changed();
    timeline.say("the client heard that the tools' window changed");
    let folder = world.folder("weather");
    let stopped = debug_to_stop(&mut client, "weather", &folder, |what| timeline.say(what));
    let stepped = step(&mut client, &stopped);
    finish(&mut client, &stepped);
    timeline.say("ran to its end");

    timeline.heading("4. the live window is killed -9");
    world.kill_window("weather");
    timeline.say("weather is gone: program, agent, everything");
    let names = configurations(&mut client);
    let status = world.status().expect("the coordinator runs");
    let successor = live_name(&status).expect("another window took over").to_owned();
    timeline.say(&format!("the next call is answered by {successor} ({})", names.join(", ")));

    timeline.heading("5. the coordinator is killed -9");
    let before = status;
    kill9(before.pid);
    timeline.say(&format!("coordinator {} is gone", before.pid));
    let after = world.await_status("a successor", |status| {
        status.generation > before.generation && live_name(status) == Some(successor.as_str())
    });
    timeline.say(&format!(
        "coordinator {} runs, generation {}, {successor} is still live",
        after.pid, after.generation
    ));
    assert_eq!(configurations(&mut client), names);
    timeline.say("the same client session goes on");
    client
}

fn standing(status: &Status, name: &str) -> &'static str {
    match state_of(status, name) {
        Some(WindowState::Live) => "live",
        Some(WindowState::Standby) => "standby",
        Some(WindowState::Off) => "off",
        None => "unknown",
    }
}

#[expect(clippy::print_stdout, reason = "what is left running has to be said")]
fn leave(world: World) {
    println!("\nEverything stays up. URL: {}", world.url());
    for arguments in [["config", "claude-code", "--http"], ["config", "cursor", "--stdio"]] {
        println!("\nbaton {}:\n{}", arguments.join(" "), world.baton(&arguments).out.trim_end());
    }
    println!("\nFor commands: export BATON_HOME={} BATON_PORT={}", world.home().display(), world.port());
    println!("\nRunning; `kill` ends them:");
    for (pid, line) in world.leave_running() {
        // An adapter's command line holds a whole program.
        let start: String = line.lines().next().unwrap_or_default().chars().take(WIDTH).collect();
        println!("{pid:>8}  {start}");
    }
}
