//! Every route with good and bad input, through the router without a socket.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use baton_election::election::Start;
use baton_election::keeper::Keeper;
use baton_http::passes::Passes;
use baton_link::explain::Explanation;
use baton_page::Page;
use baton_proto::control::{Notice, Settings};
use baton_proto::discovery::{HelloAnswer, HelloCredential, KEY_LEN, Secret};
use baton_proto::ids::InstanceId;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::{Control, ControlState, Order, PortRefused};

const PORT: u16 = 7717;

struct Api {
    router: Router,
    orders: mpsc::Receiver<Order>,
}

fn secret() -> Secret {
    Secret::new([7; KEY_LEN])
}

fn api() -> Api {
    let start = Start {
        instance: InstanceId("instance".to_owned()),
        generation: 3,
        known: 0,
        is_trusted: true,
        settings: Settings::default(),
        previous: None,
        previous_is_dead: false,
        vacated: None,
    };
    let (keeper, _saved) = Keeper::spawn(start, 0);
    let (_, ports) = watch::channel(vec![PORT, 7800]);
    let passes = Passes::new(&secret(), &InstanceId("instance".to_owned()));
    let page = Page::new(keeper.clone(), passes, ports.clone(), Default::default(), CancellationToken::new());
    let (orders, mut all) = mpsc::channel(1);
    let (others, inbox) = mpsc::channel(1);
    let owner = keeper.clone();
    // What the owner of the process does about settings, without a file.
    tokio::spawn(async move {
        loop {
            let order = tokio::select! {
                order = all.recv() => order,
                () = others.closed() => None,
            };
            match order {
                None => return,
                Some(Order::ChangeSettings(change, reply)) => {
                    let changed = owner.change_settings(*change).await.map_err(Explanation::new);
                    reply.send(changed).unwrap();
                }
                Some(other) => others.send(other).await.unwrap(),
            }
        }
    });
    Api {
        router: Control::new(ControlState::new(
            keeper,
            secret(),
            ports,
            orders,
            watch::channel(Vec::new()).1,
            page,
        ))
        .0,
        orders: inbox,
    }
}

fn registration(name: &str) -> Value {
    json!({
        "protocol": 1, "version": "0.1.0", "name": name, "kind": "headless", "folders": ["/src"],
        "auto_start": true, "pid": 10, "port": 4000, "incarnation": 1, "of_a_newer_version": {},
    })
}

impl Api {
    async fn send(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        let (status, answer) = self.send(request).await;
        (status.as_u16(), answer)
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("POST", path, body).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let (status, answer) = self.send(Request::get(path).body(Body::empty()).unwrap()).await;
        (status.as_u16(), answer)
    }

    async fn register(&self, id: &str, name: &str) -> Value {
        let (status, answer) = self.post(&format!("/v1/windows/{id}/register"), registration(name)).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

#[tokio::test]
async fn a_hello_is_answered_with_a_proof_and_only_to_a_holder_of_the_secret() {
    let api = api();
    let nonce = "0123456789abcdef0123456789abcdef".to_owned();
    let hello = |secret: &Secret, port| {
        let bearer = HelloCredential { nonce: nonce.clone() }.to_bearer(secret, port);
        Request::post("/v1/hello")
            .header("authorization", format!("Bearer {bearer}"))
            .body(Body::empty())
            .unwrap()
    };
    for port in [PORT, 7800] {
        let (status, answer) = api.send(hello(&secret(), port)).await;
        let answer: HelloAnswer = serde_json::from_value(answer).unwrap();
        assert_eq!((status.as_u16(), answer.port, answer.generation), (200, port, 3));
        assert!(answer.is_proven(&secret(), &nonce));
    }
    let mut refusals = vec![hello(&secret(), 7718), hello(&Secret::new([8; KEY_LEN]), PORT)];
    refusals.push(Request::post("/v1/hello").body(Body::empty()).unwrap());
    refusals
        .push(Request::post("/v1/hello").header("authorization", "Bearer x.y").body(Body::empty()).unwrap());
    for request in refusals {
        let (status, answer) = api.send(request).await;
        assert_eq!((status.as_u16(), answer["code"].as_str()), (401, Some("unauthorized")));
    }
}

#[tokio::test]
async fn windows_register_and_the_user_commands_them() {
    let api = api();
    let first = api.register("a1", "web").await;
    assert_eq!((&first["state"], &first["term"]), (&json!("live"), &json!([3, 1])));
    assert_eq!(first["instance"], "instance");
    assert_eq!(api.register("b1", "api").await["state"], "standby");
    let (status, outcome) = api.post("/v1/windows/api/take", json!({})).await;
    assert_eq!(status, 200);
    assert_eq!(outcome, json!({"window": {"id": "b1", "name": "api"}, "state": "live", "term": [3, 2]}));
    let (_, started) = api.post("/v1/windows/a1/start", json!({})).await;
    assert_eq!(started["term"], json!([3, 3]));
    let (_, stopped) = api.post("/v1/windows/a1/stop", json!({})).await;
    assert_eq!((&stopped["state"], &stopped["term"]), (&json!("off"), &Value::Null));
    let (_, off) = api.call("PATCH", "/v1/windows/b1", json!({"auto_start": false})).await;
    assert_eq!(off["state"], "off");
    let (_, on) = api.call("PATCH", "/v1/windows/b1", json!({"auto_start": true})).await;
    assert_eq!((&on["state"], &on["term"]), (&json!("live"), &json!([3, 4])));
    let (_, restarted) = api.post("/v1/windows/b1/restart", json!({})).await;
    assert_eq!(restarted["term"], Value::Null);
    let (_, status) = api.get("/v1/status").await;
    assert_eq!((&status["live"], &status["awaiting"]), (&Value::Null, &json!("b1")));
}

#[tokio::test]
async fn status_has_every_field_that_scripts_depend_on() {
    let api = api();
    api.register("a1", "web").await;
    let beat =
        json!({"incarnation": 1, "seq": 1, "focused": true, "debug_sessions": [{"id": "s", "name": "n"}]});
    let (status, _) = api.post("/v1/windows/a1/heartbeat", beat).await;
    assert_eq!(status, 200);
    let (_, mut status) = api.get("/v1/status").await;
    assert!(status["pid"].is_u64() && status["version"].is_string());
    let focus = status["windows"][0]["last_focus"].take();
    assert!(focus.as_str().is_some_and(|text| text.ends_with('Z') && text.len() == 20), "{focus}");
    let window = json!({
        "id": "a1", "name": "web", "folders": ["/src"], "kind": "headless", "state": "live", "responsive": true,
        "auto_start": true, "pid": 10, "debug_sessions": ["s"], "last_focus": null,
    });
    let expected = json!({
        "running": true, "pid": status["pid"], "version": status["version"], "generation": 3,
        "url": "http://127.0.0.1:7717/mcp", "port": 7717, "live": "a1", "term": [3, 1], "awaiting": null,
        "windows": [window],
    });
    assert_eq!(status, expected);
}

#[tokio::test]
async fn a_registration_out_of_bounds_is_refused_and_changes_nothing() {
    let api = api();
    let long = "x".repeat(300);
    let cases = [
        ("port", json!(22), "invalid"),
        ("port", json!(PORT), "invalid"),
        ("port", json!("10.0.0.1:4000"), "invalid"),
        ("port", json!(70000), "invalid"),
        ("socket", json!("coordinator"), "invalid"),
        ("socket", json!("w-/../../x"), "invalid"),
        ("socket", json!("w-"), "invalid"),
        ("socket", json!(format!("w-{long}")), "invalid"),
        ("protocol", json!(3), "protocol"),
        ("protocol", json!(0), "protocol"),
        ("name", json!(""), "invalid"),
        ("name", json!("a\nb"), "invalid"),
        ("name", json!(long), "invalid"),
        ("folders", json!(["relative"]), "invalid"),
        ("folders", json!(vec!["/x"; 65]), "invalid"),
        ("pid", json!(0), "invalid"),
        ("kind", json!("tab"), "invalid"),
        ("highest_term", json!([u64::MAX, 1]), "impossible_term"),
        ("incarnation", json!(-1), "invalid"),
    ];
    for (field, value, code) in cases {
        let mut registration = registration("web");
        registration[field] = value.clone();
        let (status, answer) = api.post("/v1/windows/a1/register", registration).await;
        assert!((400..500).contains(&status), "{field}: {value}: {status}");
        assert_eq!(answer["code"], code, "{field}: {value}: {answer}");
        assert!(answer["message"].as_str().is_some_and(|message| message.len() > 10));
    }
    let (status, answer) = api.post("/v1/windows/a.b/register", registration("web")).await;
    assert_eq!((status, &answer["code"]), (422, &json!("invalid")));
    assert_eq!(api.get("/v1/status").await.1["windows"], json!([]));
}

/// There is no field for an address: whatever an agent sends, calls go to the loopback alone.
#[tokio::test]
async fn an_address_in_a_registration_is_of_no_effect() {
    let api = api();
    let mut registration = registration("web");
    registration["host"] = json!("10.0.0.1");
    registration["address"] = json!("10.0.0.1:80");
    assert_eq!(api.post("/v1/windows/a1/register", registration).await.0, 200);
    assert!(!api.get("/v1/status").await.1.to_string().contains("10.0.0.1"));
}

#[tokio::test]
async fn windows_that_are_unknown_or_ambiguous_are_named_in_the_failure() {
    let api = api();
    api.register("a1", "web").await;
    api.register("a2", "web").await;
    let (status, failure) = api.post("/v1/windows/nope/take", json!({})).await;
    assert_eq!((status, &failure["code"]), (404, &json!("unknown_window")));
    let (status, failure) = api.post("/v1/windows/web/take", json!({})).await;
    assert_eq!((status, &failure["code"]), (409, &json!("ambiguous_window")));
    let candidates = json!([{"id": "a1", "name": "web"}, {"id": "a2", "name": "web"}]);
    assert_eq!(failure["candidates"], candidates);
    let (status, _) = api.post("/v1/windows/%2Fsrc/take", json!({})).await;
    assert_eq!(status, 409);
    assert_eq!(api.get("/v1/status").await.1["term"], json!([3, 1]));
}

/// Who restarts the coordinator and names a window is not told that there is none.
#[tokio::test(start_paused = true)]
async fn a_window_that_registers_again_is_waited_for_after_a_restart() {
    let api = api();
    let late = async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        api.register("a1", "web").await;
    };
    let ((status, outcome), ()) = tokio::join!(api.post("/v1/windows/web/take", json!({})), late);
    assert_eq!((status, &outcome["window"]["id"]), (200, &json!("a1")), "{outcome}");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let asked = tokio::time::Instant::now();
    let (status, _) = api.post("/v1/windows/nope/take", json!({})).await;
    assert_eq!((status, asked.elapsed()), (404, Duration::ZERO), "later nobody waits");
}

#[tokio::test]
async fn what_cannot_be_read_is_a_failure() {
    let api = api();
    let post = |content_type: &str, body: &str| {
        Request::post("/v1/windows/a1/register")
            .header("content-type", content_type)
            .body(Body::from(body.to_owned()))
            .unwrap()
    };
    let deep = format!("{{\"of_a_newer_version\":{}", "[".repeat(5000));
    let duplicate = r#"{"incarnation":1,"incarnation":2}"#;
    let huge = format!("\"{}\"", "x".repeat(1 << 20));
    let cases = [
        (post("text/plain", "{}"), 415, "not_json"),
        (post("application/json", "{"), 400, "bad_request"),
        (post("application/json", &deep), 400, "bad_request"),
        (post("application/json", "[]"), 422, "invalid"),
        (post("application/json", duplicate), 422, "invalid"),
        (post("application/json", &huge), 413, "too_large"),
        (Request::get("/v1/nothing").body(Body::empty()).unwrap(), 404, "unknown_route"),
        (Request::delete("/v1/status").body(Body::empty()).unwrap(), 405, "wrong_method"),
        (Request::get("/v1/windows/a1/events").body(Body::empty()).unwrap(), 400, "bad_request"),
        (
            Request::get("/v1/windows/a1/events?incarnation=1").body(Body::empty()).unwrap(),
            404,
            "not_registered",
        ),
    ];
    for (request, expected, code) in cases {
        let (status, answer) = api.send(request).await;
        assert_eq!((status.as_u16(), answer["code"].as_str()), (expected, Some(code)), "{answer}");
    }
}

#[tokio::test]
async fn an_event_stream_begins_with_the_state_and_its_end_is_the_windows_end() {
    let api = api();
    api.register("a1", "web").await;
    let request = Request::get("/v1/windows/a1/events?incarnation=1").body(Body::empty()).unwrap();
    let response = api.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let notice: Notice = serde_json::from_slice(&first).unwrap();
    assert!(first.ends_with(b"\n"));
    assert!(matches!(notice, Notice::State { term: Some(_), .. }), "{notice:?}");
    drop(body);
    // The keeper hears of it before it takes another command.
    let (_, status) = api.get("/v1/status").await;
    assert_eq!((&status["windows"], &status["awaiting"]), (&json!([]), &json!("a1")));
}

#[tokio::test]
async fn messages_of_an_older_agent_are_stale() {
    let api = api();
    let mut newer = registration("web");
    newer["incarnation"] = json!(5);
    api.post("/v1/windows/a1/register", newer).await;
    for (verb, body) in [
        ("register", registration("web")),
        ("heartbeat", json!({"incarnation": 1, "seq": 9})),
        ("leave", json!({"incarnation": 1})),
    ] {
        let (status, answer) = api.post(&format!("/v1/windows/a1/{verb}"), body).await;
        assert_eq!((status, &answer["code"]), (409, &json!("stale_incarnation")), "{verb}");
    }
    let (status, answer) = api.post("/v1/windows/a1/heartbeat", json!({"incarnation": 6, "seq": 1})).await;
    assert_eq!((status, &answer["code"]), (404, &json!("not_registered")));
    assert_eq!(api.post("/v1/windows/a1/leave", json!({"incarnation": 5})).await, (200, json!({})));
    assert_eq!(api.get("/v1/status").await.1["windows"], json!([]));
}

#[tokio::test]
async fn settings_are_changed_in_part_and_checked() {
    let api = api();
    let (status, settings) = api.call("PATCH", "/v1/settings", json!({"routing": "any"})).await;
    assert_eq!((status, &settings["routing"], &settings["ai_handover"]), (200, &json!("any"), &json!("ask")));
    assert_eq!(api.get("/v1/settings").await.1, settings);
    let bad = [
        json!({"toolsets": []}),
        json!({"toolsets": ["nope"]}),
        json!({"hold_calls_ms": 300_001}),
        json!({"routing": "some"}),
        json!({"follow_focus": 1}),
    ];
    for change in bad {
        let (status, failure) = api.call("PATCH", "/v1/settings", change.clone()).await;
        assert_eq!((status, &failure["code"]), (422, &json!("invalid")), "{change}");
    }
    assert_eq!(api.get("/v1/settings").await.1, settings);
}

#[tokio::test]
async fn a_rotated_token_is_answered_when_the_owner_has_written_it() {
    let mut api = api();
    let mut orders = std::mem::replace(&mut api.orders, mpsc::channel(1).1);
    tokio::spawn(async move {
        for rotated in [Ok(1), Err(Explanation::new("the disk is full"))] {
            let Some(Order::RotateToken(reply)) = orders.recv().await else { panic!("no order") };
            let _ = reply.send(rotated);
        }
    });
    assert_eq!(api.post("/v1/token/rotate", json!({})).await, (200, json!({"epoch": 1})));
    let (status, failure) = api.post("/v1/token/rotate", json!({})).await;
    assert_eq!((status, &failure["code"]), (500, &json!("not_written")));
}

#[tokio::test]
async fn port_and_shutdown_are_orders_to_the_owner() {
    let mut api = api();
    assert_eq!(api.post("/v1/port", json!({"port": 80})).await.0, 422);
    let mut orders = std::mem::replace(&mut api.orders, mpsc::channel(1).1);
    let owner = tokio::spawn(async move {
        for refused in [None, Some("port 7719 is in use by pid 1")] {
            let Some(Order::ChangePort(_, reply)) = orders.recv().await else { panic!("no order") };
            let _ = reply.send(refused.map_or(Ok(()), |why| Err(PortRefused(Explanation::new(why)))));
        }
        matches!(orders.recv().await, Some(Order::Shutdown))
    });
    let (status, changed) = api.post("/v1/port", json!({"port": 7719})).await;
    assert_eq!((status, changed), (200, json!({"url": "http://127.0.0.1:7719/mcp"})));
    let (status, failure) = api.post("/v1/port", json!({"port": 7719})).await;
    assert_eq!((status, &failure["code"]), (409, &json!("port_refused")));
    assert_eq!(api.post("/v1/shutdown", json!({})).await, (200, json!({})));
    assert!(owner.await.unwrap());
    assert_eq!(api.post("/v1/shutdown", json!({})).await.0, 503);
}

#[tokio::test]
async fn ping_names_the_run() {
    assert_eq!(api().get("/v1/ping").await, (200, json!({"instance": "instance"})));
}
