//! What must not work, tried on a real coordinator, byte by byte; the numbers are those of `docs/security.md`.

mod content;
mod gate;
mod load;
mod logs;
mod refusals;
mod sessions;

use baton_proto::discovery::{KEY_LEN, Role, Secret};
use baton_tests::raw::{Answer, Request};
use baton_tests::world::World;
use serde_json::{Value, json};

/// A running coordinator with nothing registered, and the tokens of this state folder.
struct Target {
    world: World,
    client: String,
    member: String,
}

impl Target {
    fn new() -> Self {
        let world = World::new();
        world.baton_ok(&["up"]);
        let client = world.token();
        let member = secret(&world).token(Role::Member).expose().to_owned();
        Self { world, client, member }
    }

    fn port(&self) -> u16 {
        self.world.port()
    }

    /// A correct `ping`, which the edge answers itself.
    fn ping(&self) -> Request {
        Request::post(self.port(), "/mcp", &self.client, ping_body(1).to_string())
    }

    /// Sends a request to the coordinator.
    fn send(&self, request: &Request) -> Answer {
        request.send(self.port())
    }

    /// The coordinator still answers a correct client.
    fn assert_healthy(&self) {
        let answer = self.send(&self.ping());
        assert_eq!(answer.status, 200, "after the attack: {answer:?}");
    }
}

fn secret(world: &World) -> Secret {
    let bytes = std::fs::read(world.home().join("secret")).expect("the secret is there");
    Secret::new(<[u8; KEY_LEN]>::try_from(bytes).expect("the secret has its length"))
}

fn ping_body(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

fn initialize_body() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "threats", "version": "1" }
        }
    })
}
