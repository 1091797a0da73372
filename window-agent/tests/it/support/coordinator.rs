//! A coordinator that a test plays by hand: it proves itself as the real one does, and answers what the test
//! says.

#![expect(unreachable_pub, clippy::unwrap_used, reason = "a module of test binaries")]

use std::convert::Infallible;
use std::fs::File;
use std::time::Duration;

use baton_link::home::Home;
use baton_proto::control::{Notice, Registered, Settings, WindowState};
use baton_proto::discovery::{Discovery, HelloAnswer, HelloCredential, Role};
use baton_proto::ids::{InstanceId, Term};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// A request of the agent, which the test answers.
pub struct Asked {
    pub path: String,
    pub body: Value,
    reply: oneshot::Sender<(u16, Value)>,
}

impl Asked {
    pub fn answer(self, status: u16, body: impl serde::Serialize) {
        // The agent may have given up.
        let _ = self.reply.send((status, serde_json::to_value(body).unwrap()));
    }
}

/// See the module. Everything ends when it is dropped.
pub struct Coordinator {
    asked: mpsc::Receiver<Asked>,
    streams: mpsc::Receiver<mpsc::Sender<Notice>>,
    tasks: JoinSet<()>,
    _lock: File,
}

#[derive(Clone)]
struct Shared {
    hello: HelloAnswer,
    home: Home,
    asked: mpsc::Sender<Asked>,
    streams: mpsc::Sender<mpsc::Sender<Notice>>,
}

impl Coordinator {
    /// Takes the place of a coordinator in `home`.
    pub async fn start(home: &Home, generation: u64) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let instance = InstanceId(format!("instance-{generation}"));
        let discovery = Discovery {
            instance: instance.clone(),
            pid: std::process::id(),
            // No process of ours is to be ended.
            pid_start: 0,
            generation,
            port,
            version: "0".to_owned(),
            protocol: (1, 1),
        };
        home.replace("discovery.json", &serde_json::to_vec(&discovery).unwrap()).unwrap();
        let hello = HelloAnswer {
            instance,
            generation,
            port,
            pid: discovery.pid,
            version: "0".to_owned(),
            protocol: (1, 1),
            nonce: "0".repeat(32),
            proof: String::new(),
        };
        // Without the lock there is no coordinator, whatever the file says.
        let lock = File::options().create(true).truncate(false).write(true).open(home.lock_path()).unwrap();
        // Whoever looks for a coordinator has it for an instant.
        lock.lock().unwrap();
        let (asked_sender, asked) = mpsc::channel(64);
        let (streams_sender, streams) = mpsc::channel(64);
        let shared = Shared { hello, home: home.clone(), asked: asked_sender, streams: streams_sender };
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, shared));
        Self { asked, streams, tasks, _lock: lock }
    }

    /// The next request whose path ends so; heartbeats in between are acknowledged.
    pub async fn next(&mut self, end: &str) -> Asked {
        loop {
            let asked = tokio::time::timeout(PATIENCE, self.asked.recv()).await;
            let asked = asked.unwrap_or_else(|_| panic!("the agent sends {end}")).unwrap();
            if asked.path.ends_with(end) {
                return asked;
            }
            assert!(asked.path.ends_with("/heartbeat"), "{} instead of {end}", asked.path);
            asked.answer(200, standby());
        }
    }

    /// The next request, whatever it is.
    pub async fn next_raw(&mut self) -> Asked {
        self.asked.recv().await.unwrap()
    }

    /// The next event stream that the agent opens.
    pub async fn stream(&mut self) -> mpsc::Sender<Notice> {
        tokio::time::timeout(PATIENCE, self.streams.recv()).await.expect("the agent opens a stream").unwrap()
    }

    /// Registers the agent; gives what it said of itself, and its event stream.
    pub async fn register(&mut self, state: Registered) -> (Value, mpsc::Sender<Notice>) {
        let asked = self.next("/register").await;
        let body = asked.body.clone();
        asked.answer(200, state);
        (body, self.stream().await)
    }

    /// Ends all connections and the listener, as a kill does.
    pub async fn kill(mut self) {
        self.tasks.shutdown().await;
    }
}

/// What the agent is told of where it stands.
pub fn stands(state: WindowState, term: Option<Term>) -> Registered {
    let settings = Settings::default();
    Registered {
        instance: InstanceId("i".to_owned()),
        generation: 1,
        state,
        term,
        awaited: false,
        settings,
        port: None,
        client_epoch: 0,
    }
}

pub fn standby() -> Registered {
    stands(WindowState::Standby, None)
}

pub fn live(generation: u64, seq: u64) -> Registered {
    stands(WindowState::Live, Some(Term { generation, seq }))
}

async fn accept(listener: TcpListener, shared: Shared) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let shared = shared.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(answer(&shared, request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(shared: &Shared, request: Request<Incoming>) -> Answer {
    let (parts, body) = request.into_parts();
    let bearer = parts.headers["authorization"].to_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned();
    let secret = shared.home.secret().unwrap();
    if parts.uri.path() == "/v1/hello" {
        let credential = HelloCredential::from_bearer(&bearer, &secret, shared.hello.port).unwrap();
        let mut hello = shared.hello.clone();
        hello.sign(&secret, &credential.nonce);
        return json(200, &hello);
    }
    assert!(secret.token(Role::Member).matches(bearer.as_bytes()), "a member's token");
    if parts.uri.path().ends_with("/events") {
        let (sender, receiver) = mpsc::channel::<Notice>(64);
        shared.streams.send(sender).await.unwrap();
        let lines = futures_util::stream::unfold(receiver, |mut receiver| async {
            let mut line = serde_json::to_vec(&receiver.recv().await?).unwrap();
            line.push(b'\n');
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from(line))), receiver))
        });
        return Response::new(StreamBody::new(lines).boxed_unsync());
    }
    let body = body.collect().await.unwrap().to_bytes();
    let (reply, answered) = oneshot::channel();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let _ = shared.asked.send(Asked { path: parts.uri.path().to_owned(), body, reply }).await;
    match answered.await {
        Ok((status, body)) => json(status, &body),
        // The test does not answer: neither do we.
        Err(_) => std::future::pending().await,
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

fn json(status: u16, body: &impl serde::Serialize) -> Answer {
    let body = Full::new(Bytes::from(serde_json::to_vec(body).unwrap()));
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(body.boxed_unsync()).unwrap()
}
