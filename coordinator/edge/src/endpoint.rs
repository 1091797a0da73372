//! CORE: what the URL of a request asks for: a window, toolsets.

use baton_proto::edge::FOLDER_HEADER;
use http::{HeaderMap, Uri};

use super::route::Pin;

/// What a client asked for by the URL it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) pin: Pin,
    /// `?toolsets=a,b`.
    pub(crate) toolsets: Option<Vec<String>>,
}

impl Endpoint {
    /// `None` for a path that does not exist.
    pub(crate) fn from_request(uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let rest = uri.path().strip_prefix("/mcp")?;
        let pin = match rest.strip_prefix("/windows/") {
            Some(window) => Pin::Window(decode(window.strip_suffix('/').unwrap_or(window))?),
            None if rest.is_empty() || rest == "/" => match headers.get(FOLDER_HEADER) {
                Some(folder) => Pin::Folder(decode(folder.to_str().ok()?)?),
                None => Pin::Live,
            },
            None => return None,
        };
        if pin == Pin::Window(String::new()) {
            return None;
        }
        let toolsets = uri.query().and_then(|query| {
            query.split('&').find_map(|pair| pair.strip_prefix("toolsets=")).map(|names| {
                let names = names.replace("%2C", ",").replace("%2c", ",");
                names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
            })
        });
        Some(Self { pin, toolsets })
    }
}

/// Undoes percent-encoding; `None` when what comes out is not text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_windows_and_toolsets() {
        let read = |url: &str| Endpoint::from_request(&url.parse().unwrap(), &HeaderMap::new());
        let pinned = |name: &str| Endpoint { pin: Pin::Window(name.to_owned()), toolsets: None };
        assert_eq!(read("/mcp"), Some(Endpoint::default()));
        assert_eq!(read("/mcp/"), Some(Endpoint::default()));
        assert_eq!(read("/mcp/windows/my%20app"), Some(pinned("my app")));
        assert_eq!(read("/mcp/windows/%2Fsrc%2Fa/"), Some(pinned("/src/a")));
        assert_eq!(
            read("/mcp?x=1&toolsets=debugger%2Cquick").unwrap().toolsets.unwrap(),
            ["debugger", "quick"]
        );
        for wrong in
            ["/mcp/windows/", "/mcp/windows/%zz", "/mcp/windows/%f", "/mcp/windows/%ff", "/mcp/x", "/mcpx"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let headers =
            HeaderMap::from_iter([(FOLDER_HEADER.parse().unwrap(), "/src/%C3%A9".parse().unwrap())]);
        let endpoint = Endpoint::from_request(&"/mcp".parse().unwrap(), &headers).unwrap();
        assert_eq!(endpoint.pin, Pin::Folder("/src/é".to_owned()));
    }
}
