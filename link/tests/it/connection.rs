//! A connection as its other side sees it: nothing secret before the proof, answers and notices after it.

use baton_link::connection::{CallError, Connection, OpenError};
use baton_proto::control::{Notice, Pong};
use baton_proto::discovery::{HelloAnswer, HelloCredential, KEY_LEN, Role, Secret};
use baton_proto::ids::{InstanceId, WindowId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

fn secret() -> Secret {
    Secret::new([7; KEY_LEN])
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// One request with its body, as text.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut heard = String::new();
    loop {
        let mut bytes = [0; 4096];
        let n_bytes = stream.read(&mut bytes).await.unwrap();
        assert_ne!(n_bytes, 0, "the caller left: {heard}");
        heard.push_str(std::str::from_utf8(&bytes[..n_bytes]).unwrap());
        let Some((head, body)) = heard.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return heard;
        }
    }
}

async fn answer(stream: &mut TcpStream, status: &str, body: &str) {
    let text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// What a holder of `secret` who listens on `port` says to a hello.
fn prove(secret: &Secret, port: u16, hello: &str) -> String {
    let bearer = hello.lines().find_map(|line| line.strip_prefix("authorization: Bearer ")).unwrap();
    let nonce = bearer.split_once('.').unwrap().0;
    let mut answer = HelloAnswer {
        instance: InstanceId("i".to_owned()),
        generation: 3,
        port,
        pid: 1,
        version: "0".to_owned(),
        protocol: (1, 1),
        nonce: "0".repeat(32),
        proof: String::new(),
    };
    answer.sign(secret, nonce);
    serde_json::to_string(&answer).unwrap()
}

/// Accepts one caller, proves itself, and goes on with `rest`.
fn coordinator<F>(
    listener: TcpListener,
    port: u16,
    rest: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send,
{
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let hello = read_request(&mut stream).await;
        assert!(hello.starts_with("POST /v1/hello HTTP/1.1\r\n"), "{hello}");
        assert!(hello.contains(&format!("host: 127.0.0.1:{port}\r\n")), "{hello}");
        let bearer = hello.lines().find_map(|line| line.strip_prefix("authorization: Bearer ")).unwrap();
        assert!(HelloCredential::from_bearer(bearer, &secret(), port).is_some());
        answer(&mut stream, "200 OK", &prove(&secret(), port, &hello)).await;
        rest(stream).await;
    })
}

#[tokio::test]
async fn whoever_cannot_prove_the_secret_gets_no_token() {
    let member = secret().token(Role::Member);
    let wrong_secret = |port: u16, hello: &str| prove(&Secret::new([8; KEY_LEN]), port, hello);
    let wrong_port = |port: u16, hello: &str| prove(&secret(), port ^ 1, hello);
    let nonsense = |_: u16, _: &str| "{}".to_owned();
    type Liar<'a> = &'a (dyn Fn(u16, &str) -> String + Sync);
    let liars: [Liar<'_>; 3] = [&wrong_secret, &wrong_port, &nonsense];
    for liar in liars {
        let (listener, port) = listen().await;
        let caller = tokio::spawn(async move { Connection::open(&secret(), port).await });
        let (mut stream, _) = listener.accept().await.unwrap();
        let hello = read_request(&mut stream).await;
        answer(&mut stream, "200 OK", &liar(port, &hello)).await;
        let mut more = String::new();
        stream.read_to_string(&mut more).await.unwrap();
        assert!(matches!(caller.await.unwrap(), Err(OpenError::Stranger { .. })));
        assert!(more.is_empty() && !hello.contains(member.expose()), "{hello}{more}");
    }
}

#[tokio::test]
async fn nobody_and_silence_are_told_apart() {
    let (listener, port) = listen().await;
    assert!(matches!(Connection::open(&secret(), port).await, Err(OpenError::Silent { .. })));
    drop(listener);
    assert!(matches!(Connection::open(&secret(), port).await, Err(OpenError::Refused)));
    let (listener, port) = listen().await;
    let closing = tokio::spawn(async move { drop(listener.accept().await.unwrap()) });
    assert!(matches!(Connection::open(&secret(), port).await, Err(OpenError::Refused)));
    closing.await.unwrap();
}

#[tokio::test]
async fn after_the_proof_requests_carry_the_token_on_the_same_connection() {
    let (listener, port) = listen().await;
    let server = coordinator(listener, port, async |mut stream| {
        let ping = read_request(&mut stream).await;
        assert!(ping.starts_with("GET /v1/ping "), "{ping}");
        assert!(ping.contains(&format!("Bearer {}\r\n", secret().token(Role::Member).expose())));
        answer(&mut stream, "200 OK", r#"{"instance":"i"}"#).await;
        read_request(&mut stream).await;
        let failure = r#"{"code":"unknown_window","message":"no such window"}"#;
        answer(&mut stream, "404 Not Found", failure).await;
        read_request(&mut stream).await;
    });
    let mut connection = Connection::open(&secret(), port).await.unwrap();
    assert_eq!(connection.hello().generation, 3);
    assert_eq!(connection.ping().await.unwrap(), Pong { instance: InstanceId("i".to_owned()) });
    let refused = connection.post::<Pong>("/v1/windows/w/take", &()).await.unwrap_err();
    assert!(
        matches!(&refused, CallError::Refused { status: 404, failure } if failure.code == "unknown_window")
    );
    let lost = connection.get::<Pong>("/v1/ping").await.unwrap_err();
    assert!(matches!(lost, CallError::Lost), "{lost}");
    server.await.unwrap();
}

#[tokio::test]
async fn notices_arrive_whole_however_they_are_cut() {
    let (listener, port) = listen().await;
    let server = coordinator(listener, port, async |mut stream| {
        let request = read_request(&mut stream).await;
        assert!(request.starts_with("GET /v1/windows/w/events?incarnation=9 "), "{request}");
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
        for part in [
            "{\"notice\":\"tick\"}\n{\"noti",
            "ce\":\"restart\"}\n",
            "{\"notice\":\"of_tomorrow\"}\n\n{\"notice\":\"stop\"}\n",
        ] {
            stream.write_all(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    });
    let connection = Connection::open(&secret(), port).await.unwrap();
    let window: WindowId = "w".parse().unwrap();
    let mut events = connection.events(&window, 9).await.unwrap();
    for expected in [Notice::Tick, Notice::Restart, Notice::Stop] {
        assert_eq!(events.next().await.unwrap(), Some(expected));
    }
    assert_eq!(events.next().await.unwrap(), None);
    server.await.unwrap();
}
