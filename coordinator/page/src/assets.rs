//! What the page consists of: `assets`, as this program holds them, and smaller for a browser that takes it so.

use std::io::Write as _;
use std::sync::OnceLock;

use baton_http::body::Body;
use baton_http::respond;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Response, StatusCode};

/// The type of the document.
pub(crate) const HTML: &str = "text/html; charset=utf-8";
/// In the document: what it shows with each request that changes something.
const FORM: &str = "BATON_FORM";
const DOCUMENT: &str = include_str!("../assets/page.html");

struct Asset {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
    /// The text as gzip, from the first time that it is asked for.
    small: OnceLock<Bytes>,
}

static ASSETS: [Asset; 3] = [
    Asset::new("/page.css", "text/css; charset=utf-8", include_str!("../assets/page.css")),
    Asset::new("/page.js", "text/javascript; charset=utf-8", include_str!("../assets/page.js")),
    Asset::new("/icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

impl Asset {
    const fn new(path: &'static str, kind: &'static str, text: &'static str) -> Self {
        Self { path, kind, text, small: OnceLock::new() }
    }

    fn small(&self) -> Bytes {
        let small = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // Memory takes all that is written to it.
            let _ = encoder.write_all(self.text.as_bytes());
            encoder.finish().unwrap_or_default().into()
        };
        self.small.get_or_init(small).clone()
    }
}

/// The document, which holds `form`. It is never made smaller: how small it becomes would tell of what it holds.
pub(crate) fn document(form: &str) -> Response<Body> {
    respond::document(StatusCode::OK, HTML, DOCUMENT.replace(FORM, form))
}

/// What stands at `path`, for a browser that asked with `headers`; `None` when nothing does.
pub(crate) fn asset(path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    let asset = ASSETS.iter().find(|asset| asset.path == path)?;
    if !takes_gzip(headers) {
        return Some(respond::document(StatusCode::OK, asset.kind, asset.text));
    }
    let mut response = respond::document(StatusCode::OK, asset.kind, asset.small());
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Some(response)
}

/// RFC 9110, section 12.5.3, of which browsers use the names alone: one with a weight is not taken to be wanted.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|name| name.trim().eq_ignore_ascii_case("gzip"))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use http_body_util::BodyExt as _;

    use super::*;

    async fn body(response: Response<Body>) -> Vec<u8> {
        response.into_body().collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn a_browser_gets_the_same_text_in_a_third_of_the_bytes() {
        let browser = HeaderMap::from_iter([(header::ACCEPT_ENCODING, "gzip, deflate, br".parse().unwrap())]);
        for Asset { path, text, .. } in ASSETS.iter().filter(|asset| asset.text.len() > 1_000) {
            let response = asset(path, &browser).unwrap();
            assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip", "{path}");
            let small = body(response).await;
            let mut unpacked = String::new();
            GzDecoder::new(&small[..]).read_to_string(&mut unpacked).unwrap();
            assert_eq!(unpacked, *text, "{path}");
            assert!(small.len() * 5 < text.len() * 2, "{path}: {} of {}", small.len(), text.len());
        }
    }

    #[tokio::test]
    async fn whoever_does_not_ask_for_it_gets_plain_text() {
        for asked in [None, Some("br"), Some("gzip;q=0"), Some("identity")] {
            let headers = asked.map(|asked| (header::ACCEPT_ENCODING, asked.parse().unwrap()));
            let response = asset("/page.js", &headers.into_iter().collect()).unwrap();
            assert_eq!(response.headers().get(header::CONTENT_ENCODING), None, "{asked:?}");
            assert!(body(response).await.starts_with(b"// The page"), "{asked:?}");
        }
        assert!(asset("/page", &HeaderMap::new()).is_none());
    }
}
