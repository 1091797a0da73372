//! A window of protocol 1, as the first agents spoke it: written down here, so that it stays what it was.
//!
//! It proves itself, registers, opens its event stream, beats every 1.5 s, serves one tool on a loopback port, and
//! comes back when its coordinator goes. It never starts a coordinator.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baton_proto::discovery::{HelloCredential, KEY_LEN, Role, Secret};
use baton_proto::ids::WindowId;
use serde_json::{Value, json};

use crate::raw::{Answer, Request, connect};
use crate::world::World;

/// As agents of protocol 1 did.
const BEAT: Duration = Duration::from_millis(1_500);
/// How often it looks for a coordinator that it lost.
const RETRY: Duration = Duration::from_millis(50);

/// See the module; it leaves when it is dropped.
pub struct Elder {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    id: String,
    name: String,
    folder: String,
    home: std::path::PathBuf,
    port: u16,
    token: String,
    member: String,
    secret: Secret,
    is_over: AtomicBool,
    n_beats: AtomicU64,
    place: Mutex<Place>,
}

/// What the coordinator last said of where it stands.
#[derive(Clone, Debug, Default)]
struct Place {
    state: String,
    held: Value,
    highest: Value,
}

impl Elder {
    /// A window that registers with the world's coordinator, which must have run before.
    pub fn join(world: &World, name: &str) -> Self {
        let bytes = std::fs::read(world.home().join("secret")).expect("the secret is there");
        let secret = Secret::new(<[u8; KEY_LEN]>::try_from(bytes).expect("its length"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let id = format!("{name}-1");
        let window = WindowId::try_from(id.clone()).expect("a good id");
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            folder: world.scratch().join(name).display().to_string(),
            home: world.home(),
            port: listener.local_addr().expect("it is bound").port(),
            token: secret.window_token(&window, None).expose().to_owned(),
            member: secret.token(Role::Member).expose().to_owned(),
            id,
            secret,
            is_over: AtomicBool::new(false),
            n_beats: AtomicU64::new(0),
            place: Mutex::default(),
        });
        let (server, member) = (Arc::clone(&shared), Arc::clone(&shared));
        let threads = vec![
            std::thread::spawn(move || server.serve(&listener)),
            std::thread::spawn(move || member.attend()),
        ];
        Self { shared, threads }
    }

    /// `live`, `standby` or `off`, as it was told last.
    pub fn state(&self) -> String {
        self.shared.place().state.clone()
    }
}

impl Drop for Elder {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.shared.post("leave", &json!({ "incarnation": 1 }));
        // Ends the wait of the server.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.shared.port)));
        for thread in self.threads.drain(..) {
            // What it panicked with stands in the output of the test.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn place(&self) -> std::sync::MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Where the coordinator says it is.
    fn coordinator(&self) -> Option<u16> {
        let text = std::fs::read(self.home.join("discovery.json")).ok()?;
        let discovery: Value = serde_json::from_slice(&text).ok()?;
        u16::try_from(discovery["port"].as_u64()?).ok()
    }

    /// One coordinator after the other.
    fn attend(&self) {
        while !self.is_over() {
            if self.is_proven() && self.register() {
                self.stay();
            }
            std::thread::sleep(RETRY);
        }
    }

    /// The coordinator knows the secret; a token is sent to nobody else.
    fn is_proven(&self) -> bool {
        let Some(port) = self.coordinator().filter(|port| is_open(*port)) else { return false };
        let nonce = "0123456789abcdef0123456789abcdef";
        let bearer = HelloCredential { nonce: nonce.to_owned() }.to_bearer(&self.secret, port);
        let answer = Request::post(port, "/v1/hello", &bearer, "{}").send(port);
        let hello = serde_json::from_str::<baton_proto::discovery::HelloAnswer>(&answer.body);
        answer.status == 200 && hello.is_ok_and(|hello| hello.is_proven(&self.secret, nonce))
    }

    fn register(&self) -> bool {
        let place = self.place().clone();
        let answer = self.post(
            "register",
            &json!({
                "protocol": 1, "version": "0.1.0", "name": self.name, "kind": "headless", "folders": [self.folder],
                "auto_start": true, "pid": std::process::id(), "port": self.port, "incarnation": 1,
                "highest_term": place.highest, "held_term": place.held, "debug_sessions": []
            }),
        );
        let Some(answer) = answer.filter(|answer| answer.status == 200) else { return false };
        let registered: Value = serde_json::from_str(&answer.body).expect("the answer is JSON");
        self.take_place(&registered);
        true
    }

    /// Reads the event stream until it ends; beats meanwhile.
    fn stay(&self) {
        let Some(port) = self.coordinator().filter(|port| is_open(*port)) else { return };
        let mut stream = connect(port);
        let line = format!("GET /v1/windows/{}/events?incarnation=1", self.id);
        let request = Request::bare(port, &line, &self.member);
        if stream.write_all(&request.to_bytes()).is_err() {
            return;
        }
        stream.set_read_timeout(Some(RETRY)).expect("a socket takes a timeout");
        let (mut text, mut buffer, mut beaten_at) = (Vec::new(), [0; 4096], Instant::now());
        while !self.is_over() {
            match stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(n_read) => text.extend_from_slice(&buffer[..n_read]),
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(_) => return,
            }
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                // Between the notices stand the head and the sizes of the chunks.
                if let Ok(notice) = serde_json::from_slice::<Value>(&line)
                    && notice["notice"] == "state"
                {
                    self.take_place(&notice);
                }
            }
            if beaten_at.elapsed() >= BEAT {
                beaten_at = Instant::now();
                self.beat();
            }
        }
    }

    fn beat(&self) {
        let seq = self.n_beats.fetch_add(1, Ordering::Relaxed) + 1;
        // The event stream tells what has changed.
        self.post(
            "heartbeat",
            &json!({ "incarnation": 1, "seq": seq, "focused": false, "debug_sessions": [] }),
        );
    }

    fn take_place(&self, told: &Value) {
        let mut place = self.place();
        place.state = told["state"].as_str().unwrap_or_default().to_owned();
        place.held = told["term"].clone();
        if !told["term"].is_null() {
            place.highest = told["term"].clone();
        }
    }

    fn post(&self, verb: &str, body: &Value) -> Option<Answer> {
        let port = self.coordinator().filter(|port| is_open(*port))?;
        let path = format!("/v1/windows/{}/{verb}", self.id);
        Some(Request::post(port, &path, &self.member, body.to_string()).send(port))
    }

    /// MCP, as far as one tool call needs it.
    fn serve(self: &Arc<Self>, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            if self.is_over() {
                return;
            }
            let shared = Arc::clone(self);
            std::thread::spawn(move || shared.answer(stream));
        }
    }

    /// Requests of one connection, one after the other.
    fn answer(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        while let Some((head, body)) = read_request(&mut reader) {
            let is_known = head.iter().any(|line| line.ends_with(&format!("Bearer {}", self.token)));
            let (status, more, body) = match (is_known, self.place().state.as_str()) {
                (false, _) => ("401 Unauthorized", "", String::new()),
                (true, "live") => ("200 OK", "", self.result(&body)),
                (true, _) => ("409 Conflict", "baton-refused: stale-term\r\n", String::new()),
            };
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n{body}"
            );
            if stream.write_all(text.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn result(&self, call: &[u8]) -> String {
        let call: Value = serde_json::from_slice(call).unwrap_or_default();
        let text = json!({ "status": "success", "configurations": [{ "name": self.name }] });
        json!({ "jsonrpc": "2.0", "id": call["id"], "result": {
            "content": [{ "type": "text", "text": text.to_string() }], "structuredContent": text,
            "_meta": { "baton/window": { "id": self.id, "name": self.name } }
        } })
        .to_string()
    }
}

fn is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The header lines, in lower case up to their colon, and the body of a request; `None` at the end of the connection.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(Vec<String>, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = head.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok()).flatten()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}
