//! An MCP server for the conformance suite, which wants tools, prompts and resources of certain
//! names and behaviour. The tests run the suite against it, without and with a relay between.
//!
//! ```text
//! cargo run --example conformance_server [PORT [STORE]]
//! ```
//!
//! Listens on 127.0.0.1 and prints its address. It speaks all revisions from 2025-03-26 to
//! 2026-07-28; the protocol itself is done by rmcp. With a store it is reached as our own MCP server
//! is, with what stands before that: callers need a key of that store that has `runs:read`.
//!
//! - [`server`]: which request goes where
//! - [`tools`]: the list of tools, and those that just answer
//! - [`asking`]: tools that ask the client something within their call, up to 2025-11-25
//! - [`rounds`]: tools that answer with a question and are then called again, from 2026-07-28 on
//! - [`tasks`]: tools that go on after their answer
//! - [`documents`]: resources, prompts and completions

#![allow(clippy::expect_used, clippy::print_stdout)]
#![allow(
    deprecated,
    reason = "what is deprecated is part of the older revisions, and is tested"
)]

mod asking;
mod documents;
mod rounds;
mod server;
mod tasks;
mod tools;

use agent_trace_mcp_tools::Gate;
use agent_trace_mcp_tools::http::Endpoint;
use agent_trace_store::Store;
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How it is reached.
#[derive(Clone)]
enum Service {
    Plain(StreamableHttpService<server::Server, LocalSessionManager>),
    Guarded(Endpoint<server::Server>),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse());
    let port: u16 = port.map_err(|error| io::Error::other(format!("the port: {error}")))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    println!("http://{}/mcp", listener.local_addr()?);

    let sessions = Arc::new(LocalSessionManager::default());
    let server = server::Server::new(sessions.clone());
    let service = match std::env::args_os().nth(2) {
        Some(store) => {
            let gate = Arc::new(Gate::of(&Store::at(store)));
            let endpoint = Endpoint::of(move || server.clone(), gate, CancellationToken::new());
            Service::Guarded(endpoint)
        }
        None => {
            // A client whose stream was closed comes back soon: nobody shall wait in a test.
            let config = StreamableHttpServerConfig::default()
                .with_sse_retry(Some(Duration::from_millis(300)));
            let server = move || Ok(server.clone());
            Service::Plain(StreamableHttpService::new(server, sessions, config))
        }
    };
    loop {
        let (stream, _) = listener.accept().await?;
        let service = service.clone();
        let answer = service_fn(move |request| answer(service.clone(), request));
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), answer);
        // A connection that breaks is its client's matter.
        tokio::spawn(async move { connection.await.ok() });
    }
}

type Body = http_body_util::combinators::BoxBody<bytes::Bytes, Infallible>;

async fn answer(
    service: Service,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if request.uri().path() == "/mcp" {
        return Ok(match service {
            Service::Plain(service) => service.handle(request).await,
            Service::Guarded(endpoint) => endpoint.answer(request).await,
        });
    }
    let mut nothing = Response::new(Body::default());
    *nothing.status_mut() = StatusCode::NOT_FOUND;
    let headers = nothing.headers_mut();
    headers.insert("content-length", HeaderValue::from_static("0"));
    Ok(nothing)
}
