//! Our server on standard input and output.

use crate::guard::{Guard, Router};
use rmcp::ServiceExt;
use rmcp::service::QuitReason;
use std::io;

/// Answers until standard input ends.
///
/// # Errors
/// When what comes first is no MCP, or answering breaks off.
pub async fn serve<R: Router>(server: Guard<R>) -> io::Result<()> {
    let running = server.serve(rmcp::transport::stdio()).await;
    let running = running.map_err(io::Error::other)?;
    match running.waiting().await.map_err(io::Error::other)? {
        QuitReason::JoinError(error) => Err(io::Error::other(error)),
        _ => Ok(()),
    }
}
