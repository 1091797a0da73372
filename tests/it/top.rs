//! `baton top` on a terminal, which another terminal emulator reads.

use std::io::{Read as _, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_tests::process::{await_some, signal};
use baton_tests::raw::Request;
use baton_tests::world::World;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::Signal;

const PATIENCE: Duration = Duration::from_secs(20);
const SIZE: PtySize = PtySize { rows: 30, cols: 120, pixel_width: 0, pixel_height: 0 };

struct Terminal {
    shown: Arc<Mutex<vt100::Parser>>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Held for as long as the terminal is to be there.
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    fn top(world: &World) -> Self {
        let command = world.baton_command(&["top"]);
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => builder.env(name, value),
                None => builder.env_remove(name),
            }
        }
        let pair = native_pty_system().openpty(SIZE).expect("a terminal");
        let child = pair.slave.spawn_command(builder).expect("baton starts");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a terminal");
        let keys = pair.master.take_writer().expect("a terminal");
        let shown = Arc::new(Mutex::new(vt100::Parser::new(SIZE.rows, SIZE.cols, 0)));
        let parser = shown.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n_read @ 1..) = reader.read(&mut piece) {
                parser.lock().expect("no test panics with it").process(&piece[..n_read]);
            }
        });
        Self { shown, keys, child, _master: pair.master }
    }

    fn text(&self) -> String {
        self.shown.lock().expect("no test panics with it").screen().contents()
    }

    fn await_text(&self, wanted: &str) {
        let is_there = await_some(PATIENCE, || self.text().contains(wanted).then_some(()));
        assert!(is_there.is_some(), "{wanted:?} is not there:\n{}", self.text());
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("it reads");
    }

    /// It ends well, and leaves the terminal as it was.
    fn await_end(&mut self) {
        let code = await_some(PATIENCE, || self.child.try_wait().ok().flatten());
        assert!(code.as_ref().is_some_and(|code| code.success()), "{code:?}:\n{}", self.text());
        let is_restored = await_some(PATIENCE, || {
            let shown = self.shown.lock().expect("no test panics with it");
            (!shown.screen().alternate_screen() && !shown.screen().hide_cursor()).then_some(())
        });
        assert!(is_restored.is_some(), "the terminal is as before");
    }
}

#[test]
fn the_terminal_shows_what_the_page_shows_and_takes_orders() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    world.await_status("both are there", |status| status.windows.len() == 2);
    let mut top = Terminal::top(&world);
    top.await_text("shop is live: no other window was live");
    top.await_text("q quit");
    assert_eq!(Request::call(world.port(), &world.token(), "no_such_tool").send(world.port()).status, 200);
    top.await_text("tool_error");
    top.press("\u{1b}[Bt");
    top.await_text("weather is live: you chose it");
    world.await_live("weather");
    top.press("s");
    top.await_text("No window is live. Choose one and press t.");
    world.await_nobody_live();
    world.baton_ok(&["down"]);
    top.await_text("trying again");
    world.baton_ok(&["up"]);
    top.await_text("q quit");
    top.press("q");
    top.await_end();
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let world = World::new();
    world.baton_ok(&["up"]);
    for end in [Signal::TERM, Signal::HUP] {
        let mut top = Terminal::top(&world);
        top.await_text("No windows.");
        signal(top.child.process_id().expect("it runs"), end);
        top.await_end();
    }
}

#[test]
fn without_a_terminal_or_a_coordinator_it_says_what_to_do() {
    let world = World::new();
    let printed = world.baton(&["top"]);
    assert_eq!(printed.code, 1);
    assert!(
        printed.err.contains("not a terminal") && printed.err.contains("baton status"),
        "{}",
        printed.err
    );
    let mut top = Terminal::top(&world);
    top.await_text("the coordinator is not running");
    let code = await_some(PATIENCE, || top.child.try_wait().ok().flatten()).expect("it ends");
    assert_eq!(code.exit_code(), 3, "{}", top.text());
}
