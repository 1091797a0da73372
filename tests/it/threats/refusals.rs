//! Refusals are read by the clients that there are, however much they are still sending.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use baton_tests::{place, raw};
use serde_json::Value;

use super::Target;

/// Sizes of bodies in MB; each is sent with a wrong token and with the right one.
const SIZES: [usize; 6] = [17, 20, 24, 28, 32, 40];

/// Late heads are looked for once a second; the machine may be busy.
const LATE: Duration = Duration::from_secs(5);
/// The clocks of two processes.
const EARLY: Duration = Duration::from_millis(50);

/// Sends each body and prints, one line a request, what it read.
const PYTHON: &str = r#"
import http.client, json, sys, urllib.error, urllib.request
port, right, sizes, style = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
for size in sizes:
    for token in ("wrong", right):
        head = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        body = b"x" * (size * 1000 * 1000)
        try:
            if style == "http.client":
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                connection.request("POST", "/mcp", body, head)
                answer = connection.getresponse()
                read = [answer.status, answer.read().decode()]
            else:
                request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", body, head)
                try:
                    urllib.request.urlopen(request, timeout=30)
                    read = [0, "accepted"]
                except urllib.error.HTTPError as error:
                    read = [error.code, error.read().decode()]
        except OSError as error:
            read = [0, repr(error)]
        print(json.dumps(read), flush=True)
"#;

const NODE: &str = r#"
const [port, right, sizes] = [process.argv[1], process.argv[2], JSON.parse(process.argv[3])];
for (const size of sizes) {
    for (const token of ["wrong", right]) {
        let read;
        try {
            const answer = await fetch(`http://127.0.0.1:${port}/mcp`, {
                method: "POST",
                headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
                body: Buffer.alloc(size * 1000 * 1000, "x"),
            });
            read = [answer.status, await answer.text()];
        } catch (error) {
            read = [0, String(error.cause ?? error)];
        }
        console.log(JSON.stringify(read));
    }
}
"#;

/// All requests of one kind of client are read as they should.
fn check(kind: &str) {
    let target = Target::new();
    let sizes = serde_json::to_string(&SIZES).expect("numbers");
    let mut command = match kind {
        "fetch" => target.world.command(place::node()),
        _ => target.world.command(place::python()),
    };
    match kind {
        "fetch" => command.args(["--input-type=module", "-e", NODE, "--"]),
        _ => command.args(["-c", PYTHON]),
    };
    command.args([&target.port().to_string(), &target.client, &sizes, kind]);
    let output = command.output().expect("the client starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    let read: Vec<(u16, String)> =
        printed.lines().map(|line| serde_json::from_str(line).expect("a pair")).collect();
    assert_eq!(read.len(), SIZES.len() * 2, "{kind}: {}", String::from_utf8_lossy(&output.stderr));
    for (idx, (status, text)) in read.iter().enumerate() {
        let (wanted, says) = if idx % 2 == 0 { (401, "baton token") } else { (413, "exceeds") };
        assert_eq!(*status, wanted, "{kind}, request {idx} of {}: {text}", read.len());
        assert!(text.contains(says), "{kind}: {text}");
    }
    target.assert_healthy();
}

#[test]
fn t16_pythons_http_client_reads_its_refusals() {
    check("http.client");
}

#[test]
fn t16_pythons_urllib_reads_its_refusals() {
    check("urllib");
}

#[test]
fn t16_nodes_fetch_reads_its_refusals() {
    check("fetch");
}

/// A head has 5 s to arrive, each piece of a body 30 s; who is told so reads it, although the rest follows.
#[test]
fn t17_who_sends_too_slowly_reads_its_refusal() {
    let target = Target::new();
    let request = target.ping().to_bytes();
    let n_head = request.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends") + 4;
    let slow = |n_sent: usize, bound: Duration| {
        let mut stream = raw::connect(target.port());
        stream.set_read_timeout(Some(bound + LATE)).expect("a socket takes a timeout");
        stream.write_all(&request[..n_sent]).expect("the coordinator reads");
        let start = Instant::now();
        let answer = raw::read_answer(&mut stream);
        let taken = start.elapsed();
        assert!((bound - EARLY..bound + LATE).contains(&taken), "{taken:?}: {answer:?}");
        stream.write_all(&request[n_sent..]).expect("the connection is not reset");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the connection is not reset");
        assert_eq!(rest, b"", "the request was not run");
        answer
    };
    let (head, body) = std::thread::scope(|scope| {
        let head = scope.spawn(|| slow(n_head - 10, Duration::from_secs(5)));
        let body = slow(n_head + 10, Duration::from_secs(30));
        (head.join().expect("it is answered"), body)
    });
    for answer in [&head, &body] {
        assert_eq!(answer.status, 408, "{answer:?}");
        assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
        assert!(answer.body.contains("timed out"), "{answer:?}");
    }
    target.assert_healthy();
}

/// Each status by itself, with a body that nobody reads.
#[test]
fn every_refusal_is_read_to_its_end() {
    let target = Target::new();
    let body = vec![b'x'; 20_000_000];
    let large = || {
        let mut request = target.ping();
        request.body = body.clone();
        request
    };
    let cases = [
        (401, large().replacing("Authorization", "Bearer wrong")),
        (403, large().with("Origin", "http://localhost")),
        (404, large().with("X", "y")),
        (413, large()),
        (415, large().replacing("Content-Type", "text/plain")),
        (431, large().with("X-Filler", &"a".repeat(17_000))),
    ];
    for (status, mut request) in cases {
        if status == 404 {
            request.line = "POST /.well-known/x".to_owned();
        }
        for _ in 0..4 {
            let answer = target.send(&request);
            assert_eq!(answer.status, status, "{}", answer.head);
            // A head that was too large is answered by the HTTP library, without a text.
            assert!(status == 431 || !answer.body.is_empty(), "{answer:?}");
        }
    }
    let answer: Value = serde_json::from_str(&target.send(&large()).body).expect("JSON");
    assert_eq!(answer["error"]["code"], -32600);
}
