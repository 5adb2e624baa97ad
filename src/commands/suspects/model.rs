//! `suspects --judge`: asking the model that the configuration names. Nothing is sent anywhere
//! else, and nothing at all unless both are there.

use crate::config::{Config, Judge};
use crate::error::CommandError;
use crate::secret;
use crate::serving::signals::runtime;
use agent_trace_analysis::suspects::Ranking;
use agent_trace_analysis::suspects::judge::{self, Dialect, Judged};
use agent_trace_model::story::Story;
use agent_trace_proxy::http::{Upstream, client};
use agent_trace_scanners::{self as scanners, Severity};
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use std::io;
use std::time::Duration;

/// How long an answer may take unless that is set.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of an answer.
const MOST: usize = 1 << 20;
/// The version of the messages that are spoken.
const VERSION: &str = "2023-06-01";

/// What the model says of a run.
pub(super) fn ask(
    config: &Config,
    story: &Story,
    ranking: &Ranking,
) -> Result<Judged, CommandError> {
    let set = &config.file.judge;
    let (Some(url), Some(model)) = (&set.url, &set.model) else {
        return Err(wrong("no model is set that could be asked"));
    };
    let upstream = Upstream::parse(url)?;
    if !upstream.tls() && !upstream.is_loopback() {
        return Err(wrong(
            "the model's URL is not on this machine and not https: runs would be sent in clear",
        ));
    }
    let dialect = set.dialect.unwrap_or(Dialect::OpenAi);
    let headers = headers(config, set, dialect)?;
    // What may steer a model stays here.
    let flagged = scanners::run::steps(story, Severity::High);
    let asked = judge::request(dialect, model, story, ranking, &|n| flagged.contains(&n));
    let body = asked.to_string().into_bytes();
    let patience = set.timeout.unwrap_or(PATIENCE);
    let failed = CommandError::failed("the model cannot be asked");
    let answered = runtime()?.block_on(async {
        let posting = client::post(&upstream, &headers, body, MOST);
        let answered = tokio::time::timeout(patience, posting).await;
        answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    });
    let (status, body) = answered.map_err(failed)?;
    if !status.is_success() {
        return Err(wrong(format!("the model was not asked: HTTP {status}")));
    }
    judge::answer(dialect, &body, story)
        .map_err(|error| wrong(format!("the model's answer does not count: {error}")))
}

fn wrong(what: impl Into<String>) -> CommandError {
    CommandError::Usage {
        what: what.into(),
        hint: "[judge] of the configuration file names it, see `agent-trace config --help`",
    }
}

/// What the endpoint knows us by. The key is in a variable or in a file, never in the
/// configuration.
fn headers(
    config: &Config,
    set: &Judge,
    dialect: Dialect,
) -> Result<Vec<(HeaderName, HeaderValue)>, CommandError> {
    let folder = config.path.as_deref().and_then(std::path::Path::parent);
    let key = match (&set.key_env, &set.key_file) {
        (Some(name), _) => match std::env::var(name) {
            Ok(key) => Some(key),
            Err(_) => return Err(wrong(format!("the variable {name} has no key"))),
        },
        (None, Some(path)) => {
            let path = folder.map_or_else(|| path.clone(), |folder| folder.join(path));
            Some(secret::read(&path)?)
        }
        (None, None) => None,
    };
    let mut headers = Vec::new();
    if dialect == Dialect::Anthropic {
        let version = HeaderName::from_static("anthropic-version");
        headers.push((version, HeaderValue::from_static(VERSION)));
    }
    if let Some(key) = key {
        let (name, value) = match dialect {
            Dialect::OpenAi => (AUTHORIZATION, format!("Bearer {}", key.trim())),
            Dialect::Anthropic => (HeaderName::from_static("x-api-key"), key.trim().to_owned()),
        };
        let value = HeaderValue::try_from(value);
        let mut value = value.map_err(|_| wrong("the key cannot stand in a header"))?;
        value.set_sensitive(true);
        headers.push((name, value));
    }
    Ok(headers)
}
