//! CORE: method, id and what routing needs out of a message, and nothing more.
//!
//! Names are matched exactly, a name that differs only in case is refused, and so is a name that comes twice:
//! two readers of one message must not see two things.

use std::borrow::Cow;
use std::fmt;

use baton_proto::bounds::{self, Excess};
use baton_proto::edge::Handle;
use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::fault::{RpcError, code};

/// A message of a client.
#[derive(Debug)]
pub enum Message<'a> {
    /// Wants an answer.
    Request(Request<'a>),
    /// Wants none.
    Notification {
        /// What it is about.
        method: Cow<'a, str>,
        /// Its parameters, unread.
        params: Option<&'a RawValue>,
    },
    /// Answers a request. We never send any, so it is of no use to anybody.
    Answer,
}

/// A request of a client.
#[derive(Debug)]
pub struct Request<'a> {
    /// A string or an integer, as it was written.
    pub id: &'a RawValue,
    /// What is to be done.
    pub method: Cow<'a, str>,
    /// Its parameters, unread.
    pub params: Option<&'a RawValue>,
    /// Why it is refused, whatever it asks for.
    pub excess: Option<Excess>,
}

/// What the edge reads of the parameters of any request.
#[derive(Debug, Default, Deserialize)]
pub struct CommonParams<'a> {
    /// What is said of the request itself.
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<Meta<'a>>,
    /// Of a tool or prompt.
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
    /// Of a resource.
    #[serde(borrow, default)]
    pub uri: Option<Cow<'a, str>>,
    /// Of a tool, unread.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    /// Where a list goes on.
    #[serde(borrow, default)]
    pub cursor: Option<Cow<'a, str>>,
}

/// What the edge reads of `_meta`.
#[derive(Debug, Deserialize)]
pub struct Meta<'a> {
    /// The revision of the stateless era.
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub revision: Option<Cow<'a, str>>,
    /// What the client can do, unread.
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub capabilities: Option<&'a RawValue>,
    /// Who the client says it is.
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub client: Option<ClientName<'a>>,
}

/// Who a client says it is.
#[derive(Debug, Deserialize)]
pub struct ClientName<'a> {
    /// Its name for programs.
    #[serde(borrow, default)]
    pub name: Option<Cow<'a, str>>,
}

/// Parameters of `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams<'a> {
    /// The revision that the client asks for.
    #[serde(borrow)]
    pub protocol_version: Cow<'a, str>,
    /// Who the client says it is.
    #[serde(borrow, default)]
    pub client_info: Option<ClientName<'a>>,
}

/// Parameters of `notifications/cancelled`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledParams<'a> {
    /// The request that is cancelled, as its id was written.
    #[serde(borrow)]
    pub request_id: &'a RawValue,
}

/// Parameters of `subscriptions/listen`.
#[derive(Debug, Deserialize)]
pub struct ListenParams {
    /// What it wants to hear.
    pub notifications: ListenFilter,
}

/// What a listener wants to hear; of all kinds we have this one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenFilter {
    /// Whether to be told that the list of tools may have changed.
    #[serde(default)]
    pub tools_list_changed: Option<bool>,
}

/// The arguments of a tool call by which it is routed. One of another type is left to the tool to complain of.
#[derive(Debug, Default)]
pub struct RoutingArguments<'a> {
    /// The window that is named.
    pub window: Option<Cow<'a, str>>,
    /// The handle of a debug session.
    pub session: Option<Cow<'a, str>>,
    /// What a tool that has actions is to do.
    pub action: Option<Cow<'a, str>>,
}

/// Reads the outermost object of a message.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, RpcError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| RpcError::new(code::PARSE_ERROR, format!("the message is not UTF-8: {error}")))?;
    let excess = bounds::check(bytes).err();
    if let Some(Excess::Depth) = excess {
        return Err(RpcError::new(code::PARSE_ERROR, Excess::Depth.to_string()));
    }
    if text.trim_start().starts_with('[') {
        let why = "batches are not supported; send one message per request";
        return Err(RpcError::new(code::INVALID_REQUEST, why));
    }
    let fields: Fields<'_> = serde_json::from_str(text).map_err(|error| {
        let code = if error.is_data() { code::INVALID_REQUEST } else { code::PARSE_ERROR };
        RpcError::new(code, format!("not a JSON-RPC message: {error}"))
    })?;
    fields.into_message(excess)
}

/// Reads parameters; absent ones are an empty object.
pub fn params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, RpcError> {
    serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| RpcError::new(code::INVALID_PARAMS, format!("invalid params: {error}")))
}

/// Reads the arguments of a tool call by which it is routed.
pub fn routing_arguments(arguments: Option<&RawValue>) -> Result<RoutingArguments<'_>, RpcError> {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow, default)]
        window: Option<&'a RawValue>,
        #[serde(borrow, default)]
        session_id: Option<&'a RawValue>,
        #[serde(borrow, default)]
        session: Option<&'a RawValue>,
        #[serde(borrow, default, rename = "sessionId")]
        camel_session: Option<&'a RawValue>,
        #[serde(borrow, default)]
        action: Option<&'a RawValue>,
    }
    let Some(arguments) = arguments else { return Ok(RoutingArguments::default()) };
    if !arguments.get().starts_with('{') {
        // Null and the like: the tool says what it wants.
        return Ok(RoutingArguments::default());
    }
    let raw: Raw<'_> = params(Some(arguments))?;
    let decode = |value: Option<&RawValue>| {
        let value = value.filter(|value| value.get().starts_with('"'))?;
        serde_json::from_str::<String>(value.get()).ok().map(Cow::Owned)
    };
    // Some toolsets name a session by `session`, one by `sessionId`, some by a UUID.
    let session =
        decode(raw.session_id).or_else(|| decode(raw.session)).or_else(|| decode(raw.camel_session));
    let session = session.map(|given| Handle::Session.read_uuid(&given).map(Cow::Owned).unwrap_or(given));
    Ok(RoutingArguments { window: decode(raw.window), session, action: decode(raw.action) })
}

/// The outermost fields.
#[derive(Default)]
struct Fields<'a> {
    jsonrpc: Option<Cow<'a, str>>,
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    params: Option<&'a RawValue>,
    is_answer: bool,
}

impl<'a> Fields<'a> {
    fn into_message(self, excess: Option<Excess>) -> Result<Message<'a>, RpcError> {
        let invalid = |why: &str| Err(RpcError::new(code::INVALID_REQUEST, why));
        if self.jsonrpc.as_deref() != Some("2.0") {
            return invalid("\"jsonrpc\" must be \"2.0\"");
        }
        let Some(method) = self.method else {
            return if self.is_answer { Ok(Message::Answer) } else { invalid("\"method\" is missing") };
        };
        if self.is_answer {
            return invalid("a message has either \"method\" or \"result\" or \"error\"");
        }
        match self.id {
            None => Ok(Message::Notification { method, params: self.params }),
            Some(id) if is_request_id(id.get()) => {
                Ok(Message::Request(Request { id, method, params: self.params, excess }))
            }
            Some(_) => invalid("\"id\" must be a string or an integer"),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                const NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
                let mut fields = Fields::default();
                let mut seen = [false; NAMES.len()];
                while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
                    let Some(idx) = NAMES.iter().position(|name| key.eq_ignore_ascii_case(name)) else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    if key != NAMES[idx] {
                        return Err(de::Error::custom(format!("{key:?} must be written {:?}", NAMES[idx])));
                    }
                    if std::mem::replace(&mut seen[idx], true) {
                        return Err(de::Error::duplicate_field(NAMES[idx]));
                    }
                    match idx {
                        0 => fields.jsonrpc = Some(map.next_value::<Text<'de>>()?.0),
                        1 => fields.id = Some(map.next_value()?),
                        2 => fields.method = Some(map.next_value::<Text<'de>>()?.0),
                        3 => fields.params = Some(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            fields.is_answer = true;
                        }
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A text that is borrowed when nothing in it is escaped.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn is_request_id(id: &str) -> bool {
    if id.starts_with('"') {
        // A lone surrogate is no text: one reader would refuse it, another replace it.
        return serde_json::from_str::<Text<'_>>(id).is_ok();
    }
    let digits = id.strip_prefix('-').unwrap_or(id);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a window answers a request with this id: what is larger than 64 bits would not come back as it was sent.
pub fn is_window_id(id: &str) -> bool {
    id.starts_with('"') || id.parse::<i64>().is_ok_and(|number| number != 0 || id == "0")
}

/// Whether two ids are the same one, however they are written.
pub fn is_same_id(one: &str, other: &str) -> bool {
    let text = |id: &str| serde_json::from_str::<String>(id).ok();
    one == other || (one.starts_with('"') && other.starts_with('"') && text(one) == text(other))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use baton_proto::bounds::DEPTH_MAX;

    use super::*;

    fn check(text: &str, expected: Expect) {
        let actual = match parse(text.as_bytes()) {
            Ok(Message::Request(request)) => format!("request {} {}", request.id, request.method),
            Ok(Message::Notification { method, .. }) => format!("notification {method}"),
            Ok(Message::Answer) => "answer".to_owned(),
            Err(error) => format!("{} {}", error.code, error.message),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn messages_are_told_apart() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, expect!["request 1 ping"]);
        check(
            r#"{"id":"a","params":{},"method":"p\u0069ng","jsonrpc":"2.0"}"#,
            expect![[r#"request "a" ping"#]],
        );
        check(r#"{"jsonrpc":"2.0","method":"x"}"#, expect!["notification x"]);
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, expect!["answer"]);
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
            expect!["-32600 not a JSON-RPC message: duplicate field `method` at line 1 column 45"],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#,
            expect![[
                r#"-32600 not a JSON-RPC message: "Method" must be written "method" at line 1 column 45"#
            ]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
            expect![[r#"-32600 "id" must be a string or an integer"#]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#,
            expect![[r#"-32600 "id" must be a string or an integer"#]],
        );
        check(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, expect![[r#"-32600 "jsonrpc" must be "2.0""#]]);
        check(r#"{"jsonrpc":"2.0","id":1}"#, expect![[r#"-32600 "method" is missing"#]]);
        check("[]", expect!["-32600 batches are not supported; send one message per request"]);
        check("nonsense", expect!["-32700 not a JSON-RPC message: expected ident at line 1 column 2"]);
        check("", expect!["-32700 not a JSON-RPC message: EOF while parsing a value at line 1 column 0"]);
        check(
            "7",
            expect![
                "-32600 not a JSON-RPC message: invalid type: integer `7`, expected an object at line 1 column 1"
            ],
        );
        assert!(parse(b"{\"\xff\":1}").is_err());
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |n: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"a":{}{}}}}}"#,
                "[".repeat(n),
                "]".repeat(n)
            )
        };
        assert!(parse(nested(DEPTH_MAX - 2).as_bytes()).is_ok());
        check(&nested(DEPTH_MAX - 1), expect!["-32700 the message is nested too deeply (limit 64 levels)"]);
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}\"["}}"#, "[".repeat(100)),
            expect![[
                r#"request 1 [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["["#
            ]],
        );
    }

    #[test]
    fn a_request_with_too_many_values_is_known_by_its_id() {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":"a","method":"x","params":[{}0]}}"#, "0,".repeat(20_000));
        let Ok(Message::Request(request)) = parse(text.as_bytes()) else { panic!("it is a request") };
        assert_eq!((request.id.get(), request.excess), (r#""a""#, Some(Excess::Values)));
    }

    #[test]
    fn routing_reads_two_arguments_and_no_more() {
        let read = |text: &str| {
            let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
            routing_arguments(Some(&raw))
                .map(|found| (found.window.map(Cow::into_owned), found.session.map(Cow::into_owned)))
        };
        assert_eq!(read(r#"{"window":"a\u0062","x":[1]}"#).unwrap(), (Some("ab".to_owned()), None));
        assert_eq!(read(r#"{"session_id":"1","window":null}"#).unwrap(), (None, Some("1".to_owned())));
        assert_eq!(read(r#"{"window":7}"#).unwrap(), (None, None));
        assert_eq!(read("null").unwrap(), (None, None));
        assert!(read(r#"{"window":"a","window":"b"}"#).is_err());
    }
}
