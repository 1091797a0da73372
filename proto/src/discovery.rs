//! The discovery file, the secret and the keys derived from it, and the mutual proof.
//!
//! The secret never crosses a wire. A party that wants to talk to whoever holds the coordinator's port
//! first says hello (`POST /v1/hello`) with a credential that only a holder of the secret can make, and that is
//! worth nothing to anybody else; the answer proves the coordinator. Only then, and on the same connection,
//! is a token sent.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::ids::{InstanceId, WindowId};

/// `discovery.json`: where the coordinator is. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Discovery {
    /// This run of the coordinator.
    pub instance: InstanceId,
    /// Its process id.
    pub pid: u32,
    /// Start time of that process in the kernel's own unit (Linux: clock ticks since boot), so that a reused
    /// pid is told from ours.
    pub pid_start: u64,
    /// Generation, see [`crate::ids::Term`].
    pub generation: u64,
    /// Port on 127.0.0.1 and ::1.
    pub port: u16,
    /// Version of the program.
    pub version: String,
    /// Oldest and newest control protocol it speaks.
    pub protocol: (u32, u32),
}

/// Length of [`Secret`] and of derived keys, in bytes.
pub const KEY_LEN: usize = 32;

/// The 32 random bytes of the file `secret`. Not printable.
#[derive(Clone)]
pub struct Secret([u8; KEY_LEN]);

/// A bearer token: 64 hexadecimal digits. Not printable by `Debug`.
#[derive(Clone)]
pub struct Token(String);

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An MCP client: the MCP routes, nothing else. `epoch` grows when the token is rotated.
    Client {
        /// How often the token was rotated; kept in `state.json`.
        epoch: u32,
    },
    /// An agent, the bridge or the command line: the routes under `/v1`.
    Member,
    /// A monitoring system: `/metrics`, which only tells figures.
    Metrics,
}

/// What lets a browser see the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePass {
    /// In the address that `baton open` gives the browser; for one use.
    Link,
    /// In the browser's cookie.
    Cookie,
    /// In the page itself, and in each request of it that changes something.
    Form,
}

/// Digits of the page's name that nobody can guess.
const PAGE_HOST_DIGITS: usize = 16;

impl Secret {
    /// Wraps the bytes of the file.
    pub fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The token for a role.
    pub fn token(&self, role: Role) -> Token {
        match role {
            Role::Client { epoch } => Token(hex(&self.derive(&["client", &epoch.to_string()]))),
            Role::Member => Token(hex(&self.derive(&["member"]))),
            Role::Metrics => Token(hex(&self.derive(&["metrics"]))),
        }
    }

    /// The token with which the coordinator calls one incarnation of the agent of `window`: worth nothing to whoever
    /// comes after it. `None` is for peers of control protocol 1, which knew one token for all.
    pub fn window_token(&self, window: &WindowId, incarnation: Option<u64>) -> Token {
        Token(hex(&match incarnation {
            Some(incarnation) => self.derive(&["agent", window.as_str(), &incarnation.to_string()]),
            None => self.derive(&["window", window.as_str()]),
        }))
    }

    /// The name by which a browser reaches the page, on any port: nobody without the secret can guess it, so that no web
    /// page can name it, and no other server on this machine is ever sent its cookies.
    pub fn page_host(&self) -> String {
        let digits = hex(&self.derive(&["page host"]));
        format!("baton-{}.localhost", &digits[..PAGE_HOST_DIGITS])
    }

    /// What opens the page, or keeps it open, of one run of the coordinator; `number` is never used twice in it.
    pub fn page_token(&self, pass: PagePass, instance: &InstanceId, number: u64) -> Token {
        let purpose = match pass {
            PagePass::Link => "page link",
            PagePass::Cookie => "page cookie",
            PagePass::Form => "page form",
        };
        Token(hex(&self.derive(&[purpose, &instance.0, &number.to_string()])))
    }

    /// The key under which the session ids of the older MCP revisions are sealed.
    pub fn seal_key(&self) -> [u8; KEY_LEN] {
        self.derive(&["seal"])
    }

    /// HMAC-SHA256 under the secret over length-prefixed parts, so that no two lists of parts collide.
    fn derive(&self, parts: &[&str]) -> [u8; KEY_LEN] {
        self.mac(parts).finalize().into_bytes().into()
    }

    fn mac(&self, parts: &[&str]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("invariant: HMAC takes any key length");
        mac.update(b"baton v1");
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Token {
    /// The token itself, for a header that is about to be sent.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares in constant time; the length of a token is public.
    pub fn matches(&self, presented: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(presented).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The credential of `POST /v1/hello`: sent as `Authorization: Bearer <nonce>.<mac>`.
///
/// It holds the port that the caller dialled: what a stranger on another port captures is refused by ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelloCredential {
    /// 32 hexadecimal digits chosen by the caller.
    pub nonce: String,
}

impl HelloCredential {
    /// The text behind `Bearer `.
    pub fn to_bearer(&self, secret: &Secret, port: u16) -> String {
        format!("{}.{}", self.nonce, hex(&secret.derive(&["hello", &self.nonce, &port.to_string()])))
    }

    /// Parses and checks a presented credential; `None` when it is malformed or was not made with `secret`.
    pub fn from_bearer(text: &str, secret: &Secret, port: u16) -> Option<Self> {
        let (nonce, mac) = text.split_once('.')?;
        if nonce.len() != 32 || !nonce.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let expected = hex(&secret.derive(&["hello", nonce, &port.to_string()]));
        bool::from(expected.as_bytes().ct_eq(mac.as_bytes())).then(|| Self { nonce: nonce.to_owned() })
    }
}

/// The coordinator's answer to a hello: its own nonce and the proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HelloAnswer {
    /// This run of the coordinator.
    pub instance: InstanceId,
    /// Its generation.
    pub generation: u64,
    /// Its port.
    pub port: u16,
    /// Its process id.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// Oldest and newest control protocol it speaks.
    pub protocol: (u32, u32),
    /// 32 hexadecimal digits chosen by the coordinator.
    pub nonce: String,
    /// HMAC over both nonces, port, generation and instance id.
    pub proof: String,
}

impl HelloAnswer {
    /// Fills in [`HelloAnswer::proof`].
    pub fn sign(&mut self, secret: &Secret, caller_nonce: &str) {
        self.proof = self.expected_proof(secret, caller_nonce);
    }

    /// True when the answer was made by a holder of the secret for this caller's nonce.
    pub fn is_proven(&self, secret: &Secret, caller_nonce: &str) -> bool {
        let expected = self.expected_proof(secret, caller_nonce);
        expected.as_bytes().ct_eq(self.proof.as_bytes()).into()
    }

    fn expected_proof(&self, secret: &Secret, caller_nonce: &str) -> String {
        let (port, generation) = (self.port.to_string(), self.generation.to_string());
        hex(&secret.derive(&["proof", caller_nonce, &self.nonce, &port, &generation, &self.instance.0]))
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_bound_to_its_port_and_secret() {
        let secret = Secret::new([7; KEY_LEN]);
        let hello = HelloCredential { nonce: "0123456789abcdef0123456789abcdef".to_owned() };
        let bearer = hello.to_bearer(&secret, 7717);
        assert_eq!(HelloCredential::from_bearer(&bearer, &secret, 7717), Some(hello));
        assert_eq!(HelloCredential::from_bearer(&bearer, &secret, 7718), None);
        assert_eq!(HelloCredential::from_bearer(&bearer, &Secret::new([8; KEY_LEN]), 7717), None);
        assert_eq!(HelloCredential::from_bearer("", &secret, 7717), None);
    }

    #[test]
    fn a_proof_is_bound_to_both_nonces() {
        let secret = Secret::new([7; KEY_LEN]);
        let mut answer = HelloAnswer {
            instance: InstanceId("i".to_owned()),
            generation: 3,
            port: 7717,
            pid: 1,
            version: "0".to_owned(),
            protocol: (1, 1),
            nonce: "s".to_owned(),
            proof: String::new(),
        };
        answer.sign(&secret, "c");
        assert!(answer.is_proven(&secret, "c"));
        assert!(!answer.is_proven(&secret, "d"));
        answer.generation = 4;
        assert!(!answer.is_proven(&secret, "c"));
    }

    #[test]
    fn secrets_do_not_print() {
        let secret = Secret::new([7; KEY_LEN]);
        assert_eq!(format!("{secret:?} {:?}", secret.token(Role::Member)), "Secret(..) Token(..)");
        assert_ne!(
            secret.token(Role::Client { epoch: 0 }).expose(),
            secret.token(Role::Client { epoch: 1 }).expose()
        );
    }
}
