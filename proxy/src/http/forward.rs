//! One request: whether it may pass, to the server, and the answer back.

use super::answer::Answer;
use super::body::{AnswerBody, OwnBody, RequestBody, ResponseBody, is_gone};
use super::connection::Connection;
use super::exchange::Exchange;
use super::expect::Expectation;
use super::link::{Link, LinkError, Near};
use super::rewrite::Rewriting;
use super::settings::HostHeader;
use super::{head, policy};
use agent_trace_model::Finish;
use http::header::{CONTENT_LENGTH, HOST, ORIGIN, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version, request};
use http_body_util::Either;
use hyper::body::Incoming;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// Relays one request. An error closes the connection without an answer.
pub(super) async fn relay(
    connection: Rc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Infallible> {
    let exchange = connection.begin(&request);
    let (mut parts, body) = request.into_parts();
    if let Err(refusal) = connection.may_pass(&parts) {
        let answer = Answer::new(refusal.status, "client", refusal.why, Finish::Refused);
        let expect = Expectation::of(&parts, &body);
        let body = RequestBody::new(body, &exchange, &parts.headers, expect.gate());
        Box::pin(body.drain()).await;
        return Ok(own(exchange, answer));
    }
    let rewriting = Rewriting::of(&mut parts, &connection.settings);
    let expect = Expectation::of(&parts, &body);
    let body = RequestBody::new(body, &exchange, &parts.headers, expect.gate());
    let http10 = parts.version == Version::HTTP_10;
    let takes_trailers = head::takes_trailers(&parts.headers);
    let (mut response, spent) = match connection.send(parts, body, &expect).await {
        Ok(answered) => answered,
        Err(failure) => {
            let answer = failure.answer(exchange.finish());
            return Ok(own(exchange, answer));
        }
    };
    exchange.response(head::response_text(
        response.version(),
        response.status(),
        response.headers(),
    ));
    let rewriter = rewriting.and_then(|needed| needed.rewriter(&mut response, &exchange));
    let (mut parts, body) = response.into_parts();
    let chunked = !http10 && parts.version == Version::HTTP_11;
    if parts.headers.contains_key(TRANSFER_ENCODING) {
        // It does not count beside the other (RFC 9112, 6.3), and must not be passed on.
        parts.headers.remove(CONTENT_LENGTH);
    }
    let takes_trailers = takes_trailers && head::announces_trailers(&parts.headers);
    parts.headers = head::end_to_end(parts.headers, chunked);
    parts.version = Version::HTTP_11;
    let body = ResponseBody::new(body, exchange, takes_trailers)
        .rewritten(rewriter)
        .with_link(spent);
    Ok(Response::from_parts(parts, Either::Left(body)))
}

impl Connection {
    /// Whether a request may be forwarded.
    fn may_pass(&self, parts: &request::Parts) -> Result<(), policy::Refusal> {
        let headers = &parts.headers;
        let mut hosts = headers.get_all(HOST).iter();
        let (host, more) = (hosts.next(), hosts.next());
        // What all requests of a connection have in common need not be looked at again.
        let known = host.is_some() && self.allowed.borrow().as_ref() == host;
        let plain = parts.uri.authority().is_none() && parts.uri.path_and_query().is_some();
        if known && plain && more.is_none() && !headers.contains_key(ORIGIN) {
            return Ok(());
        }
        if let Err(refusal) = policy::check(&parts.uri, headers, &self.settings) {
            self.shared.stats.refused.fetch_add(1, Ordering::Relaxed);
            tracing::info!("refused a request of {}: {}", self.caller.peer, refusal.why);
            return Err(refusal);
        }
        *self.allowed.borrow_mut() = host.cloned();
        Ok(())
    }

    fn begin(&self, request: &Request<Incoming>) -> Rc<Exchange> {
        self.clock.reset();
        let number = self.shared.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        let head = head::request_text(
            request.method(),
            request.uri(),
            request.version(),
            request.headers(),
        );
        let exchange = Exchange::begin(number, self, self.copies.now(), head);
        *self.current.borrow_mut() = Rc::downgrade(&exchange);
        exchange
    }

    /// Sends a request to the server and waits for the head of its answer. Where no further
    /// request can follow on the connection to the server, that comes with it.
    async fn send(
        &self,
        mut parts: request::Parts,
        body: RequestBody,
        expect: &Expectation,
    ) -> Result<(Response<Incoming>, Option<Link>), Failure> {
        parts.headers = head::end_to_end(parts.headers, true);
        parts.version = Version::HTTP_11;
        let mut request = Request::from_parts(parts, body);
        expect.listen(&mut request);
        let mut link = self.link.take();
        loop {
            let reused = link.is_some();
            let mut open = match link.take() {
                Some(mut link) => {
                    if !link.ready().await {
                        continue;
                    }
                    link
                }
                // What is rare is boxed: hyper moves the whole of this with every request.
                None => match Box::pin(self.connect()).await {
                    Ok(link) => link,
                    Err(failure) => {
                        Box::pin(request.into_body().drain()).await;
                        return Err(failure);
                    }
                },
            };
            if open.is_http2() {
                expect.go_on();
            }
            self.address(&mut request, open.is_http2());
            match open.send(request).await {
                // `Upgrade` was not passed on, so nobody asked for that.
                Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(Failure::Switched);
                }
                Ok(response) => {
                    // To a server of 1.0 hyper would write as one of 1.0, without chunks.
                    let spent = !expect.answered() || response.version() == Version::HTTP_10;
                    if spent {
                        return Ok((response, Some(open)));
                    }
                    *self.link.borrow_mut() = Some(open);
                    return Ok((response, None));
                }
                Err(mut error) => match error.take_message() {
                    // Closed by the server since the last request, before anything was sent.
                    Some(unsent) if reused => request = unsent,
                    Some(unsent) => {
                        Box::pin(unsent.into_body().drain()).await;
                        return Err(Failure::Exchange((*error).into_error()));
                    }
                    None => return Err(Failure::Exchange((*error).into_error())),
                },
            }
        }
    }

    async fn connect(&self) -> Result<Link, Failure> {
        let near = Near {
            clock: Rc::clone(&self.clock),
            copies: Rc::clone(&self.copies),
            turns: Rc::clone(&self.turns),
        };
        Link::open(&self.settings, self.tls.as_ref(), near)
            .await
            .map_err(Failure::Link)
    }

    /// Addresses a request as the server's version of HTTP does.
    fn address(&self, request: &mut Request<RequestBody>, http2: bool) {
        let upstream = &self.settings.upstream;
        let keep = match self.settings.host {
            HostHeader::Keep => true,
            HostHeader::Upstream => false,
            HostHeader::Auto => upstream.is_loopback(),
        };
        if !keep && let Ok(host) = HeaderValue::from_str(&upstream.authority()) {
            request.headers_mut().insert(HOST, host);
        }
        if !http2 {
            // A path alone, whatever the client wrote.
            if request.uri().scheme().is_some()
                && let Some(path) = request.uri().path_and_query().cloned()
            {
                *request.uri_mut() = path.into();
            }
            return;
        }
        let path = request.uri().path_and_query().cloned();
        request.headers_mut().remove(TRANSFER_ENCODING);
        let host = request.headers_mut().remove(HOST);
        let authority = host.map_or_else(
            || upstream.authority().into_bytes(),
            |host| host.as_bytes().to_vec(),
        );
        let uri = Uri::builder()
            .scheme(if upstream.tls() { "https" } else { "http" })
            .authority(authority)
            .path_and_query(path.unwrap_or(PathAndQuery::from_static("/")));
        if let Ok(uri) = uri.build() {
            *request.uri_mut() = uri;
        }
    }
}

/// Why a request was not answered.
enum Failure {
    Link(LinkError),
    Exchange(hyper::Error),
    /// The server wants to speak something else.
    Switched,
}

impl Failure {
    /// `known` is what is known already of the exchange's end.
    fn answer(&self, known: Option<Finish>) -> Answer {
        if known == Some(Finish::ClientBroke) {
            let why = "the request's body is no HTTP";
            return Answer::new(StatusCode::BAD_REQUEST, "client", why, Finish::ClientBroke);
        }
        let (status, finish) = match self {
            Self::Link(LinkError::TimedOut { .. }) => {
                (StatusCode::GATEWAY_TIMEOUT, Finish::TimedOut)
            }
            Self::Link(_) => (StatusCode::BAD_GATEWAY, Finish::Unreachable),
            Self::Exchange(_) | Self::Switched => (StatusCode::BAD_GATEWAY, Finish::ServerBroke),
        };
        let why = match self {
            Self::Link(error) => error.to_string(),
            Self::Exchange(error) if is_gone(error) => {
                "the server closed the connection before it answered".to_owned()
            }
            Self::Exchange(error) => format!("the server did not answer in HTTP: {error}"),
            Self::Switched => "the server switched protocols without being asked".to_owned(),
        };
        tracing::info!("{why}");
        Answer::new(status, "server", &why, finish)
    }
}

fn own(exchange: Rc<Exchange>, answer: Answer) -> Response<AnswerBody> {
    exchange.ends(answer.finish);
    exchange.response(head::response_text(
        Version::HTTP_11,
        answer.status,
        &answer.headers,
    ));
    let mut response = Response::new(Either::Right(OwnBody::new(answer.body, exchange)));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}
