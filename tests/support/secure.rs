//! A server that speaks TLS, HTTP/2 or both, as those elsewhere in the world do.

use super::Home;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// TLS, and HTTP/1.1 in it.
    Tls,
    /// TLS, and HTTP/2 in it.
    TlsHttp2,
    /// HTTP/2 without TLS.
    Http2,
}

/// A server on `localhost`. It answers
///
/// - `POST`: with the same body and trailers, and the request's head in headers
/// - `GET`: with an event stream of three events, each a while after the one before, and
///   trailers; or one that does not end, at `/endless`
pub(crate) struct Secure {
    pub(crate) address: SocketAddr,
    /// What clients are to trust, as a file.
    pub(crate) certificate: PathBuf,
    speaks: Speaks,
    counts: Arc<Counts>,
    /// The server ends with it.
    _stop: DropGuard,
}

/// What a [`Secure`] counts.
#[derive(Debug, Default)]
struct Counts {
    connections: AtomicUsize,
    /// Endless streams that somebody still reads.
    endless: AtomicUsize,
}

impl Secure {
    pub(crate) fn new(home: &Home, speaks: Speaks) -> Self {
        let (pem, config) = identity(speaks);
        let certificate = home.at("certificate.pem");
        std::fs::write(&certificate, pem).unwrap();
        let counts = Arc::new(Counts::default());
        let (tell, told) = mpsc::channel();
        let stop = CancellationToken::new();
        let serving = serve(speaks, config, Arc::clone(&counts), tell);
        let serving = stop.clone().run_until_cancelled_owned(serving);
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(serving);
        });
        Self {
            address: told.recv().unwrap(),
            certificate,
            speaks,
            counts,
            _stop: stop.drop_guard(),
        }
    }

    /// Its URL; the certificate is for the name in it.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.speaks == Speaks::Http2 {
            "http"
        } else {
            "https"
        };
        format!("{scheme}://localhost:{}", self.address.port())
    }

    /// How many connections it has accepted.
    pub(crate) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::Relaxed)
    }

    /// How many endless streams it is sending.
    pub(crate) fn endless(&self) -> usize {
        self.counts.endless.load(Ordering::Relaxed)
    }
}

/// A certificate for `localhost` that nobody has signed but itself.
fn identity(speaks: Speaks) -> (String, Arc<ServerConfig>) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = match speaks {
        Speaks::TlsHttp2 => vec![b"h2".to_vec()],
        Speaks::Tls | Speaks::Http2 => vec![b"http/1.1".to_vec()],
    };
    (own.cert.pem(), Arc::new(config))
}

async fn serve(
    speaks: Speaks,
    config: Arc<ServerConfig>,
    counts: Arc<Counts>,
    tell: mpsc::Sender<SocketAddr>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    tell.send(listener.local_addr().unwrap()).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, counts) = (TlsAcceptor::from(Arc::clone(&config)), Arc::clone(&counts));
        counts.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            if speaks == Speaks::Http2 {
                connection(stream, true, counts).await;
            } else if let Ok(stream) = tls.accept(stream).await {
                connection(stream, speaks == Speaks::TlsHttp2, counts).await;
            }
        });
    }
}

async fn connection<T>(stream: T, http2: bool, counts: Arc<Counts>)
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let io = TokioIo::new(stream);
    let service = service_fn(move |request| answer(request, Arc::clone(&counts)));
    // A connection that breaks is what some tests want.
    if http2 {
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        server.serve_connection(io, service).await.ok();
    } else {
        let server = hyper::server::conn::http1::Builder::new();
        server.serve_connection(io, service).await.ok();
    }
}

type Frames = std::pin::Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;
type Body = Either<Full<Bytes>, StreamBody<Frames>>;

async fn answer(
    request: Request<Incoming>,
    counts: Arc<Counts>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let mut answer = Response::new(Either::Left(Full::default()));
    let headers = answer.headers_mut();
    let mut tell = |name: &'static str, value: &str| {
        headers.insert(name, HeaderValue::from_str(value).unwrap());
    };
    tell("x-version", &format!("{:?}", head.version));
    tell("x-target", head.uri.path_and_query().unwrap().as_str());
    let authority = head.uri.authority().map(ToString::to_string);
    let host = head.headers.get("host").and_then(|host| host.to_str().ok());
    tell("x-host", authority.as_deref().or(host).unwrap_or_default());
    let names: Vec<&str> = head.headers.keys().map(HeaderName::as_str).collect();
    tell("x-names", &names.join(","));
    if head.method == "GET" {
        tell("content-type", "text/event-stream");
        let endless = head.uri.path() == "/endless";
        *answer.body_mut() = Either::Right(StreamBody::new(events(endless, counts)));
        return Ok(answer);
    }
    let Ok(whole) = body.collect().await else {
        return Ok(answer);
    };
    let trailers = whole.trailers().cloned();
    let mut frames = vec![Ok(Frame::data(whole.to_bytes()))];
    frames.extend(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
    let names = HeaderValue::from_static("x-sum");
    answer.headers_mut().insert("trailer", names);
    let frames: Frames = Box::pin(stream::iter(frames));
    *answer.body_mut() = Either::Right(StreamBody::new(frames));
    Ok(answer)
}

/// Counts an endless stream for as long as somebody reads it.
struct Reader(Arc<Counts>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.endless.fetch_sub(1, Ordering::Relaxed);
    }
}

fn events(endless: bool, counts: Arc<Counts>) -> Frames {
    if endless {
        counts.endless.fetch_add(1, Ordering::Relaxed);
        let reader = Reader(counts);
        let first = stream::iter([Ok(Frame::data(Bytes::from("data: first\n\n")))]);
        let rest = stream::pending().map(move |never: Infallible| {
            let _ = &reader;
            match never {}
        });
        return Box::pin(first.chain(rest));
    }
    let events = stream::iter(1..=3).then(|number: u32| async move {
        if number > 1 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(Frame::data(Bytes::from(format!("data: {number}\n\n"))))
    });
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("3"));
    Box::pin(events.chain(stream::iter([Ok(Frame::trailers(trailers))])))
}
