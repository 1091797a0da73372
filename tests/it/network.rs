//! `baton serve --listen`: other machines reach `/mcp` with TLS, from a network that was named, by a name of the certificate
//! and with the client token, and nothing else.

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use baton_proto::discovery::{KEY_LEN, Role, Secret};
use baton_tests::client::{Client, ClientKind};
use baton_tests::process::{await_some, kill9, signal};
use baton_tests::raw::{Answer, Request, connect, read_answer};
use baton_tests::user::{OWNER, STRANGER};
use baton_tests::world::World;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustix::process::Signal;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(20);
/// Half of the time that a greeting may take.
const AT_ONCE: Duration = Duration::from_secs(5);
/// See `coordinator/gateway`.
const ADDRESS_MAX: usize = 64;

/// A certificate for `names` in the world's folder, by an authority of its own, whose file is `ca.pem`.
fn certified(world: &World, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> [PathBuf; 2] {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "the authority of a test");
    let ca_key = KeyPair::generate().expect("a key");
    let ca = params.self_signed(&ca_key).expect("a certificate");
    let issuer = Issuer::from_params(&params, &ca_key);
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut own = CertificateParams::new(names).expect("names");
    own.use_authority_key_identifier_extension = true;
    change(&mut own);
    let key = KeyPair::generate().expect("a key");
    let certificate = own.signed_by(&key, &issuer).expect("a certificate");
    let [ca_path, path, key_path] = ["ca.pem", "cert.pem", "key.pem"].map(|name| world.scratch().join(name));
    fs::write(ca_path, ca.pem()).expect("a file");
    fs::write(&path, certificate.pem()).expect("a file");
    fs::write(&key_path, key.serialize_pem()).expect("a file");
    fs::set_permissions(&key_path, fs::Permissions::from_mode(0o600)).expect("a mode");
    [path, key_path]
}

/// A world whose clients trust the authority of [`certified`].
fn world() -> World {
    let world = World::new();
    let ca = world.scratch().join("ca.pem").display().to_string();
    world.with_env("SSL_CERT_FILE", &ca).with_env("NODE_EXTRA_CA_CERTS", &ca)
}

/// `baton serve --listen` in a world.
struct Far {
    child: Child,
    port: u16,
    ca: PathBuf,
}

impl Far {
    fn new(world: &World, files: &[PathBuf; 2], allow: &str) -> Self {
        let mut command = world.baton_command(&["serve", "--listen", "127.0.0.1:0", "--allow", allow]);
        command.arg("--tls-cert").arg(&files[0]).arg("--tls-key").arg(&files[1]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("baton starts");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        output.read_line(&mut line).expect("a line");
        let url =
            line.trim().strip_prefix("Baton answers other machines at https://localhost:").expect(&line);
        let port = url.strip_suffix("/mcp").and_then(|port| port.parse().ok()).expect("a port");
        Self { child, port, ca: world.scratch().join("ca.pem") }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/mcp", self.port)
    }

    fn send(&self, request: &Request) -> Answer {
        let mut stream = greeted(self.port, &self.ca);
        // Who is refused early is not read to the end.
        let _ = stream.write_all(&request.to_bytes());
        read_answer(&mut stream)
    }

    /// Ends it as a user does; its exit code.
    fn end(mut self) -> Option<i32> {
        signal(self.child.id(), Signal::TERM);
        self.child.wait().expect("it ends").code()
    }
}

fn greeted(port: u16, ca: &Path) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).expect("a certificate")).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    StreamOwned::new(connection, connect(port))
}

/// What comes on a connection that says `bytes`, until it is closed, which is at once.
fn said(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(port);
    stream.set_read_timeout(Some(AT_ONCE)).expect("a socket takes a timeout");
    // Who is not heard may be reset.
    let _ = stream.write_all(bytes);
    let mut said = Vec::new();
    if let Err(error) = stream.read_to_end(&mut said) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the connection is closed");
    }
    said
}

fn names(client: &mut Client) -> String {
    client.try_call("list_windows", json!({})).expect("an answer").to_string()
}

#[test]
fn official_clients_far_away_call_on_over_the_death_of_the_coordinator() {
    let mut world = world();
    let files = certified(&world, &["localhost"], |_| {});
    world.window("shop");
    world.await_live("shop");
    let far = Far::new(&world, &files, "127.0.0.0/8");
    let kinds = [ClientKind::Python1, ClientKind::Python2, ClientKind::Client2];
    let mut clients = kinds.map(|kind| Client::connect(&world, kind, &far.url()));
    for client in &mut clients {
        assert!(names(client).contains("shop"));
    }
    kill9(world.coordinator_pid());
    world.await_live("shop");
    for client in &mut clients {
        assert!(names(client).contains("shop"), "after the coordinator was killed");
    }
    let call = |token: &str| {
        let call = Request::call(far.port, token, "get_breakpoints");
        far.send(&call.replacing("Host", &format!("localhost:{}", far.port)))
    };
    let old = world.token();
    assert_eq!(call(&old).status, 200);
    let new = world.baton_ok(&["token", "--rotate"]);
    assert_eq!(call(&old).status, 401, "a rotated token is worth nothing from then on");
    assert_eq!(call(&new).status, 200);
    clients.into_iter().for_each(Client::close);
    assert_eq!(far.end(), Some(0));
}

#[test]
fn t27_from_afar_nothing_is_there_but_mcp_and_nobody_comes_without_all() {
    let world = world();
    let files = certified(&world, &["localhost", "build.example"], |_| {});
    let far = Far::new(&world, &files, "127.0.0.1");
    let (client, host) = (world.token(), format!("localhost:{}", far.port));
    let secret = fs::read(world.home().join("secret")).expect("a secret");
    let secret = Secret::new(<[u8; KEY_LEN]>::try_from(secret).expect("its length"));
    let right = Request::call(far.port, &client, "list_windows").replacing("Host", &host);
    assert_eq!(far.send(&right).status, 200);
    assert_eq!(far.send(&right.clone().replacing("Host", "build.example")).status, 200, "a name of ours");
    let get = |path: &str, token: &str| {
        Request::bare(far.port, &format!("GET {path}"), token).replacing("Host", &host)
    };
    let bearer = |token: &str| right.clone().replacing("Authorization", &format!("Bearer {token}"));
    let refused = [
        (403, right.clone().replacing("Host", "evil.example")),
        (403, right.clone().replacing("Host", &format!("127.0.0.1:{}", far.port))),
        (403, right.clone().with("Host", "evil.example")),
        (403, right.clone().with("Origin", &format!("https://{host}"))),
        (403, right.clone().with("Referer", "https://evil.example/")),
        (403, right.clone().with("Sec-Fetch-Site", "same-origin")),
        (401, right.clone().without("Authorization")),
        (401, bearer("x")),
        (401, bearer(secret.token(Role::Member).expose())),
        (401, bearer(secret.token(Role::Metrics).expose())),
        (401, get("/mcp?token=x", "")),
        (404, get("/v1/status", &client)),
        (401, get("/v1/status", secret.token(Role::Member).expose())),
        (404, get("/metrics", &client)),
        (404, get("/open/x", &client)),
        (404, get("/", &client)),
        (404, get("/.well-known/oauth-protected-resource", "")),
        (415, right.clone().replacing("Content-Type", "text/plain")),
        (413, Request { body: b" ".repeat(16 * 1024 * 1024 + 1), ..right.clone() }),
    ];
    for (status, request) in refused {
        let answer = far.send(&request);
        let shown = (request.line, request.headers);
        assert_eq!(answer.status, status, "{shown:?}: {answer:?}");
        assert!(!answer.head.to_lowercase().contains("access-control"), "{answer:?}");
    }
    let plain = said(far.port, &right.to_bytes());
    assert!(!plain.starts_with(b"HTTP"), "without TLS there is no answer: {plain:?}");
    let others = Far::new(&world, &files, "10.0.0.0/8");
    for _ in 0..3 {
        assert!(said(others.port, &right.to_bytes()).is_empty(), "who may not connect hears nothing");
    }
    assert_eq!(others.end(), Some(0));

    let logged = world.baton_ok(&["logs"]);
    let told = logged.matches("refused a connection: its address is in no network of --allow").count();
    assert_eq!(told, 1, "once a minute: {logged}");

    let crowd: Vec<TcpStream> = (0..ADDRESS_MAX).map(|_| connect(far.port)).collect();
    assert!(said(far.port, b"").is_empty(), "one address has its share and no more");
    drop(crowd);
    let is_well = || Some(()).filter(|()| far.send(&right).status == 200);
    await_some(PATIENCE, is_well).expect("there is room again");
    assert_eq!(far.end(), Some(0));
}

#[test]
fn t9_another_user_of_this_machine_is_refused_as_on_the_port() {
    let world = World::of(OWNER);
    let files = certified(&world, &["localhost"], |_| {});
    OWNER.own(&files[1]);
    let far = Far::new(&world, &files, "127.0.0.0/8");
    let token = world.token();
    let call = |token: &str| {
        let call = Request::call(far.port, token, "list_windows");
        far.send(&call.replacing("Host", &format!("localhost:{}", far.port)))
    };
    assert_eq!(OWNER.act(|| call(&token)).status, 200);
    assert_eq!(STRANGER.act(|| call("guess")).status, 403);
    assert_eq!(world.token(), token, "what is no token of ours changes nothing");
    assert_eq!(STRANGER.act(|| call(&token)).status, 403);
    let fresh = world.token();
    assert_ne!(fresh, token, "it is revoked before that is answered");
    assert_eq!(OWNER.act(|| call(&token)).status, 401, "what leaked is worth nothing to anybody");
    assert_eq!(OWNER.act(|| call(&fresh)).status, 200);
    let told = format!("user {} on this machine used the client token", STRANGER.id());
    let printed = world.baton(&["status"]);
    assert!(printed.err.contains(&told), "{printed:?}");

    let crowd: Vec<TcpStream> = STRANGER.act(|| (0..ADDRESS_MAX).map(|_| connect(far.port)).collect());
    assert!(STRANGER.act(|| said(far.port, b"")).is_empty(), "they have their share and no more");
    assert_eq!(OWNER.act(|| call(&fresh)).status, 200, "and it is not ours");
    drop(crowd);
    assert_eq!(far.end(), Some(0));
}

#[test]
fn what_is_missing_or_wrong_is_told_before_anybody_is_answered() {
    let world = world();
    let [certificate, key] = certified(&world, &["localhost"], |_| {});
    let [certificate, key] = [&certificate, &key].map(|path| path.to_str().expect("a plain path"));
    let listen = ["serve", "--listen", "127.0.0.1:0"];
    let with = |more: &[&str]| world.baton(&[&listen[..], more].concat());
    let tls = ["--tls-cert", certificate, "--tls-key", key];
    for (arguments, missing) in [
        (&[][..], "--tls-cert <FILE>"),
        (&["--tls-cert", certificate, "--tls-key", key], "--allow <CIDR>"),
        (&["--allow", "10.0.0.0/8", "--tls-cert", certificate], "--tls-key <FILE>"),
    ] {
        let printed = with(arguments);
        assert!(printed.code == 64 && printed.err.contains(missing), "{arguments:?}: {printed:?}");
    }
    let alone = world.baton(&["serve", "--allow", "10.0.0.0/8"]);
    assert!(alone.code == 64 && alone.err.contains("--listen <ADDRESS:PORT>"), "{alone:?}");
    let odd = with(&[&tls[..], &["--allow", "10.0.0.0/40"]].concat());
    assert!(odd.code == 64 && odd.err.contains("192.168.1.0/24"), "{odd:?}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let all = [&tls[..], &["--allow", "10.0.0.0/8"]].concat();
    let printed = world.baton(&[&["serve", "--listen", &address][..], &all].concat());
    assert!(
        printed.code == 69 && printed.err.contains(&format!("cannot listen on {address}")),
        "{printed:?}"
    );
    fs::set_permissions(key, fs::Permissions::from_mode(0o644)).expect("a mode");
    let open = with(&all);
    assert!(open.code == 69 && open.err.contains("can be read by everybody"), "{open:?}");
    assert!(open.err.contains(&format!("hint: close it with `chmod 600 {key}`")), "{open:?}");
    certified(&world, &["localhost"], |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    let expired = with(&all);
    assert!(expired.code == 69 && expired.err.contains("expired on Jan  1 00:00:00 2020"), "{expired:?}");
    assert!(world.status().is_none(), "nothing was started");
}
