//! One request of our own: for what is asked of a server, and not relayed to it.

use super::link::tcp;
use super::tls::Tls;
use super::upstream::Upstream;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::io;

/// Posts JSON, and returns the status and the body of the answer, of at most so many bytes. No
/// redirect is followed, nothing is tried again; how long it may take is the caller's matter.
///
/// # Errors
/// When the server cannot be reached, or does not answer as HTTP has it, or with more.
pub async fn post(
    to: &Upstream,
    headers: &[(HeaderName, HeaderValue)],
    body: Vec<u8>,
    most: usize,
) -> io::Result<(StatusCode, Bytes)> {
    let mut request = Request::post(to.path())
        .header(HOST, to.authority())
        .header(CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body)));
    let request = request.map_err(io::Error::other)?;
    let stream = tcp(to).await.map_err(io::Error::other)?;
    if !to.tls() {
        return exchange(TokioIo::new(stream), request, most).await;
    }
    let name = ServerName::try_from(to.host().to_owned()).map_err(io::Error::other)?;
    let connector = Tls::load()?.http1();
    let stream = connector.connect(name, stream).await?;
    exchange(TokioIo::new(stream), request, most).await
}

async fn exchange<T>(
    io: T,
    request: Request<Full<Bytes>>,
    most: usize,
) -> io::Result<(StatusCode, Bytes)>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    let (mut sender, connection) = http1::handshake(io).await.map_err(io::Error::other)?;
    let answering = async {
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(io::Error::other)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), most).collect().await;
        let body = body.map_err(io::Error::other)?.to_bytes();
        Ok((status, body))
    };
    // Where the connection ends, whoever waits for the answer is told so.
    let driving = async {
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answered = answering => answered,
        () = driving => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
