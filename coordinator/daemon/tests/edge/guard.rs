//! The guard and the accept loop, byte by byte: who gets in, how much, and how slowly.

use std::time::Duration;

use baton_proto::discovery::Role;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{PATIENCE, World};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Writes bytes on a connection of its own and reads the answer to its end, or until it stalls.
async fn exchange(world: &World, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", world.port)).await.unwrap();
    // A refusal may come before everything is written.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ =
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection ends");
    String::from_utf8(answer).unwrap()
}

/// A ping with these lines of head instead of the right ones.
async fn ping(world: &World, target: &str, head: &[String]) -> String {
    let length = PING.len();
    let head: String = head.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!(
        "POST {target} HTTP/1.1\r\n{head}content-length: {length}\r\nconnection: close\r\n\r\n{PING}"
    );
    exchange(world, request.as_bytes()).await
}

fn head(world: &World) -> Vec<String> {
    vec![
        format!("host: 127.0.0.1:{}", world.port),
        format!("authorization: Bearer {}", world.token()),
        "content-type: application/json".to_owned(),
    ]
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[tokio::test]
async fn a_foreign_host_is_forbidden() {
    let world = World::start().await;
    let port = world.port;
    let mut bodies = std::collections::BTreeSet::new();
    let foreign = format!(
        "evil.com evil.com:{port} 127.0.0.1.evil.com localhost. localhost.:{port} 0.0.0.0:{port} 127.1:{port} \
         2130706433:{port} [::ffff:127.0.0.1]:{port} 127.0.0.1:1"
    );
    for host in foreign.split(' ') {
        let mut head = head(&world);
        head[0] = format!("host: {host}");
        let answer = ping(&world, "/mcp", &head).await;
        assert_eq!(status(&answer), "403", "{host}: {answer}");
        bodies.insert(answer.split_once("\r\n\r\n").unwrap().1.to_owned());
    }
    assert_eq!(bodies.len(), 1, "one constant answer");
    let missing = ping(&world, "/mcp", &head(&world)[1..]).await;
    assert!(["400", "403"].contains(&status(&missing)), "{missing}");
    let mut twice = head(&world);
    twice.push(twice[0].clone());
    assert!(["400", "403"].contains(&status(&ping(&world, "/mcp", &twice).await)));
    let absolute = format!("http://evil.com:{port}/mcp");
    assert_eq!(status(&ping(&world, &absolute, &head(&world)).await), "403");
    for ours in [format!("localhost:{port}"), format!("[::1]:{port}")] {
        let mut head = head(&world);
        head[0] = format!("host: {ours}");
        assert_eq!(status(&ping(&world, "/mcp", &head).await), "200", "{ours}");
    }
}

#[tokio::test]
async fn web_pages_are_forbidden_and_get_no_cors() {
    let world = World::start().await;
    for line in [
        "origin: null",
        "origin: http://localhost:3000",
        "origin: vscode-webview://x",
        "referer: http://localhost:3000/",
        "sec-fetch-site: same-origin",
        "sec-fetch-site: cross-site",
    ] {
        let mut head = head(&world);
        head.push(line.to_owned());
        let answer = ping(&world, "/mcp", &head).await;
        assert_eq!(status(&answer), "403", "{line}");
        assert!(!answer.to_lowercase().contains("access-control"), "{answer}");
    }
    for line in ["sec-fetch-mode: cors", "sec-fetch-site: none", "upgrade: websocket"] {
        let mut head = head(&world);
        head.push(line.to_owned());
        assert_eq!(status(&ping(&world, "/mcp", &head).await), "200", "{line}");
    }
    for kind in
        ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "application/jsonx"]
    {
        let mut head = head(&world);
        head[2] = format!("content-type: {kind}");
        assert_eq!(status(&ping(&world, "/mcp", &head).await), "415", "{kind}");
    }
    let preflight = format!(
        "OPTIONS /mcp HTTP/1.1\r\n{}\r\n{}\r\nconnection: close\r\n\r\n",
        head(&world)[0],
        head(&world)[1]
    );
    let answer = exchange(&world, preflight.as_bytes()).await;
    assert_eq!(status(&answer), "405");
    assert!(!answer.to_lowercase().contains("access-control"), "{answer}");
}

#[tokio::test]
async fn every_route_refuses_every_wrong_token_alike() {
    let world = World::start().await;
    let client = world.token();
    let member = world.secret.token(Role::Member).expose().to_owned();
    let metrics = world.secret.token(Role::Metrics).expose().to_owned();
    let old = world.secret.token(Role::Client { epoch: 7 }).expose().to_owned();
    let control = ["/v1/ping", "/v1/hello", "/v1/windows/a/take", "/v1/shutdown"];
    let routes = ["/mcp", "/mcp/windows/a", "/metrics", "/metrics/", "/", "/x"].into_iter().chain(control);
    let mut answers = std::collections::BTreeSet::new();
    for route in routes {
        let other = if route.starts_with("/mcp") { &member } else { &client };
        let own = match route {
            "/metrics" => &metrics,
            _ if route.starts_with("/mcp") => &client,
            _ => &member,
        };
        let third = if route == "/metrics" { &member } else { &metrics };
        let wrong = [
            String::new(),
            "authorization:".to_owned(),
            "authorization: Bearer".to_owned(),
            "authorization: Bearer ".to_owned(),
            format!("authorization: Bearer {}", &own[..63]),
            format!("authorization: Bearer {own}0"),
            format!("authorization: Basic {own}"),
            format!("authorization: Bearer {old}"),
            format!("authorization: Bearer {other}"),
            format!("authorization: Bearer {third}"),
            format!("authorization: Bearer {own}\r\nauthorization: Bearer {own}"),
        ];
        for line in wrong {
            let is_nowhere = ["/", "/x", "/metrics/"].contains(&route);
            if is_nowhere && line.ends_with(other.as_str()) {
                // What does not exist says so to everybody who may ask anything.
                continue;
            }
            let mut head = head(&world);
            head[1] = line.clone();
            head.retain(|line| !line.is_empty());
            let target = format!("{route}?token={own}&access_token={own}");
            let answer = ping(&world, &target, &head).await;
            assert_eq!(status(&answer), "401", "{route} {line}");
            let answer: String = answer.lines().filter(|line| !line.starts_with("date:")).collect();
            answers.insert(answer);
        }
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    let nul = format!("authorization: Bearer {client}\0");
    let mut with_nul = head(&world);
    with_nul[1] = nul;
    assert!(["400", "401"].contains(&status(&ping(&world, "/mcp", &with_nul).await)));
    let mut huge = head(&world);
    huge[1] = format!("authorization: Bearer {}", "a".repeat(1024 * 1024));
    assert!(["431", "none"].contains(&status(&ping(&world, "/mcp", &huge).await)));
    let host = &head(&world)[0];
    let probe = format!("GET /.well-known/oauth-authorization-server HTTP/1.1\r\n{host}\r\n\r\n");
    assert_eq!(status(&exchange(&world, probe.as_bytes()).await), "404");
}

#[tokio::test]
async fn sizes_are_bounded() {
    let world = World::start().await;
    let largest = 16 * 1024 * 1024;
    let post = async |length: usize| {
        let mut body = PING.to_owned();
        body.extend(std::iter::repeat_n(' ', length - body.len()));
        world.request("/mcp").body(body).send().await.map(|response| response.status().as_u16())
    };
    assert_eq!(post(largest).await.unwrap(), 200);
    assert_eq!(post(largest + 1).await.unwrap(), 413);
    // Without a length beforehand.
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "a".repeat(1 << 20)).repeat(17);
    let head = head(&world).join("\r\n");
    let chunked =
        format!("POST /mcp HTTP/1.1\r\n{head}\r\ntransfer-encoding: chunked\r\n\r\n{chunk}0\r\n\r\n");
    assert!(["413", "none"].contains(&status(&exchange(&world, chunked.as_bytes()).await)));
    let mut fits = vec![format!("x-long: {}", "a".repeat(15 * 1024))];
    fits.extend(self::head(&world));
    assert_eq!(status(&ping(&world, "/mcp", &fits).await), "200");
    let mut too_long = vec![format!("x-long: {}", "a".repeat(16 * 1024))];
    too_long.extend(self::head(&world));
    assert_eq!(status(&ping(&world, "/mcp", &too_long).await), "431");
}

#[tokio::test]
async fn ambiguous_framing_is_refused() {
    let world = World::start().await;
    let head = head(&world).join("\r\n");
    for framing in [
        "content-length: 3\r\ncontent-length: 4",
        "content-length: +3",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "content-length: 3\r\nx: y\r\n folded",
    ] {
        let request = format!("POST /mcp HTTP/1.1\r\n{head}\r\n{framing}\r\n\r\n{{}}x");
        let answer = exchange(&world, request.as_bytes()).await;
        assert!(["400", "none"].contains(&status(&answer)), "{framing}: {answer}");
    }
}

#[tokio::test]
async fn half_open_clients_do_not_keep_anybody_out() {
    let world = World::start().await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(("127.0.0.1", world.port)).await.unwrap();
        stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: 127").await.unwrap();
        silent.push(stream);
    }
    let answer = world.request("/mcp").body(PING).timeout(Duration::from_millis(1500)).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    // The oldest gave way at once, the rest is told when its time for a head is over.
    let started = std::time::Instant::now();
    let mut n_told = 0;
    for stream in &mut silent {
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("closed");
        let text = String::from_utf8(rest).unwrap();
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408 "), "{text}");
        n_told += usize::from(!text.is_empty());
    }
    assert!(n_told > 200, "{n_told}");
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[tokio::test]
async fn an_idle_connection_outlives_the_time_limit_for_heads() {
    let world = World::start().await;
    let mut stream = TcpStream::connect(("127.0.0.1", world.port)).await.unwrap();
    let head = head(&world).join("\r\n");
    let request = format!("POST /mcp HTTP/1.1\r\n{head}\r\ncontent-length: {}\r\n\r\n{PING}", PING.len());
    let mut buffer = [0; 4096];
    for pause in [0, 6500] {
        // Real time: the limit is one of the operating system's clock, and the answer must still come.
        tokio::time::sleep(Duration::from_millis(pause)).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let n_bytes = stream.read(&mut buffer).await.unwrap();
        assert!(buffer[..n_bytes].starts_with(b"HTTP/1.1 200"), "after {pause} ms");
    }
}
