//! A receiver that is not ours to write the events, real HTTP, a real panic: what arrives, and what must not.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use baton_link::logging::{self, LIFECYCLES};
use baton_proto::control::Settings;
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(10);
/// Must not arrive.
const CANARY: &str = "canary4711";

/// Takes requests as Sentry does; gives its port, and the bodies.
fn receiver() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (send, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let mut length = 0;
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|n| n > 0) {
                if line == "\r\n" {
                    let mut body = vec![0; length];
                    stream.read_exact(&mut body).expect("a body");
                    let _ = send.send(String::from_utf8_lossy(&body).into_owned());
                    let _ = stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
                }
                let told = line.to_lowercase();
                if let Some(told) = told.strip_prefix("content-length:") {
                    length = told.trim().parse().expect("a length");
                }
                line.clear();
            }
        }
    });
    (port, bodies)
}

/// The next event, which is the third line of what a client sends.
fn next(bodies: &Receiver<String>) -> Value {
    let body = bodies.recv_timeout(PATIENCE).expect("an event arrives");
    assert!(!body.contains(CANARY), "{body}");
    let event = body.lines().nth(2).expect("an event");
    serde_json::from_str(event).expect("it is JSON")
}

#[test]
fn errors_and_panics_arrive_without_what_is_the_users_and_only_while_they_are_wanted() {
    let (port, bodies) = receiver();
    baton_errors::install(baton_errors::Process::Coordinator);
    logging::start(None, LIFECYCLES, None).expect("it logs");
    logging::log_panics();
    tracing::error!("nobody wants this {CANARY}");
    let dsn = format!("http://key@127.0.0.1:{port}/1");
    let wanted = Settings { error_dsn: dsn, ..Settings::default() };
    for settings in [&Settings::default(), &wanted, &wanted] {
        logging::change(settings);
    }
    assert_eq!(next(&bodies)["message"], "errors of Baton are told here from now on");

    tracing::warn!("a warning {CANARY}");
    tracing::error!(path = "/home/ann/canary4711", "cannot write");
    let event = next(&bodies);
    assert_eq!(event["message"], "cannot write path=\"...\"");
    // Sentry's own default is `error`, which is left out.
    assert!(event["level"].is_null() && event["environment"] == "coordinator", "{event}");
    assert_eq!(event["logger"], "receiver");
    assert!(event["release"].as_str().is_some_and(|release| release.starts_with("baton@")), "{event}");
    for of_the_user in ["server_name", "user", "request", "contexts", "breadcrumbs", "extra", "tags"] {
        assert!(event[of_the_user].is_null(), "{of_the_user}: {event}");
    }

    let panicked = std::thread::spawn(|| {
        let text = format!("\u{e9}{CANARY}");
        let at = text.len() - text.len() + 1;
        text[at..].len()
    });
    assert!(panicked.join().is_err());
    let message = next(&bodies)["message"].as_str().expect("a text").to_owned();
    assert!(message.starts_with("panicked at ") && message.contains("receiver.rs:"), "{message}");

    logging::change(&Settings::default());
    tracing::error!("nobody wants this any more {CANARY}");
    drop(logging::LastWords);
    assert!(bodies.try_recv().is_err(), "nothing more arrives");
}
