//! A port that somebody else holds: said, waited for, and told nothing.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use baton_proto::discovery::Role;

use crate::scene::{Scene, await_that};

/// Takes what callers say, and answers as a web server would.
fn record(listener: &TcpListener) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let listener = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let mut heard = [0; 65536];
            let n_bytes = stream.read(&mut heard).unwrap_or(0);
            if heard.starts_with(b"stop") {
                return;
            }
            // Whoever called may have gone again.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
            let _ = sender.send(heard[..n_bytes].to_vec());
        }
    });
    receiver
}

#[test]
fn f15_t9_a_stranger_on_the_port_is_named_and_learns_nothing() {
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stranger.local_addr().unwrap().port();
    let heard = record(&stranger);
    let scene = Scene::on_port(port);
    // Our coordinator died, and the stranger got its port.
    let stale = format!(
        r#"{{"instance":"x","pid":1,"pid_start":1,"generation":7,"port":{port},"version":"0","protocol":[1,1]}}"#
    );
    scene.home().replace("discovery.json", stale.as_bytes()).unwrap();
    let since = Instant::now();
    let up = scene.run(&["up"]);
    assert_eq!(up.code, 69, "{up:?}");
    assert!(up.stderr.contains(&format!("port {port} is in use by")), "{}", up.stderr);
    if cfg!(target_os = "linux") {
        assert!(up.stderr.contains(&format!("(process {})", std::process::id())), "{}", up.stderr);
    }
    // A second one is told the same, although it is not the one that starts.
    let again = scene.run(&["up"]);
    assert_eq!(again.code, 69, "{again:?}");
    assert!(again.stderr.contains(&format!("port {port} is in use by")), "{}", again.stderr);
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    // It still is the first one that waits.
    assert_eq!(scene.logs().matches("the port is in use").count(), 1, "{}", scene.logs());
    let status = scene.run(&["status", "--json"]);
    assert_eq!((status.code, &status.json()["running"]), (3, &serde_json::json!(false)), "{status:?}");
    assert!(status.stderr.contains("is in use by"), "{status:?}");

    let secret = scene.home().secret().unwrap();
    let tokens = [secret.token(Role::Member), secret.token(Role::Client { epoch: 0 })];
    let said: Vec<u8> = heard.try_iter().flatten().collect();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("POST /v1/hello"), "{said}");
    for token in &tokens {
        assert!(!said.contains(token.expose()));
    }

    // Once the stranger has gone, the coordinator is there: on its own port, without being asked again.
    let mut stop = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stop.write_all(b"stop").unwrap();
    drop(stranger);
    await_that("the coordinator takes its port", || scene.home().discovery().is_some_and(|it| it.pid != 1));
    assert_eq!(scene.up().port, port);
    assert!(scene.home().discovery().unwrap().generation > 7);
}

#[test]
fn a_coordinator_that_waits_is_moved_or_stopped() {
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let scene = Scene::on_port(stranger.local_addr().unwrap().port());
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_eq!(scene.run(&["up"]).code, 69);
    assert!(scene.home().waiting().is_some());
    assert_eq!(scene.run(&["down"]).code, 0);
    assert_eq!(scene.home().waiting(), None);
    assert_eq!(scene.run(&["status"]).code, 3);
    assert_eq!(scene.run(&["up"]).code, 69);
    let moved = scene.run(&["port", &free.to_string()]);
    assert_eq!((moved.code, moved.stdout.trim()), (0, format!("http://127.0.0.1:{free}/mcp").as_str()));
    assert_eq!(scene.home().discovery().unwrap().port, free);
    assert_eq!(scene.home().waiting(), None);
}

/// The coordinator of another state folder: a Baton, but not the one that was asked for.
#[test]
#[cfg(target_os = "linux")]
fn another_baton_on_the_port_is_named_with_its_state_folder() {
    let first = Scene::new();
    let running = first.up();
    let second = Scene::on_port(running.port);
    let up = second.run(&["up"]);
    assert_eq!(up.code, 69, "{up:?}");
    let named = format!("port {} is in use by another Baton coordinator (process ", running.port);
    let folder = format!(", state folder {})", first.home_path().display());
    assert!(up.stderr.contains(&named) && up.stderr.contains(&folder), "{}", up.stderr);
    assert!(up.stderr.contains("stop that program, or change the port"), "{}", up.stderr);
    assert_eq!(first.run(&["down"]).code, 0);
    let is_next = || second.home().discovery().is_some_and(|next| next.port == running.port);
    await_that("the second one takes the port when it is free", is_next);
    // Its own coordinator, killed, is none that is in its way: nobody is named.
    let logged = second.logs().matches("the port is in use").count();
    let own = second.home().discovery().expect("it runs");
    assert!(baton_link::process::kill_verified(own.pid, own.pid_start));
    assert_eq!(second.up().port, running.port);
    assert_eq!(second.logs().matches("the port is in use").count(), logged, "{}", second.logs());
}

#[test]
fn a_first_start_takes_the_next_free_port_and_keeps_it() {
    // Whether or not 7717 is free on this machine: from now on it is not.
    let _stranger = TcpListener::bind("127.0.0.1:7717");
    let scene = Scene::new();
    let up = |scene: &Scene| {
        let answer =
            crate::scene::Answer::of(scene.command(&["up"]).env_remove("BATON_PORT").output().unwrap());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        scene.home().discovery().unwrap()
    };
    let first = up(&scene);
    assert!((7718..=7816).contains(&first.port), "{}", first.port);
    assert_eq!(scene.run(&["down"]).code, 0);
    assert_eq!(up(&scene).port, first.port);
}
