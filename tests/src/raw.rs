//! HTTP/1.1 written byte by byte: requests that no client library would send.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

/// No server of ours lets a whole request wait longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

/// An answer, as far as tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status code; 0 when the connection was closed without one.
    pub status: u16,
    /// Header lines as they came.
    pub head: String,
    /// Body, chunked or not, as text.
    pub body: String,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// A request in the making, correct until a test spoils it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Request line without the version.
    pub line: String,
    /// Header lines.
    pub headers: Vec<(String, String)>,
    /// Body; its length is declared unless a header already does.
    pub body: Vec<u8>,
}

impl Request {
    /// A correct JSON POST.
    pub fn post(port: u16, path: &str, token: &str, body: impl Into<Vec<u8>>) -> Self {
        let mut request = Self::bare(port, &format!("POST {path}"), token);
        request = request.with("Content-Type", "application/json");
        request = request.with("Accept", "application/json, text/event-stream");
        request.body = body.into();
        request
    }

    /// A correct call of a tool without arguments, of the stateless revision.
    pub fn call(port: u16, token: &str, tool: &str) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": {}, "_meta": meta } });
        Self::post(port, "/mcp", token, call.to_string())
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", "tools/call")
            .with("Mcp-Name", tool)
    }

    /// A correct request without a body.
    pub fn bare(port: u16, line: &str, token: &str) -> Self {
        let headers = vec![
            ("Host".to_owned(), format!("127.0.0.1:{port}")),
            ("Authorization".to_owned(), format!("Bearer {token}")),
        ];
        Self { line: line.to_owned(), headers, body: vec![] }
    }

    /// With one more header line.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without a header.
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
        self
    }

    /// With a header's value replaced.
    pub fn replacing(self, name: &str, value: &str) -> Self {
        self.without(name).with(name, value)
    }

    /// The bytes of the request.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{} HTTP/1.1\r\n", self.line);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        let declares = |name: &str| self.headers.iter().any(|(found, _)| found.eq_ignore_ascii_case(name));
        if !declares("Content-Length") && !declares("Transfer-Encoding") && self.line.starts_with("POST") {
            text += &format!("Content-Length: {}\r\n", self.body.len());
        }
        text += "Connection: close\r\n\r\n";
        [text.as_bytes(), &self.body].concat()
    }

    /// Sends it on a connection of its own.
    pub fn send(&self, port: u16) -> Answer {
        send(port, &self.to_bytes())
    }

    /// Sends it to a Unix socket, on a connection of its own.
    pub fn send_to_socket(&self, path: &Path) -> Answer {
        let mut stream = UnixStream::connect(path).expect("the socket accepts connections");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
        // As below.
        let _ = stream.write_all(&self.to_bytes());
        read_answer(&mut stream)
    }
}

/// Sends bytes on a connection of their own and reads until the server closes it.
pub fn send(port: u16, bytes: &[u8]) -> Answer {
    let mut stream = connect(port);
    // A server that refuses early closes before it has read everything: not the sender's fault.
    let _ = stream.write_all(bytes);
    read_answer(&mut stream)
}

/// A connection to the coordinator.
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the coordinator accepts connections");
    prepare(&stream);
    stream
}

fn prepare(stream: &TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
}

/// Reads until the server closes the connection or one whole answer has come.
pub fn read_answer(stream: &mut impl Read) -> Answer {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while !is_whole(&bytes) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n_read) => bytes.extend_from_slice(&buffer[..n_read]),
        }
    }
    parse(&bytes)
}

fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let answer = Answer { status: 0, head: head.to_owned(), body: String::new() };
    match answer.header("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => answer.header("transfer-encoding").is_some() && body.ends_with("0\r\n\r\n"),
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// What became of a request.
#[derive(Debug)]
pub enum Sent {
    /// It has a whole answer.
    Answered(Answer),
    /// Nobody listens: nothing was sent.
    Refused,
    /// The connection ended before there was a whole answer.
    Torn,
}

/// A client that keeps its connection open from one request to the next, and opens another one when it is told that
/// an answer is the last.
pub struct KeepAlive {
    port: u16,
    stream: Option<TcpStream>,
    /// Connections that were opened.
    pub n_opened: usize,
}

impl KeepAlive {
    /// Not connected yet.
    pub fn new(port: u16) -> Self {
        Self { port, stream: None, n_opened: 0 }
    }

    /// The port that it connects to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends a request and reads its answer; `None` when the connection was torn before there was a whole one.
    pub fn send(&mut self, request: &Request) -> Option<Answer> {
        match self.try_send(request) {
            Sent::Answered(answer) => Some(answer),
            Sent::Refused => panic!("the coordinator accepts connections"),
            Sent::Torn => None,
        }
    }

    /// [`KeepAlive::send`] to a coordinator that may have ended.
    pub fn try_send(&mut self, request: &Request) -> Sent {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => match TcpStream::connect(("127.0.0.1", self.port)) {
                Ok(stream) => {
                    self.n_opened += 1;
                    prepare(&stream);
                    stream.set_nodelay(true).expect("a socket takes an option");
                    stream
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Sent::Refused,
                Err(_) => return Sent::Torn,
            },
        };
        self.exchange(stream, request).map_or(Sent::Torn, Sent::Answered)
    }

    fn exchange(&mut self, mut stream: TcpStream, request: &Request) -> Option<Answer> {
        let bytes = String::from_utf8(request.to_bytes()).expect("a request of text");
        let bytes = bytes.replacen("Connection: close\r\n", "", 1);
        stream.write_all(bytes.as_bytes()).ok()?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 16 * 1024];
        while !is_whole(&bytes) {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(n_read) => bytes.extend_from_slice(&buffer[..n_read]),
            }
        }
        let answer = parse(&bytes);
        if answer.header("connection").is_none_or(|value| !value.eq_ignore_ascii_case("close")) {
            self.stream = Some(stream);
        }
        Some(answer)
    }
}
