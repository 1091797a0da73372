//! HTTP/1.1 written byte by byte: requests that no client library would send.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

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
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
    stream
}

/// Reads until the server closes the connection or one whole answer has come.
pub fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while !is_whole(&bytes) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n_read) => bytes.extend_from_slice(&buffer[..n_read]),
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
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
