//! A server over streamable HTTP, for a listener that somebody else has.
//!
//! A key is always needed, in the `Authorization` header (`Bearer`) and nowhere else: addresses
//! get into logs. One that is unknown, revoked or too old is answered like none.

use crate::ask::Reader;
use crate::gate::Gate;
use crate::guard::{Callers, Guard, Router};
use crate::server::Server;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The body of an answer.
pub type Body = BoxBody<Bytes, Infallible>;

/// Pages that may call.
const OWN_ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// The most bytes of a request.
const MOST_ASKED: usize = 1 << 20;

/// A server, ours or another, reached over HTTP. Clones are the same one.
#[derive(Clone)]
pub struct Endpoint<R = Server> {
    gate: Arc<Gate>,
    service: StreamableHttpService<Guard<R>, LocalSessionManager>,
}

impl<R> fmt::Debug for Endpoint<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint of our server that answers until the token is cancelled, each request from what
    /// `reader` has then: settings may change. Whoever has the listener checks `Host`.
    #[must_use]
    pub fn new(
        reader: impl Fn() -> Arc<Reader> + Send + Sync + 'static,
        gate: Arc<Gate>,
        end: CancellationToken,
    ) -> Self {
        Self::of(move || Server::new(reader()), gate, end)
    }
}

impl<R: Router> Endpoint<R> {
    /// An endpoint of the server that is made for each request.
    #[must_use]
    pub fn of(
        router: impl Fn() -> R + Send + Sync + 'static,
        gate: Arc<Gate>,
        end: CancellationToken,
    ) -> Self {
        let mut config = StreamableHttpServerConfig::default();
        config.cancellation_token = end;
        config.max_request_body_bytes = MOST_ASKED;
        // Nothing is remembered between two requests, so there is nothing to fill or to take over.
        config.legacy_session_mode = false;
        // Pages of a browser have no business here, but for those of this machine.
        config.allowed_origins = OWN_ORIGINS.map(Into::into).to_vec();
        let lets_in = Arc::clone(&gate);
        let server = move || Guard::new(Arc::clone(&lets_in), Callers::Http, router());
        let sessions = Arc::new(LocalSessionManager::default());
        Self {
            gate,
            service: StreamableHttpService::new(move || Ok(server()), sessions, config),
        }
    }

    /// Answers a request.
    pub async fn answer(&self, mut request: Request<Incoming>) -> Response<Body> {
        let Some(caller) = bearer(&request).and_then(|key| self.gate.identify(key)) else {
            return unauthorized();
        };
        // It is not for who answers.
        request.headers_mut().remove(AUTHORIZATION);
        request.extensions_mut().insert(caller);
        self.service.handle(request).await
    }
}

/// The key in the `Authorization` header, if there is one, and one only.
fn bearer<B>(request: &Request<B>) -> Option<&str> {
    let mut all = request.headers().get_all(AUTHORIZATION).iter();
    let (one, none) = (all.next()?, all.next());
    let (scheme, key) = one.to_str().ok()?.split_once(' ')?;
    (none.is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| key.trim())
}

fn unauthorized() -> Response<Body> {
    let text = "a key is needed: `Authorization: Bearer at_...`, see `agent-trace key --help`\n";
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = answer.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, plain);
    headers.insert(
        WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer realm=\"agent-trace\""),
    );
    answer
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_from_one_header_alone() {
        let with = |values: &[&str]| {
            let mut request = Request::builder().uri("/mcp?key=at_x");
            for value in values {
                request = request.header("authorization", *value);
            }
            bearer(&request.body(()).unwrap()).map(str::to_owned)
        };
        assert_eq!(with(&["Bearer at_1"]).as_deref(), Some("at_1"));
        assert_eq!(with(&["bearer  at_1"]).as_deref(), Some("at_1"));
        for none in [
            &[][..],
            &["at_1"],
            &["Basic at_1"],
            &["Bearer a", "Bearer b"],
        ] {
            assert_eq!(with(none), None, "{none:?}");
        }
    }
}
