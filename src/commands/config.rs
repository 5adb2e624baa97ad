//! `config`: print each setting and where it came from.

use crate::config::{Config, Origin};
use crate::error::{CommandError, discreet, exit};
use crate::render::escape;
use crate::render::table::{self, Align};
use crate::render::time::bytes;
use crate::units;
use std::io::Write;

pub(crate) fn run(config: &Config) -> Result<u8, CommandError> {
    let mut out = anstream::stdout().lock();
    if let Some(path) = &config.path {
        let note = if config.exists {
            ""
        } else {
            " (does not exist)"
        };
        writeln!(out, "file: {}{note}\n", path.display())?;
    }
    let word = |debug: String| debug.to_lowercase();
    let row =
        |name: &str, value: String, origin: &Origin| [name.to_owned(), value, origin.to_string()];
    let (redact, bodies, durability) = (config.redact(), config.bodies(), config.durability());
    let retention = &config.file.retention;
    let limit = |value: Option<String>| {
        let origin = if value.is_some() {
            Origin::File
        } else {
            Origin::Default
        };
        (value.unwrap_or_else(|| "none".into()), origin)
    };
    let age = limit(retention.max_age.map(units::shown));
    let size = limit(retention.max_bytes.map(bytes));
    let sessions = limit(retention.max_sessions.map(|count| count.to_string()));
    let rules = limit(
        Some(config.file.redact.rule.len())
            .filter(|n| *n > 0)
            .map(|n| n.to_string()),
    );
    let (admin, drain, workers) = (config.admin(), config.drain(), config.workers());
    let gap = config.session_gap();
    let words = |words: &Vec<String>| escape::text(words.join(" ").as_bytes(), 0);
    let check = limit(config.file.check.command.as_ref().map(words));
    let answer = config.answer();
    let judge = config.file.judge.url.as_ref();
    let judge = limit(judge.map(|url| escape::text(discreet(url).as_bytes(), 0)));
    let (timeout, slow) = (config.check_timeout(), config.slow());
    let admin_address = admin.0.map_or("off".into(), |address| address.to_string());
    let mut rows = vec![
        row(
            "store",
            config.store.0.display().to_string(),
            &config.store.1,
        ),
        row("record.redact", redact.0.to_string(), &redact.1),
        row("record.bodies", word(format!("{:?}", bodies.0)), &bodies.1),
        row(
            "record.durability",
            word(format!("{:?}", durability.0)),
            &durability.1,
        ),
        row("redact.rule", rules.0, &rules.1),
        row("retention.max_age", age.0, &age.1),
        row("retention.max_bytes", size.0, &size.1),
        row("retention.max_sessions", sessions.0, &sessions.1),
        row("check.command", check.0, &check.1),
        row("check.timeout", units::shown(timeout.0), &timeout.1),
        row("steps.slow", units::shown(slow.0), &slow.1),
        row("mcp.answer", kibibytes(answer.0), &answer.1),
        row("judge.url", judge.0, &judge.1),
        row("daemon.listen", admin_address, &admin.1),
        row("daemon.drain", units::shown(drain.0), &drain.1),
        row("daemon.workers", workers.0.to_string(), &workers.1),
        row("daemon.session_gap", units::shown(gap.0), &gap.1),
    ];
    for (name, limits) in &retention.workspace {
        let name = escape::text(name.as_bytes(), 0);
        let mut row = |what: &str, value: Option<String>| {
            rows.extend(value.map(|value| {
                let name = format!("retention.workspace.{name}.{what}");
                [name, value, Origin::File.to_string()]
            }));
        };
        row("max_age", limits.max_age.map(units::shown));
        row("max_bytes", limits.max_bytes.map(bytes));
        row(
            "max_sessions",
            limits.max_sessions.map(|count| count.to_string()),
        );
    }
    for (number, listener) in config.listeners.iter().enumerate() {
        let name = listener.name.clone();
        let name = name.unwrap_or_else(|| (number + 1).to_string());
        let name = format!("relay.{}", escape::text(name.as_bytes(), 0));
        let value = escape::text(listener.to_string().as_bytes(), 0);
        rows.push(row(&name, value, &Origin::File));
    }
    use Align::Left;
    table::print(
        &mut out,
        [("SETTING", Left), ("VALUE", Left), ("FROM", Left)],
        &rows,
    )?;
    Ok(exit::SUCCESS)
}

/// A size that is meant in KiB, as it is set.
fn kibibytes(size: usize) -> String {
    match size % 1024 {
        0 => format!("{}KiB", size / 1024),
        _ => bytes(size as u64),
    }
}
