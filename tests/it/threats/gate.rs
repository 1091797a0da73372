//! Who gets in: Host, Origin, methods, tokens.

use baton_proto::control::WindowKind;
use baton_tests::raw::Request;
use serde_json::json;

use super::{Target, initialize_body, ping_body};

#[test]
fn t1_dns_rebinding_is_refused() {
    let target = Target::new();
    let port = target.port();
    let hosts = [
        "evil.com".to_owned(),
        format!("evil.com:{port}"),
        format!("127.0.0.1.evil.com:{port}"),
        format!("localhost.:{port}"),
        format!("0.0.0.0:{port}"),
        format!("127.1:{port}"),
        format!("2130706433:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("127.0.0.1:{}", port + 1),
        "127.0.0.1".to_owned(),
        format!(" 127.0.0.1:{port}@evil.com"),
        String::new(),
    ];
    for host in hosts {
        let answer = target.send(&target.ping().replacing("Host", &host));
        assert!((400..500).contains(&answer.status), "Host {host:?}: {answer:?}");
        assert!(!answer.body.contains("jsonrpc\":\"2.0\",\"id\":1,\"result"), "Host {host:?}: {answer:?}");
    }
    let missing = target.send(&target.ping().without("Host"));
    assert!((400..500).contains(&missing.status), "no Host: {missing:?}");
    let twice = target.send(&target.ping().with("Host", &format!("127.0.0.1:{port}")));
    assert!((400..500).contains(&twice.status), "two Hosts: {twice:?}");
    let mut elsewhere = target.ping();
    elsewhere.line = format!("POST http://evil.com:{port}/mcp");
    let answer = target.send(&elsewhere);
    assert!((400..500).contains(&answer.status), "absolute URI: {answer:?}");
    target.assert_healthy();
}

#[test]
fn t1_our_own_names_are_accepted() {
    let target = Target::new();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let answer = target.send(&target.ping().replacing("Host", &format!("{host}:{}", target.port())));
        assert_eq!(answer.status, 200, "Host {host}: {answer:?}");
    }
}

#[test]
fn t2_requests_of_web_pages_are_refused() {
    let target = Target::new();
    let origin = format!("http://127.0.0.1:{}", target.port());
    let headers = [
        ("Origin", "null"),
        ("Origin", "http://localhost:3000"),
        ("Origin", "vscode-webview://x"),
        ("Origin", origin.as_str()),
        ("Origin", "https://evil.com"),
        ("Referer", "https://evil.com/page"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    for (name, value) in headers {
        let answer = target.send(&target.ping().with(name, value));
        assert_eq!(answer.status, 403, "{name}: {value}: {answer:?}");
    }
    for content in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
    {
        let answer = target.send(&target.ping().replacing("Content-Type", content));
        assert_eq!(answer.status, 415, "{content}: {answer:?}");
    }
    // Node's own fetch says this, and is no web page.
    let node = target.ping().with("Sec-Fetch-Mode", "cors");
    assert_eq!(target.send(&node).status, 200);
    assert_eq!(target.send(&target.ping().with("Sec-Fetch-Site", "none")).status, 200);
}

#[test]
fn t3_no_preflight_and_no_upgrade() {
    let target = Target::new();
    let preflight = Request::bare(target.port(), "OPTIONS /mcp", "")
        .without("Authorization")
        .with("Origin", "https://evil.com")
        .with("Access-Control-Request-Method", "POST");
    let plain = Request::bare(target.port(), "OPTIONS /mcp", &target.client);
    let upgrade = Request::bare(target.port(), "GET /mcp", &target.client)
        .with("Upgrade", "websocket")
        .with("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .with("Sec-WebSocket-Version", "13");
    for request in [preflight, plain, upgrade] {
        let answer = target.send(&request);
        assert!((400..500).contains(&answer.status), "{request:?}: {answer:?}");
        assert!(!answer.head.to_lowercase().contains("access-control-"), "{answer:?}");
        assert!(!answer.head.to_lowercase().contains("upgrade:"), "{answer:?}");
    }
    let ordinary = target.send(&target.ping());
    assert!(!ordinary.head.to_lowercase().contains("access-control-"), "{ordinary:?}");
}

/// Every route with the token that it wants.
fn routes(target: &Target) -> Vec<(Request, bool)> {
    let (port, client, member) = (target.port(), &target.client, &target.member);
    let post = |path: &str| Request::post(port, path, member, "{}");
    vec![
        (Request::post(port, "/mcp", client, ping_body(1).to_string()), true),
        (Request::post(port, "/mcp/windows/x", client, ping_body(1).to_string()), true),
        (Request::bare(port, "GET /mcp", client), true),
        (Request::bare(port, "DELETE /mcp", client), true),
        (Request::bare(port, "GET /v1/ping", member), false),
        (Request::bare(port, "GET /v1/status", member), false),
        (Request::bare(port, "GET /v1/settings", member), false),
        (Request::bare(port, "GET /v1/windows/x/events?incarnation=1", member), false),
        (post("/v1/windows/x/register"), false),
        (post("/v1/windows/x/heartbeat"), false),
        (post("/v1/windows/x/leave"), false),
        (post("/v1/windows/x/take"), false),
        (post("/v1/windows/x/start"), false),
        (post("/v1/windows/x/stop"), false),
        (post("/v1/windows/x/restart"), false),
        (post("/v1/token/rotate"), false),
        (post("/v1/token/heard"), false),
        (post("/v1/port"), false),
        (post("/v1/shutdown"), false),
    ]
}

#[test]
fn t5_every_route_wants_its_token() {
    let target = Target::new();
    let mut bodies = std::collections::BTreeSet::new();
    for (request, is_client_route) in routes(&target) {
        let (right, wrong_role) =
            if is_client_route { (&target.client, &target.member) } else { (&target.member, &target.client) };
        let spoilt = [
            request.clone().without("Authorization"),
            request.clone().replacing("Authorization", ""),
            request.clone().replacing("Authorization", "Bearer "),
            request.clone().replacing("Authorization", &format!("Bearer {}", &right[..63])),
            request.clone().replacing("Authorization", &format!("Bearer {right}0")),
            request.clone().replacing("Authorization", &format!("Bearer {wrong_role}")),
            request.clone().replacing("Authorization", &format!("Basic {right}")),
            request.clone().replacing("Authorization", &format!("Bearer {}", right.to_uppercase())),
        ];
        for bad in spoilt {
            let answer = target.send(&bad);
            assert_eq!(answer.status, 401, "{}: {:?}: {answer:?}", bad.line, bad.headers);
            bodies.insert(answer.body);
        }
        let mut in_query = request.clone().without("Authorization");
        let separator = if in_query.line.contains('?') { '&' } else { '?' };
        in_query.line = format!("{}{separator}token={right}&access_token={right}", in_query.line);
        assert_eq!(target.send(&in_query).status, 401, "{}", in_query.line);
        let with_nul = request.clone().replacing("Authorization", &format!("Bearer {right}\0"));
        let answer = target.send(&with_nul);
        assert!((400..500).contains(&answer.status), "{}: NUL: {answer:?}", with_nul.line);
    }
    assert_eq!(bodies.len(), 1, "the refusal is the same everywhere: {bodies:?}");
    let nowhere = Request::bare(target.port(), "GET /nowhere", "x");
    assert_eq!(target.send(&nowhere).status, 401, "what is not there is not told to strangers");
    let huge = target.ping().replacing("Authorization", &format!("Bearer {}", "a".repeat(1 << 20)));
    let answer = target.send(&huge);
    assert!(matches!(answer.status, 0 | 431), "1 MB of token: {answer:?}");
    // Nothing above was carried out.
    target.assert_healthy();
}

#[test]
fn t11_a_client_token_does_nothing_but_mcp() {
    let target = Target::new();
    let mut world_windows = target.world.status().expect("it runs").windows;
    for (request, is_client_route) in routes(&target) {
        if !is_client_route {
            let as_client = request.replacing("Authorization", &format!("Bearer {}", target.client));
            assert_eq!(target.send(&as_client).status, 401, "{}", as_client.line);
        }
    }
    world_windows.retain(|window| window.kind == WindowKind::Headless);
    assert!(world_windows.is_empty());
    target.assert_healthy();
}

#[test]
fn t11_a_rotated_token_ends_at_once() {
    let target = Target::new();
    let rotated = target.world.baton_ok(&["token", "--rotate"]);
    let new_token = target.world.token();
    assert_ne!(new_token, target.client);
    assert!(rotated.is_empty() || rotated.contains(&new_token), "{rotated}");
    assert_eq!(target.send(&target.ping()).status, 401);
    let fresh = Request::post(target.port(), "/mcp", &new_token, initialize_body().to_string());
    assert_eq!(target.send(&fresh).status, 200);
}

#[test]
fn t15_a_registration_names_no_address_and_no_low_port() {
    let target = Target::new();
    let registration = |port: u64, more: serde_json::Value| {
        let mut body = json!({
            "protocol": 1, "version": "0", "name": "trap", "kind": "headless", "folders": ["/tmp"],
            "auto_start": false, "pid": 1, "port": port, "incarnation": 1
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        target.send(&Request::post(
            target.port(),
            "/v1/windows/trap/register",
            &target.member,
            body.to_string(),
        ))
    };
    for port in [0, 22, 80, 1023, 65_536] {
        let answer = registration(port, json!({}));
        assert!((400..500).contains(&answer.status), "port {port}: {answer:?}");
    }
    let answer = registration(19_999, json!({ "name": "x".repeat(100_000) }));
    assert!((400..500).contains(&answer.status), "a huge name: {answer:?}");
    assert!(target.world.status().expect("it runs").windows.is_empty());
    // An address is not a field: it is ignored, and calls go to 127.0.0.1 all the same.
    let answer = registration(19_999, json!({ "address": "10.0.0.1", "host": "10.0.0.1" }));
    assert!(answer.status == 200 || (400..500).contains(&answer.status), "{answer:?}");
    target.assert_healthy();
}

#[test]
fn probing_clients_get_a_plain_404() {
    let target = Target::new();
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server/mcp"] {
        let answer =
            target.send(&Request::bare(target.port(), &format!("GET {path}"), "").without("Authorization"));
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
    }
}
