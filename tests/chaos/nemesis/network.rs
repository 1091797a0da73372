//! Clients that are slow, broken, many or heavy, and a stranger who wants the port.

use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use baton_tests::process::command;

use super::Scene;

/// Longest wait for a socket of ours.
const PATIENCE: Duration = Duration::from_secs(8);
/// The uid of `nobody`.
const STRANGER: &str = "65534";
/// How long the stranger tries.
const SQUAT: Duration = Duration::from_secs(4);

/// What the stranger's process does: takes the port as soon as it can, and says what it hears there.
pub(crate) fn squat_here(port: u16) {
    let until = Instant::now() + SQUAT;
    while Instant::now() < until {
        // The library sets SO_REUSEADDR, so that connections that ended are not in the way.
        let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) else {
            std::thread::sleep(Duration::from_micros(500));
            continue;
        };
        crate::say("PORT");
        while Instant::now() < until {
            let Ok((mut peer, _)) = listener.accept() else { continue };
            // A peer that says nothing is of no interest.
            let _ = peer.set_read_timeout(Some(Duration::from_millis(200)));
            let mut heard = [0; 16 * 1024];
            let n_read = peer.read(&mut heard).unwrap_or(0);
            if String::from_utf8_lossy(&heard[..n_read]).to_lowercase().contains("authorization") {
                crate::say("TOKEN");
            }
        }
    }
}

impl Scene {
    fn connect(&self) -> Option<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.world.port())).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        Some(stream)
    }

    fn head(&self, token: &str, length: usize) -> String {
        let port = self.world.port();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    }

    fn current_token(&self) -> String {
        self.world.read_token().unwrap_or_else(|| self.world.token())
    }
}

/// Half heads and half bodies, many of them, that stay.
pub(super) fn half_requests(scene: &mut Scene) {
    let token = scene.current_token();
    let head = scene.head(&token, 5_000);
    let mut open = Vec::new();
    for _ in 0..200 {
        let Some(mut stream) = scene.connect() else { continue };
        let cut = if scene.rng.bool() { scene.rng.usize(1..head.len()) } else { head.len() };
        // Refused or not: the next one tries.
        let _ = stream.write_all(&head.as_bytes()[..cut]);
        open.push(stream);
    }
    scene.note(format!("{} halves of requests are open", open.len()));
    scene.pause(1_000..4_000);
}

/// More streams of notices than anybody needs.
pub(super) fn stream_flood(scene: &mut Scene) {
    let (token, port) = (scene.current_token(), scene.world.port());
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"flood","version":"1"}}}"#;
    let mut open = Vec::new();
    let session = scene.connect().and_then(|mut stream| {
        stream.write_all(format!("{}{body}", scene.head(&token, body.len())).as_bytes()).ok()?;
        let mut buffer = [0; 8192];
        let n_read = stream.read(&mut buffer).ok()?;
        let text = String::from_utf8_lossy(&buffer[..n_read]).into_owned();
        let line = text.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id:"))?.to_owned();
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let Some(session) = session else { return scene.note("the flood got no session") };
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
         Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n"
    );
    for _ in 0..600 {
        let Some(mut stream) = scene.connect() else { break };
        if stream.write_all(request.as_bytes()).is_ok() {
            open.push(stream);
        }
    }
    scene.note(format!("{} streams are open", open.len()));
    scene.pause(500..2_000);
}

/// Calls whose clients go away; they read only.
pub(super) fn aborted_calls(scene: &mut Scene) {
    let token = scene.current_token();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_breakpoints","arguments":{}}}"#;
    for _ in 0..100 {
        let Some(mut stream) = scene.connect() else { continue };
        // It goes away whatever came of it.
        let _ = stream.write_all(format!("{}{body}", scene.head(&token, body.len())).as_bytes());
        scene.pause(0..10);
    }
    scene.note("100 calls were aborted");
}

pub(super) fn wrong_tokens(scene: &mut Scene) {
    let mut n_refused = 0;
    for _ in 0..200 {
        let Some(mut stream) = scene.connect() else { continue };
        let _ = stream.write_all(format!("{}{{}}", scene.head("wrong", 2)).as_bytes());
        let mut buffer = [0; 512];
        let n_read = stream.read(&mut buffer).unwrap_or(0);
        n_refused += u32::from(buffer[..n_read].starts_with(b"HTTP/1.1 401"));
    }
    scene.note(format!("{n_refused} of 200 wrong tokens were told so"));
}

/// Messages near the limit, with a million members, and with values that are long.
pub(super) fn heavy_calls(scene: &mut Scene) {
    let token = scene.current_token();
    let members: Vec<String> = (0..1_000_000).map(|number| format!("\"a{number}\":1")).collect();
    let long = format!("\"file_path\":\"{}\"", "x".repeat(12_000_000));
    for arguments in [members.join(","), long] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"get_breakpoints","arguments":{{{arguments}}}}}}}"#
        );
        let Some(mut stream) = scene.connect() else { continue };
        let sent = stream.write_all(format!("{}{body}", scene.head(&token, body.len())).as_bytes());
        let mut buffer = [0; 512];
        let n_read = stream.read(&mut buffer).unwrap_or(0);
        let line = String::from_utf8_lossy(&buffer[..n_read]).lines().next().unwrap_or_default().to_owned();
        scene.note(format!("a call of {} bytes: sent {}, answered {line:?}", body.len(), sent.is_ok()));
    }
}

/// Another user of the machine wants the port in the moment in which it is free.
pub(super) fn port_squatted(scene: &mut Scene) {
    let mut squatter = match squat(scene) {
        Ok(squatter) => squatter,
        Err(error) => return scene.note(format!("no squatter: {error}")),
    };
    scene.pause(200..400);
    let from = scene.history.now();
    scene.kill_coordinators();
    std::thread::sleep(SQUAT);
    // It may wait for a peer that never comes.
    let _ = squatter.kill();
    let mut said = String::new();
    if let Some(output) = squatter.stdout.as_mut() {
        // What it could not say it has not heard.
        let _ = output.read_to_string(&mut said);
    }
    let _ = squatter.wait();
    let words: Vec<&str> = said.lines().collect();
    scene.note(format!(
        "the squatter had the port {} times",
        words.iter().filter(|word| **word == "PORT").count()
    ));
    if words.contains(&"PORT") {
        // One violation is enough: what the stranger hangs up on is no other.
        scene.history.deaths_since(from);
        scene.history.stranger(from, words.contains(&"TOKEN"));
    }
}

/// Ourselves, as another user, from a place where that user may read.
fn squat(scene: &Scene) -> std::io::Result<Child> {
    let scratch = scene.world.scratch();
    let program = scratch.join("stranger");
    if !program.exists() {
        std::fs::copy(std::env::current_exe()?, &program)?;
        std::fs::set_permissions(scratch, Permissions::from_mode(0o711))?;
    }
    command("setpriv")
        .args(["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups"])
        .arg(program)
        .args(["--squat", &scene.world.port().to_string()])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
}
