//! A server behind a URL: streamable HTTP of every revision, and what came before it.

use super::message::{Heard, LEGACY, MODERN, Request};
use super::stream::{Connection, Events};
use super::talk::Server;
use super::{Fault, Limits, Url};
use crate::http::{Tls, Upstream};
use agent_trace_wire::http::is_event_stream;
use agent_trace_wire::message::{member, member_at, string};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::time::Duration;
use tokio::net::TcpStream;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// How long a session may take to be given up.
const GOODBYE: Duration = Duration::from_secs(2);
/// The most bytes of an answer that says no.
const REFUSAL: usize = 64 << 10;

pub(super) struct Web {
    at: Upstream,
    target: String,
    headers: HeaderMap,
    tls: Option<Tls>,
    message: usize,
    /// What the server called the session.
    session: Option<HeaderValue>,
    /// What was agreed on.
    revision: Option<HeaderValue>,
    /// In the manner of 2024: the one stream, and where messages go.
    old: Option<(Events, String)>,
}

impl Web {
    pub(super) fn new(url: &Url, limits: &Limits) -> Result<Self, Fault> {
        let wrong = |why: &dyn std::fmt::Display| Fault::Url(why.to_string());
        let uri: Uri = url.url.trim().parse().map_err(|why| wrong(&why))?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let origin = format!("{}://{authority}", uri.scheme_str().unwrap_or_default());
        let at = Upstream::parse(&origin).map_err(|why| wrong(&why))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &url.headers {
            // What is wrong with a value is not to be shown.
            let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
            let (Ok(name), Ok(mut value)) = parsed else {
                return Err(wrong(&"a header that cannot be sent"));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let tls = match at.tls() {
            true => Some(Tls::load().map_err(|why| Fault::NotConnected(why.to_string()))?),
            false => None,
        };
        Ok(Self {
            target: uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned(),
            at,
            headers,
            tls,
            message: limits.message,
            session: None,
            revision: None,
            old: None,
        })
    }

    /// Gives up the session, if there is one.
    pub(super) async fn end(mut self) {
        if self.session.is_some() && self.old.is_none() {
            let target = std::mem::take(&mut self.target);
            let leaving = self.send(Method::DELETE, &target, HeaderMap::new(), Vec::new());
            let _ = tokio::time::timeout(GOODBYE, leaving).await;
        }
    }

    /// One request on a connection of its own: a server may answer one while another is open.
    async fn send(
        &self,
        method: Method,
        target: &str,
        more: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(Response<Incoming>, Connection), Fault> {
        let failed = |why: &dyn std::fmt::Display| Fault::NotConnected(why.to_string());
        let tcp = TcpStream::connect((self.at.host(), self.at.port())).await;
        let tcp = tcp.map_err(|why| failed(&why))?;
        let (mut sender, connection) = match &self.tls {
            None => opened(tcp).await?,
            Some(tls) => {
                let name = ServerName::try_from(self.at.host().to_owned());
                let name = name.map_err(|why| failed(&why))?;
                let stream = tls.connector_http1().connect(name, tcp).await;
                opened(stream.map_err(|why| failed(&why))?).await?
            }
        };
        let mut request = http::Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = target.parse().map_err(|why| failed(&why))?;
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        headers.extend(more);
        let host = HeaderValue::try_from(self.at.authority());
        headers.insert(HOST, host.map_err(|why| failed(&why))?);
        let (session, revision) = (self.session.clone(), self.revision.clone());
        headers.extend(session.map(|session| (SESSION, session)));
        if !headers.contains_key(&REVISION) {
            headers.extend(revision.map(|revision| (REVISION, revision)));
        }
        let answer = sender.send_request(request).await;
        Ok((answer.map_err(|why| failed(&why))?, connection))
    }

    async fn post(
        &self,
        target: &str,
        text: Vec<u8>,
        modern: Option<&'static str>,
    ) -> Result<(Response<Incoming>, Connection), Fault> {
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        let both = "application/json, text/event-stream";
        headers.insert(ACCEPT, HeaderValue::from_static(both));
        if let Some(method) = modern {
            headers.insert(REVISION, HeaderValue::from_static(MODERN));
            headers.insert(METHOD, HeaderValue::from_static(method));
        }
        self.send(Method::POST, target, headers, text).await
    }

    /// Where messages go.
    fn target(&self) -> &str {
        self.old.as_ref().map_or(&self.target, |(_, target)| target)
    }

    async fn reply(&self, replies: Vec<Vec<u8>>) {
        for reply in replies {
            let _ = self.post(self.target(), reply, None).await;
        }
    }

    /// An answer that is one JSON text.
    async fn whole(
        mut body: Incoming,
        most: usize,
        heard: &mut Heard,
        method: &'static str,
    ) -> Result<Vec<u8>, Fault> {
        let mut text = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return Err(ended(method));
            };
            let bytes = frame.data_ref().map_or(&[][..], |bytes| bytes);
            heard.count(bytes.len(), method)?;
            text.extend_from_slice(bytes);
            if text.len() > most {
                return Err(heard.too_long(method));
            }
        }
        Ok(text)
    }

    /// What was agreed on is told with each request from then on.
    fn agreed(&mut self, answer: &[u8], session: Option<HeaderValue>) {
        let revision = member_at(answer, &["result", "protocolVersion"]).and_then(string);
        let revision = revision.unwrap_or(LEGACY.into());
        if member(answer, "result").is_some() {
            self.revision = HeaderValue::try_from(&*revision).ok();
            self.session = session;
        }
    }

    /// Waits in the stream of 2024 for what it answers.
    async fn in_stream(&mut self, request: &Request, heard: &mut Heard) -> Result<Vec<u8>, Fault> {
        loop {
            let Some((events, _)) = &mut self.old else {
                return Err(ended(request.method));
            };
            let Some((_, data)) = events.next(heard, request.method).await? else {
                return Err(ended(request.method));
            };
            let taken = heard.take(&data, request);
            self.reply(taken.replies).await;
            if let Some(answer) = taken.answer {
                return Ok(answer);
            }
        }
    }
}

impl Server for Web {
    async fn ask(&mut self, request: &Request, heard: &mut Heard) -> Result<Vec<u8>, Fault> {
        let method = request.method;
        let modern = request.modern.then_some(method);
        let text = request.text.clone();
        let (answer, connection) = self.post(self.target(), text, modern).await?;
        let status = answer.status();
        let media = answer.headers().get(CONTENT_TYPE).cloned();
        let session = answer.headers().get(SESSION).cloned();
        let body = answer.into_body();
        if !status.is_success() {
            // What a server of one era says to the other may be an error of JSON-RPC.
            let text = Self::whole(body, REFUSAL, heard, method).await;
            let taken = heard.take(&text.unwrap_or_default(), request);
            let status = status.as_u16();
            return taken.answer.ok_or(Fault::Status { method, status });
        }
        if self.old.is_some() {
            drop(connection);
            return self.in_stream(request, heard).await;
        }
        let streams = media.is_some_and(|media| is_event_stream(media.as_bytes()));
        let answer = if streams {
            let mut events = Events::new(body, connection, self.message);
            loop {
                let Some((_, data)) = events.next(heard, method).await? else {
                    return Err(ended(method));
                };
                let taken = heard.take(&data, request);
                self.reply(taken.replies).await;
                if let Some(answer) = taken.answer {
                    break answer;
                }
            }
        } else {
            let text = Self::whole(body, self.message, heard, method).await?;
            let taken = heard.take(&text, request);
            taken.answer.ok_or_else(|| ended(method))?
        };
        if method == "initialize" {
            self.agreed(&answer, session);
        }
        Ok(answer)
    }

    async fn tell(&mut self, text: &[u8]) -> Result<(), Fault> {
        let told = self.post(self.target(), text.to_vec(), None).await;
        told.map(drop)
    }

    async fn fall_back(&mut self, heard: &mut Heard) -> Result<bool, Fault> {
        if self.old.is_some() {
            return Ok(false);
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let asking = self.send(Method::GET, &self.target, headers, Vec::new());
        let (answer, connection) = asking.await?;
        let media = answer.headers().get(CONTENT_TYPE);
        let streams = media.is_some_and(|media| is_event_stream(media.as_bytes()));
        if answer.status() != StatusCode::OK || !streams {
            return Ok(false);
        }
        let mut events = Events::new(answer.into_body(), connection, self.message);
        while let Some((kind, data)) = events.next(heard, "endpoint").await? {
            if kind == b"endpoint" {
                let target = self.endpoint(&String::from_utf8_lossy(&data));
                let Some(target) = target else {
                    return Ok(false);
                };
                self.old = Some((events, target));
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Web {
    /// Path and query of the URI that messages go to. It must be at the same server: what we
    /// send may hold credentials.
    fn endpoint(&self, uri: &str) -> Option<String> {
        let uri = uri.trim();
        let uri: Uri = match uri {
            _ if uri.contains("://") || uri.starts_with('/') => uri.parse().ok()?,
            relative => {
                let path = self.target.split('?').next().unwrap_or("/");
                let folder = path.rfind('/').map_or("/", |end| &path[..=end]);
                format!("{folder}{relative}").parse().ok()?
            }
        };
        if let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) {
            let other = Upstream::parse(&format!("{scheme}://{authority}")).ok()?;
            if other != self.at {
                return None;
            }
        }
        uri.path_and_query().map(|path| path.as_str().to_owned())
    }
}

fn ended(method: &'static str) -> Fault {
    Fault::Ended {
        method,
        said: String::new(),
    }
}

async fn opened<T>(stream: T) -> Result<(http1::SendRequest<Full<Bytes>>, Connection), Fault>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|why| Fault::NotConnected(why.to_string()))?;
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("connection to the server: {error}");
        }
    });
    Ok((sender, Connection(task.abort_handle())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(url: &str) -> Result<Web, Fault> {
        let url = Url {
            url: url.into(),
            headers: Vec::new(),
        };
        Web::new(&url, &Limits::default())
    }

    #[test]
    fn messages_go_to_the_same_server_only() {
        let web = web("http://127.0.0.1:3000/a/sse?key=1").unwrap();
        let to = |uri: &str| web.endpoint(uri);
        assert_eq!(to("/message?id=1").as_deref(), Some("/message?id=1"));
        assert_eq!(to("message?id=1").as_deref(), Some("/a/message?id=1"));
        assert_eq!(to("http://127.0.0.1:3000/m").as_deref(), Some("/m"));
        assert_eq!(to("http://127.0.0.1:3001/m"), None);
        assert_eq!(to("https://example.com/m"), None);
    }

    #[test]
    fn what_is_no_url_is_said() {
        for url in ["", "localhost:3000", "ftp://x/", "http://u:p@x/"] {
            assert!(matches!(web(url), Err(Fault::Url(_))), "{url}");
        }
    }
}
