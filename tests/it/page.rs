//! The page, byte by byte: who may see it, what it tells, and what a person can do there. A real browser looks at it in
//! `tests/vscode/page.test.mjs`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use baton_tests::process::await_some;
use baton_tests::raw::{Answer, Request};
use baton_tests::user::{OWNER, STRANGER};
use baton_tests::world::World;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);

/// A page that is open in a browser.
struct Browser {
    port: u16,
    host: String,
    cookie: String,
    form: String,
}

/// Host and path of a new link.
fn link(world: &World) -> (String, String) {
    let url = world.baton_ok(&["open", "--print"]);
    let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    (host.to_owned(), format!("/{path}"))
}

fn get(port: u16, host: &str, path: &str) -> Request {
    Request::bare(port, &format!("GET {path}"), "").without("Authorization").replacing("Host", host)
}

impl Browser {
    fn open(world: &World) -> Self {
        let (host, path) = link(world);
        let port = world.port();
        let answer = get(port, &host, &path).send(port);
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie =
            answer.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a cookie");
        let mut browser = Self { port, host, cookie: cookie.to_owned(), form: String::new() };
        let document = browser.get("/").send(port).body;
        let form =
            document.split("name=\"baton-form\" content=\"").nth(1).and_then(|rest| rest.split('"').next());
        browser.form = form.expect("the document holds what it sends back").to_owned();
        browser
    }

    fn get(&self, path: &str) -> Request {
        get(self.port, &self.host, path).with("Cookie", &self.cookie)
    }

    fn post(&self, path: &str) -> Request {
        Request::post(self.port, path, "", "{}")
            .without("Authorization")
            .replacing("Host", &self.host)
            .with("Cookie", &self.cookie)
            .with("Origin", &format!("http://{}", self.host))
            .with("Sec-Fetch-Site", "same-origin")
            .with("baton-form", &self.form)
    }

    fn send(&self, request: &Request) -> Answer {
        request.send(self.port)
    }

    /// What the stream of the page says first: all there is to see, and the calls when there were any.
    fn first_events(&self, last: &str) -> (Value, Value) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
        let head = format!("GET /events HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", self.host, self.cookie);
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut text = String::new();
        let mut piece = [0; 4096];
        let data = |text: &str, name: &str| -> Option<Value> {
            let (_, rest) = text.split_once(&format!("event: {name}\ndata: "))?;
            serde_json::from_str(rest.split_once("\n\n")?.0).ok()
        };
        while data(&text, last).is_none() {
            let n_read = stream.read(&mut piece).expect("the stream goes on");
            assert!(n_read > 0, "the stream ended: {text}");
            text += &String::from_utf8_lossy(&piece[..n_read]);
        }
        (data(&text, "overview").expect("it comes first"), data(&text, "calls").unwrap_or_default())
    }
}

#[test]
fn the_page_tells_who_is_live_and_why_and_does_what_a_person_wants() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    world.window("weather");
    let status = world.await_status("both are there", |status| status.windows.len() == 2);
    let id = |name: &str| {
        let mut windows = status.windows.iter();
        windows.find(|window| window.name == name).expect("it is there").id.to_string()
    };
    let token = world.token();
    for tool in ["get_breakpoints", "list_windows", "no_such_tool"] {
        assert_eq!(Request::call(world.port(), &token, tool).send(world.port()).status, 200);
    }
    let browser = Browser::open(&world);
    let (overview, calls) = browser.first_events("calls");
    assert_eq!(overview["live"], id("shop").as_str());
    let why = |name: &str| {
        let windows = overview["windows"].as_array().expect("a list");
        windows.iter().find(|window| window["name"] == name).expect("it is there")["why"].clone()
    };
    assert_eq!((why("shop"), why("weather")), ("no other window was live".into(), "shop is live".into()));
    assert_eq!(overview["clients"][0]["name"], "raw");
    let told: Vec<String> = calls
        .as_array()
        .expect("a list")
        .iter()
        .map(|call| format!("{} {} {}", call["tool"], call["window"], call["state"]["error"]))
        .collect();
    let of_shop = format!("\"get_breakpoints\" \"{}\" null", id("shop"));
    assert_eq!(
        told,
        [&of_shop, "\"list_windows\" null null", &format!("\"other\" \"{}\" \"tool_error\"", id("shop"))]
    );

    let taken = browser.send(&browser.post(&format!("/windows/{}/take", id("weather"))));
    assert_eq!(taken.status, 200, "{taken:?}");
    world.await_live("weather");
    let (overview, _) = browser.first_events("overview");
    let story = overview["story"].as_array().expect("a list").iter();
    let lives: Vec<String> = story
        .filter(|one| one["what"]["kind"] == "live")
        .map(|one| format!("{} {}", one["window"], one["what"]["rule"]))
        .collect();
    assert_eq!(lives, ["\"shop\" \"R1\"", "\"weather\" \"R4\""]);
    assert_eq!(browser.send(&browser.post(&format!("/windows/{}/stop", id("weather")))).status, 200);
    world.await_nobody_live();
    let gone = browser.send(&browser.post("/windows/nobody/take"));
    assert_eq!((gone.status, gone.body.contains("not registered")), (409, true), "{gone:?}");
    let older = browser.send(&browser.get("/calls"));
    assert!(older.body.contains("get_breakpoints") && older.status == 200, "{older:?}");
    told_of_the_log(&browser);
}

/// What the page shows of the log: lines of a level, about a call, and nothing when there is nothing new.
fn told_of_the_log(browser: &Browser) {
    let look = |query: &str| browser.send(&browser.get(&format!("/logs?{query}")));
    let lines = |query: &str| -> Value { serde_json::from_str(&look(query).body).expect("it is JSON") };
    let all = lines("level=info");
    let ready = all["lines"].as_array().expect("a list").iter();
    let mut ready = ready
        .filter(|line| line["text"].as_str().is_some_and(|text| text.contains("the coordinator is ready")));
    assert!(ready.next().is_some_and(|line| line["kind"] == "baton" && line["level"] == "INFO"), "{all}");
    assert_eq!(lines("level=error")["lines"], json!([]));
    assert_eq!(lines("level=info&call=no-such-call")["lines"], json!([]));
    let is_settled = || {
        let stamp = lines("level=info")["stamp"].as_str().expect("a stamp").to_owned();
        Some(()).filter(|()| look(&format!("level=info&stamp={stamp}")).status == 204)
    };
    await_some(PATIENCE, is_settled).expect("with the same logs there is nothing to draw");
}

#[test]
fn t26_a_link_is_for_one_use_and_for_a_person() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let port = world.port();
    let (host, path) = link(&world);
    // What a page of somebody else's could do with a link, if it knew one: no answer, and the link is as good as before.
    for (name, value) in [
        ("Sec-Fetch-Mode", "no-cors"),
        ("Sec-Fetch-Mode", "cors"),
        ("Sec-Fetch-Dest", "iframe"),
        ("Sec-Fetch-Dest", "image"),
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
    ] {
        let answer = get(port, &host, &path).with(name, value).send(port);
        assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{name}: {value}: {answer:?}");
    }
    let at = |host: &str| get(port, host, &path).send(port);
    let own = format!("127.0.0.1:{port}");
    let guessed = format!("baton-0123456789abcdef.localhost:{port}");
    let elsewhere = host.replace(&port.to_string(), &(port + 1).to_string());
    for (other, status) in
        [(&own, 401), (&format!("localhost:{port}"), 401), (&guessed, 403), (&elsewhere, 403)]
    {
        assert_eq!(at(other).status, status, "{other}");
    }
    let opened = get(port, &host, &path)
        .with("Sec-Fetch-Mode", "navigate")
        .with("Sec-Fetch-Dest", "document")
        .with("Sec-Fetch-Site", "cross-site")
        .send(port);
    let cookie = opened.header("set-cookie").unwrap_or_default();
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict"), "{opened:?}");
    let closed = at(&host);
    assert!(closed.status == 401 && closed.body.contains("Run <code>baton open</code>"), "{closed:?}");
    // Whatever is wrong, the same bytes.
    let without = get(port, &host, "/").send(port);
    let invented = get(port, &host, "/").with("Cookie", "baton-page=0").send(port);
    assert_eq!((&without.body, &invented.body), (&closed.body, &closed.body));
    assert_eq!((without.status, invented.status), (401, 401));
}

#[test]
fn t26_no_page_but_ours_reads_or_does_anything() {
    let mut world = World::new();
    world.window("shop");
    world.await_live("shop");
    let browser = Browser::open(&world);
    for path in ["/", "/events", "/calls", "/logs", "/streams", "/page.js", "/icon.svg"] {
        let bare = get(world.port(), &browser.host, path).send(world.port());
        assert_eq!(
            (bare.status, bare.body.contains("shop")),
            (401, false),
            "{path} without a cookie: {bare:?}"
        );
        for (name, value) in [
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
            ("Origin", "null"),
            ("Origin", "http://evil.example"),
        ] {
            let answer = browser.send(&browser.get(path).with(name, value));
            assert_eq!(answer.status, 403, "{path} {name}: {value}: {answer:?}");
        }
        // Cookies do not know of ports, nor names that look alike.
        for host in [format!("127.0.0.1:{}", world.port()), format!("localhost:{}", world.port())] {
            let answer = browser.send(&browser.get(path).replacing("Host", &host));
            assert_eq!(answer.status, 401, "{path} at {host}: {answer:?}");
        }
    }
    let document = browser.send(&browser.get("/"));
    for (name, wanted) in [
        ("content-security-policy", "default-src 'none'"),
        ("content-security-policy", "frame-ancestors 'none'"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ] {
        assert!(document.header(name).is_some_and(|value| value.contains(wanted)), "{name}: {document:?}");
    }
    assert_eq!(document.header("access-control-allow-origin"), None);
}

#[test]
fn t26_what_changes_something_shows_its_origin_and_what_stands_in_the_page() {
    let mut world = World::new();
    world.window("shop");
    let status = world.await_live("shop");
    let id = &status.windows[0].id;
    let browser = Browser::open(&world);
    let (take, stop) = (format!("/windows/{id}/take"), format!("/windows/{id}/stop"));
    let good = browser.post(&stop);
    let another = Browser::open(&world);
    let cases = [
        ("no cookie", good.clone().without("Cookie"), 401),
        ("no form", good.clone().without("baton-form"), 403),
        ("the cookie as form", good.clone().replacing("baton-form", &browser.cookie), 403),
        ("the form of another page", good.clone().replacing("baton-form", &another.form), 403),
        ("events without a form", browser.post("/streams/on").without("baton-form"), 403),
        ("events by a link", browser.get("/streams/on"), 404),
        ("no origin", good.clone().without("Origin"), 403),
        ("another origin", good.clone().replacing("Origin", "http://evil.example"), 403),
        (
            "the origin of the URL for clients",
            good.clone().replacing("Origin", &format!("http://127.0.0.1:{}", world.port())),
            403,
        ),
        ("another site", good.clone().replacing("Sec-Fetch-Site", "same-site"), 403),
        ("typed by hand", good.clone().replacing("Sec-Fetch-Site", "none"), 403),
        ("a form's own type", good.clone().replacing("Content-Type", "text/plain"), 415),
        (
            "another method",
            {
                let mut put = good.clone();
                put.line = put.line.replace("POST", "PUT");
                put.with("Content-Length", "2")
            },
            405,
        ),
        ("a path of the control API", browser.post("/v1/shutdown"), 404),
        ("MCP", browser.post("/mcp"), 404),
        ("a window that is none", browser.post("/windows/..%2F/stop"), 404),
    ];
    for (what, request, status) in cases {
        let answer = browser.send(&request);
        assert_eq!(answer.status, status, "{what}: {answer:?}");
    }
    world.await_live("shop");
    assert!(browser.send(&browser.get("/streams")).body.contains("\"on\":false"), "nobody switched it");
    assert_eq!(browser.send(&browser.post(&take)).status, 200, "it was good all the time");
}

#[test]
fn t26_a_page_ends_with_its_token_and_with_its_coordinator() {
    let world = World::new();
    world.baton_ok(&["up"]);
    let browser = Browser::open(&world);
    assert_eq!(browser.send(&browser.get("/")).status, 200);
    world.baton_ok(&["token", "--rotate"]);
    assert_eq!(browser.send(&browser.get("/")).status, 401, "the client token was rotated");
    let browser = Browser::open(&world);
    let (host, path) = link(&world);
    world.baton_ok(&["down"]);
    world.baton_ok(&["up"]);
    assert_eq!(browser.send(&browser.get("/")).status, 401, "a cookie of an earlier coordinator");
    assert_eq!(get(world.port(), &host, &path).send(world.port()).status, 401, "its link");
    assert_eq!(Browser::open(&world).host, browser.host, "a bookmark stays good");
}

#[test]
fn t26_another_user_with_a_link_and_a_cookie_sees_nothing() {
    let world = World::of(OWNER);
    world.baton_ok(&["up"]);
    let browser = Browser::open(&world);
    let (host, path) = link(&world);
    for request in [get(world.port(), &host, &path), browser.get("/"), browser.post("/windows/x/take")] {
        let answer = STRANGER.act(|| request.send(world.port()));
        assert!(matches!(answer.status, 0 | 403), "{}: {answer:?}", request.line);
    }
    assert_eq!(get(world.port(), &host, &path).send(world.port()).status, 200, "the link was not used");
}

#[test]
fn t20_what_leads_a_browser_to_the_page_is_a_file_of_the_users_own() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let world = World::new();
    let bin = world.scratch().join("bin");
    std::fs::create_dir(&bin).expect("a temporary folder");
    // What a desktop starts a browser with: it notes what it is given.
    let noted = world.scratch().join("noted");
    let script = format!("#!/bin/sh\necho \"$@\" > {}.new; mv {0}.new {0}\n", noted.display());
    std::fs::write(bin.join("xdg-open"), script).expect("a temporary folder");
    std::fs::set_permissions(bin.join("xdg-open"), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = world.baton_command(&["open"]);
    let output = command.env("PATH", path).env("DISPLAY", ":0").output().expect("baton starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("opens in your browser"), "{output:?}");
    let given = baton_tests::process::await_some(PATIENCE, || std::fs::read_to_string(&noted).ok());
    let file = world.home().join("open.html");
    assert_eq!(given.as_deref().map(str::trim), file.to_str(), "no link is in the arguments");
    let found = std::fs::metadata(&file).expect("it was written");
    assert_eq!(found.mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).expect("ours");
    let url = text.split("url=http://").nth(1).and_then(|rest| rest.split('"').next()).expect("an address");
    let (host, path) = url.split_once('/').expect("an address");
    let answer = get(world.port(), host, &format!("/{path}")).send(world.port());
    assert_eq!(answer.status, 200, "{answer:?}");
}
