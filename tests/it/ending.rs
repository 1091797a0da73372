//! A coordinator ends for good, or without its lock: what clients write in that moment is answered, or never sent.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use baton_tests::client::ClientKind;
use baton_tests::process::await_some;
use baton_tests::raw::{self, KeepAlive, Request, Sent};
use baton_tests::world::{PATIENCE, World};
use serde_json::json;

/// Clients that call without pause, and connect anew when they are told to.
const N_HAMMERS: usize = 4;
/// Threads that write on connections which were idle until then, each connection once.
const N_WRITERS: usize = 3;
/// Idle connections of each.
const N_IDLE: usize = 300;
/// Pause between two of them, so that they are written on before, while and after the connections are closed.
const EVERY: Duration = Duration::from_millis(1);

/// What became of all requests.
#[derive(Debug, Default)]
struct Tally {
    n_answered: usize,
    /// Answered that they were not run.
    n_unrun: usize,
    n_refused: usize,
    n_torn: usize,
}

impl Tally {
    /// Counts what became of a request; true while there is somebody who answers.
    fn count(&mut self, sent: Sent) -> bool {
        match sent {
            Sent::Answered(answer) if answer.status == 200 => self.n_answered += 1,
            Sent::Answered(answer) => {
                assert_eq!(answer.status, 503, "{answer:?}");
                assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
                assert!(
                    answer.header("retry-after").is_some() && answer.body.contains("not run"),
                    "{answer:?}"
                );
                self.n_unrun += 1;
            }
            Sent::Refused => {
                self.n_refused += 1;
                return false;
            }
            Sent::Torn => self.n_torn += 1,
        }
        true
    }
}

/// Clients of both kinds write while `end` has the coordinator end; what became of the requests of each kind.
fn hammered(world: &World, end: impl FnOnce() + Send) -> (Tally, Tally) {
    let (port, token) = (world.port(), world.token());
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let request = Request::post(port, "/mcp", &token, ping);
    let request = &request;
    let (told, is_told) = mpsc::channel();
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let hammers: Vec<_> = (0..N_HAMMERS)
            .map(|_| {
                let told = told.clone();
                scope.spawn(move || {
                    let (mut client, mut tally) = (KeepAlive::new(port), Tally::default());
                    loop {
                        // Once all is over there is one request more: it is the one that nobody takes.
                        let is_last = is_over.load(Ordering::Relaxed);
                        if !tally.count(client.try_send(request)) || is_last {
                            break tally;
                        }
                        if client.n_opened > 1 {
                            // It has said that it ends. Only the first to say so is heard.
                            let _ = told.send(());
                        }
                    }
                })
            })
            .collect();
        let idle: Vec<Vec<KeepAlive>> =
            (0..N_WRITERS).map(|_| (0..N_IDLE).map(|_| idle_client(port, request)).collect()).collect();
        let ending = scope.spawn(end);
        is_told.recv().expect("the coordinator says that it ends");
        let writers: Vec<_> = idle
            .into_iter()
            .map(|clients| {
                scope.spawn(move || {
                    let mut tally = Tally::default();
                    for mut client in clients {
                        tally.count(client.try_send(request));
                        thread::sleep(EVERY);
                    }
                    tally
                })
            })
            .collect();
        ending.join().expect("it ends");
        let writers = sum(writers.into_iter().map(|writer| writer.join().expect("a writer ends")));
        is_over.store(true, Ordering::Relaxed);
        (sum(hammers.into_iter().map(|hammer| hammer.join().expect("a client ends"))), writers)
    })
}

fn idle_client(port: u16, request: &Request) -> KeepAlive {
    let mut client = KeepAlive::new(port);
    assert_eq!(client.send(request).map(|answer| answer.status), Some(200));
    client
}

fn sum(tallies: impl Iterator<Item = Tally>) -> Tally {
    tallies.fold(Tally::default(), |sum, one| Tally {
        n_answered: sum.n_answered + one.n_answered,
        n_unrun: sum.n_unrun + one.n_unrun,
        n_refused: sum.n_refused + one.n_refused,
        n_torn: sum.n_torn + one.n_torn,
    })
}

#[test]
fn what_is_written_while_baton_goes_down_is_answered() {
    // On a busy machine all idle connections of a round may be written on before, or after.
    let rounds = (0..4).map(|_| {
        let world = World::new();
        world.baton_ok(&["up"]);
        let (hammers, idle) = hammered(&world, || drop(world.baton_ok(&["down"])));
        // Nobody takes the port over: a connection that the kernel had taken in the moment in which it is let go is
        // reset, and its request was read by nobody.
        assert!(hammers.n_torn <= N_HAMMERS && idle.n_torn == 0, "{hammers:?} {idle:?}");
        assert_eq!(hammers.n_refused, N_HAMMERS, "{hammers:?}");
        idle
    });
    let idle = sum(rounds);
    assert!(idle.n_answered > 0 && idle.n_unrun > 0, "before and after: {idle:?}");
}

/// The port is kept meanwhile: nobody is refused either.
#[test]
fn what_is_written_while_a_coordinator_without_its_lock_ends_is_answered() {
    let mut world = World::new();
    world.window("shop");
    let before = world.await_live("shop");
    let (hammers, idle) = hammered(&world, || {
        std::fs::remove_file(world.home().join("coordinator.lock")).expect("the lock file is there");
        world.await_status("a successor", |status| status.generation > before.generation);
    });
    assert_eq!((hammers.n_torn, idle.n_torn), (0, 0), "{hammers:?} {idle:?}");
    assert_eq!((hammers.n_refused, idle.n_refused), (0, 0), "{hammers:?} {idle:?}");
    assert!(idle.n_answered > 0 && idle.n_unrun > 0, "before and after: {idle:?}");
}

/// 5 s after the other one has taken over.
#[test]
fn an_idle_connection_of_a_replaced_coordinator_is_ended_with_an_answer() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let request = Request::post(world.port(), "/mcp", &world.token(), ping).to_bytes();
    let request = String::from_utf8(request).expect("text").replace("Connection: close\r\n", "");
    let mut idle = raw::connect(world.port());
    idle.write_all(request.as_bytes()).expect("the coordinator reads");
    assert_eq!(raw::read_answer(&mut idle).status, 200);
    world.baton_ok(&["up", "--replace"]);
    let farewell = raw::read_answer(&mut idle);
    assert_eq!(farewell.status, 503, "{farewell:?}");
    assert_eq!(farewell.header("connection"), Some("close"), "{farewell:?}");
    // What was on its way then is not answered by a reset.
    idle.write_all(request.as_bytes()).expect("the connection is not reset");
    assert_eq!(idle.read(&mut [0]).expect("the connection is not reset"), 0);
}

#[test]
fn a_call_that_is_held_is_answered_when_baton_goes_down() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let mut stream = raw::connect(world.port());
    let request = Request::call(world.port(), &world.token(), "get_breakpoints");
    stream.write_all(&request.to_bytes()).expect("the coordinator reads");
    let since = Instant::now();
    world.baton_ok(&["down"]);
    let answer = raw::read_answer(&mut stream);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("no_live_window"), "{answer:?}");
    assert!(since.elapsed() < Duration::from_secs(2), "at once, not after {:?}", since.elapsed());
}

#[test]
fn a_call_that_runs_when_baton_goes_down_is_told_as_unknown() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let mut client = world.client(ClientKind::Python1);
    let stop = client.stop_in_wait();
    let frame = &stop["call_stack"][0]["frame_id"];
    let begun = world.scratch().join("begun");
    let expression = format!("(open({begun:?}, 'a').write('x'), __import__('time').sleep(20))");
    let call =
        client.send_call("evaluate_expression", json!({ "expression": expression, "frame_id": frame }));
    await_some(PATIENCE, || begun.exists().then_some(())).expect("the call runs");
    world.baton_ok(&["down"]);
    let answer = client.wait(call).expect("the call is answered").to_string();
    assert!(answer.contains("outcome_unknown"), "{answer}");
    client.close();
}
