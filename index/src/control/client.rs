//! Asking a process that owns the index, or a daemon.

use crate::protocol::{Answer, MOST_ANSWERED, Query, Reply, Request, VERSION, Version};
use crate::runs::{Asked, Runs, RunsError};
use agent_trace_store::lock::Holder;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// How long an answer may take: an index may have to be brought up to date first.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says a line to whoever listens on a socket, and returns the line that it answers with.
/// Without `patience` it is waited for as long as somebody is there.
///
/// # Errors
/// When nobody listens there, or what is answered is no line.
pub async fn talk(
    socket: &Path,
    mut line: String,
    patience: Option<Duration>,
) -> io::Result<String> {
    line.push('\n');
    let talk = async {
        let stream = UnixStream::connect(socket).await?;
        check(&stream)?;
        let (reader, mut writer) = stream.into_split();
        writer.write_all(line.as_bytes()).await?;
        let mut answer = String::new();
        let mut reader = BufReader::new(reader.take(MOST_ANSWERED));
        reader.read_line(&mut answer).await?;
        if answer.ends_with('\n') {
            Ok(answer)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    };
    match patience {
        Some(patience) => tokio::time::timeout(patience, talk).await?,
        None => talk.await,
    }
}

/// How long an answer to this may take. How long it takes to read everything anew depends on
/// how much there is; whoever does it and ends closes the socket.
fn patience(query: &Query) -> Option<Duration> {
    match query {
        Query::Rebuild | Query::Verify => None,
        _ => Some(PATIENCE),
    }
}

/// Whether the other side is the same user's, or the system's.
pub(super) fn check(stream: &UnixStream) -> io::Result<()> {
    let (peer, us) = (stream.peer_cred()?.uid(), rustix::process::geteuid());
    if peer == us.as_raw() || peer == 0 {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// The line that tells a daemon to do something.
#[must_use]
pub fn command(command: &str) -> String {
    line(Some(command.to_owned()), None)
}

fn line(command: Option<String>, query: Option<&Query>) -> String {
    let request = Request {
        version: VERSION,
        command,
        query: query.and_then(|query| serde_json::value::to_raw_value(query).ok()),
    };
    // Strings, and a value that is JSON already.
    serde_json::to_string(&request).unwrap_or_default()
}

/// A process that owns the index.
#[derive(Clone, Debug)]
pub struct Remote {
    pid: Option<u32>,
    socket: PathBuf,
}

impl Remote {
    /// Who holds the lock of the index, if it can be asked.
    #[must_use]
    pub fn of(holder: &Holder) -> Option<Self> {
        Some(Self {
            pid: holder.pid,
            socket: holder.socket.clone()?,
        })
    }

    async fn answer(&self, query: &Query) -> Result<Reply, RunsError> {
        let pid = self.pid;
        let said = talk(&self.socket, line(None, Some(query)), patience(query)).await;
        let said = said.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => RunsError::Lost { pid, source },
            _ => RunsError::Silent { pid, source },
        })?;
        let unknown = |_| RunsError::Unknown(pid);
        // The rest may look different in another version.
        let version: Version = serde_json::from_str(&said).map_err(unknown)?;
        if version.version != VERSION {
            return Err(RunsError::Version {
                pid,
                program: version.program,
                theirs: version.version,
            });
        }
        let answer: Answer = serde_json::from_str(&said).map_err(unknown)?;
        match (answer.reply, answer.error) {
            (Some(reply), _) => serde_json::from_str(reply.get()).map_err(unknown),
            (None, Some(why)) => Err(RunsError::Refused(why)),
            (None, None) => Err(RunsError::Unknown(pid)),
        }
    }
}

impl Runs for Remote {
    fn ask(&self, query: Query) -> Asked<'_> {
        Box::pin(async move { self.answer(&query).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_everything_anew_is_waited_for() {
        assert_eq!(patience(&Query::Rebuild), None);
        assert_eq!(patience(&Query::Verify), None);
        assert_eq!(patience(&Query::Status), Some(PATIENCE));
    }
}
