//! CORE: what the URL of a request asks for: a window, toolsets.

use baton_election::stand::Stand;
use baton_proto::edge::{BOUND_HEADER, FOLDER_HEADER, NESTED_HEADER, TREE_HEADER};
use baton_proto::percent;
use http::{HeaderMap, Uri};

use super::route::{Named, Pin};

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
        let text = |name: &str| match headers.get(name) {
            Some(value) => percent::decode(value.to_str().ok()?).map(Some),
            None => Some(None),
        };
        let bound = text(BOUND_HEADER)?;
        let tree = text(TREE_HEADER)?;
        let folder = text(FOLDER_HEADER)?;
        let is_nested = headers.contains_key(NESTED_HEADER);
        let stand = folder.map(|folder| Stand { folder, tree, is_nested, bound: bound.clone() });
        let pin = match rest.strip_prefix("/windows/") {
            Some(window) => {
                let text = percent::decode(window.strip_suffix('/').unwrap_or(window))?;
                if text.is_empty() {
                    return None;
                }
                Pin::Window(Named { text, bound, stand })
            }
            None if rest.is_empty() || rest == "/" => stand.map_or(Pin::Live, Pin::Folder),
            None => return None,
        };
        let toolsets = uri.query().and_then(|query| {
            query.split('&').find_map(|pair| pair.strip_prefix("toolsets=")).map(|names| {
                let names = names.replace("%2C", ",").replace("%2c", ",");
                names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
            })
        });
        Some(Self { pin, toolsets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_windows_and_toolsets() {
        let read = |url: &str| Endpoint::from_request(&url.parse().unwrap(), &HeaderMap::new());
        let pinned = |name: &str| {
            let named = Named { text: name.to_owned(), ..Named::default() };
            Endpoint { pin: Pin::Window(named), toolsets: None }
        };
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
        let headers = [
            (FOLDER_HEADER, "/src/%C3%A9"),
            (TREE_HEADER, "/src"),
            (NESTED_HEADER, "1"),
            (BOUND_HEADER, "/"),
        ];
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let headers = HeaderMap::from_iter(headers);
        let endpoint = Endpoint::from_request(&"/mcp".parse().unwrap(), &headers).unwrap();
        let some = |text: &str| Some(text.to_owned());
        let stand =
            Stand { folder: "/src/é".to_owned(), tree: some("/src"), is_nested: true, bound: some("/") };
        assert_eq!(endpoint.pin, Pin::Folder(stand.clone()));
        let endpoint = Endpoint::from_request(&"/mcp/windows/a".parse().unwrap(), &headers).unwrap();
        let named = Named { text: "a".to_owned(), bound: some("/"), stand: Some(stand) };
        assert_eq!(endpoint.pin, Pin::Window(named));
        let broken = HeaderMap::from_iter([(FOLDER_HEADER.parse().unwrap(), "/src/%FF".parse().unwrap())]);
        assert_eq!(Endpoint::from_request(&"/mcp".parse().unwrap(), &broken), None);
    }
}
