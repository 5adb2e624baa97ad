//! How a configuration starts or calls a server: what of it lets others decide what runs, or
//! gives away more than it needs. Nothing is started.
//!
//! Nearly every entry fetches a package, and many hold a key: what is ordinary is low, and shown
//! on request.

mod packages;

use crate::codes;
use crate::finding::{Confidence, Finding, Place, Severity, escaped};

/// An entry of a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Launch<'a> {
    /// What the server is called there.
    pub server: &'a str,
    /// Whether the file belongs to a project, so that others wrote it and others read it.
    pub shared: bool,
    /// Command and arguments; empty where it is called.
    pub words: &'a [&'a str],
    /// Variables with their values.
    pub environment: &'a [(&'a str, &'a str)],
    /// Where it is called; empty where it is started.
    pub url: &'a str,
    /// Header lines.
    pub headers: &'a [(&'a str, &'a str)],
}

/// Which part of an entry a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The command (0) or an argument.
    Word(usize),
    /// A variable.
    Environment(usize),
    /// The URL.
    Url,
    /// A header line.
    Header(usize),
}

/// Scans an entry. `secret` says whether a value that goes by this name is a credential. Quotes
/// hold no values of variables and headers; pointers are empty.
#[must_use]
pub fn launch(launch: &Launch<'_>, secret: &dyn Fn(&str, &str) -> bool) -> Vec<(Part, Finding)> {
    let mut found = Vec::new();
    let mut add = |part, code, severity, quote: &str| {
        found.push((part, finding(launch.server, code, severity, quote)));
    };
    let credential = match launch.shared {
        true => Severity::Medium,
        false => Severity::Low,
    };
    let words = launch.words;
    if let Some(at) = packages::downloaded_script(words) {
        add(Part::Word(at), "AT1501", Severity::Medium, words[at]);
    }
    if let Some(at) = packages::unpinned(words) {
        add(Part::Word(at), "AT1502", Severity::Low, words[at]);
    }
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let (name, value) = word.split_once('=').unwrap_or((word, next));
        if is_off_switch(name) {
            add(Part::Word(at), "AT1505", Severity::Medium, word);
        }
        if loads_code(name, value) {
            add(Part::Word(at), "AT1506", Severity::Medium, word);
        }
        if packages::is_container(words)
            && let Some(severity) = host_rights(name, value)
        {
            add(Part::Word(at), "AT1507", severity, word);
        }
        if name.starts_with('-') && is_literal(value) && secret(name, value) {
            let part = Part::Word(if word.contains('=') { at } else { at + 1 });
            add(part, "AT1503", credential, &format!("{name}=…"));
        }
    }
    for (at, (name, value)) in launch.environment.iter().enumerate() {
        let part = Part::Environment(at);
        if switches_off(name, value) {
            add(part, "AT1505", Severity::Medium, &format!("{name}={value}"));
        }
        if loads_code(name, value) {
            add(part, "AT1506", Severity::Medium, name);
        }
        if is_literal(value) && secret(name, value) {
            add(part, "AT1503", credential, &format!("{name}=…"));
        }
    }
    if let Some(severity) = in_the_clear(launch.url) {
        let shown = launch.url.split(['?', '#']).next().unwrap_or_default();
        add(Part::Url, "AT1504", severity, shown);
    }
    let query = launch.url.split_once('?').map_or("", |(_, query)| query);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        if is_literal(value) && secret(name, value) {
            add(Part::Url, "AT1503", credential, &format!("{name}=…"));
        }
    }
    for (at, (name, value)) in launch.headers.iter().enumerate() {
        if is_literal(value) && secret(name, value) {
            add(
                Part::Header(at),
                "AT1503",
                credential,
                &format!("{name}: …"),
            );
        }
    }
    found
}

fn finding(server: &str, code: &'static str, severity: Severity, quote: &str) -> Finding {
    Finding {
        code,
        title: codes::title(code),
        severity,
        confidence: Confidence::High,
        server: Some(server.to_owned()),
        tool: None,
        place: Place::Value,
        pointer: String::new(),
        start: 0,
        end: quote.len(),
        quote: escaped(quote),
        decoded: None,
    }
}

/// Whether a value stands there as it is, and is no name for one that is kept elsewhere, nor a
/// hint of what to put there.
fn is_literal(value: &str) -> bool {
    let value = value.trim();
    let bare = value
        .trim_start_matches("Bearer ")
        .trim_start_matches("Basic ");
    let named = bare.contains("${")
        || bare.contains("{{")
        || bare.contains("$(")
        || bare.starts_with('$')
        || (bare.starts_with('%') && bare.ends_with('%'))
        || (bare.starts_with('<') && bare.ends_with('>'))
        || (bare.starts_with('{') && bare.ends_with('}'));
    let lower = bare.to_lowercase();
    let hints = [
        "your",
        "changeme",
        "replace",
        "example",
        "placeholder",
        "xxx",
        "...",
        "…",
        "dummy",
        "insert",
    ];
    let hint = hints.iter().any(|hint| lower.contains(hint));
    let same = bare.chars().all(|c| bare.starts_with(c));
    !named && !hint && !same
}

/// Arguments by which programs stop to check certificates.
fn is_off_switch(name: &str) -> bool {
    matches!(
        name,
        "--insecure"
            | "--no-check-certificate"
            | "--no-verify-ssl"
            | "--ssl-no-verify"
            | "--disable-ssl-verification"
            | "--no-ssl-verify"
            | "--tls-skip-verify"
            | "--trusted-host"
    )
}

/// Variables by which they do.
fn switches_off(name: &str, value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    match name {
        "NODE_TLS_REJECT_UNAUTHORIZED" | "PYTHONHTTPSVERIFY" => matches!(&value[..], "0" | "false"),
        "GIT_SSL_NO_VERIFY" => matches!(&value[..], "1" | "true"),
        "NPM_CONFIG_STRICT_SSL" | "npm_config_strict_ssl" => value == "false",
        _ => false,
    }
}

/// Whether it puts code into a program, or decides where packages come from.
fn loads_code(name: &str, value: &str) -> bool {
    let has = |switches: &[&str]| {
        let mut words = value.split_whitespace();
        words.any(|word| switches.contains(&word.split('=').next().unwrap_or(word)))
    };
    match name {
        "LD_PRELOAD"
        | "LD_AUDIT"
        | "DYLD_INSERT_LIBRARIES"
        | "BASH_ENV"
        | "PYTHONSTARTUP"
        | "PERL5OPT"
        | "RUBYOPT" => !value.is_empty(),
        "NODE_OPTIONS" => has(&[
            "-r",
            "--require",
            "--import",
            "--loader",
            "--experimental-loader",
        ]),
        "JAVA_TOOL_OPTIONS" | "JDK_JAVA_OPTIONS" => {
            value.contains("-javaagent:") || value.contains("-agentpath:")
        }
        "NPM_CONFIG_REGISTRY" | "npm_config_registry" | "--registry" => {
            is_elsewhere(value, &["registry.npmjs.org"])
        }
        "UV_INDEX_URL"
        | "UV_EXTRA_INDEX_URL"
        | "UV_DEFAULT_INDEX"
        | "UV_INDEX"
        | "PIP_INDEX_URL"
        | "PIP_EXTRA_INDEX_URL"
        | "--index-url"
        | "--extra-index-url"
        | "--default-index"
        | "--index" => is_elsewhere(
            value,
            &["pypi.org", "test.pypi.org", "files.pythonhosted.org"],
        ),
        _ => false,
    }
}

/// Whether a URL is neither at one of these hosts nor on this machine or network.
fn is_elsewhere(url: &str, known: &[&str]) -> bool {
    let Some((_, host)) = host(url) else {
        return false;
    };
    !known.contains(&&host[..]) && !is_near(&host)
}

/// What a container is given beyond its own.
fn host_rights(name: &str, value: &str) -> Option<Severity> {
    match name {
        "--privileged" => Some(Severity::Medium),
        "-v" | "--volume" if value.starts_with("/:") => Some(Severity::Medium),
        "-v" | "--volume" if value.starts_with("/var/run/docker.sock") => Some(Severity::Low),
        "--pid" | "--network" | "--net" if value == "host" => Some(Severity::Low),
        _ => None,
    }
}

/// How bad it is that a URL is spoken to in the clear, if it is.
fn in_the_clear(url: &str) -> Option<Severity> {
    let (scheme, host) = host(url)?;
    match scheme == "http" {
        false => None,
        true if is_this_machine(&host) => None,
        true if is_near(&host) => Some(Severity::Low),
        true => Some(Severity::Medium),
    }
}

/// Scheme and host of a URL, in small letters.
fn host(url: &str) -> Option<(String, String)> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then(|| (scheme.to_ascii_lowercase(), host.to_ascii_lowercase()))
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host == "host.docker.internal"
        || host.ends_with(".localhost")
        || host == "0.0.0.0"
        // A name that is filled in later.
        || host.contains(['$', '{'])
        || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Hosts of a private network, as far as names and numbers tell.
fn is_near(host: &str) -> bool {
    use std::net::IpAddr;
    let private = host.parse().is_ok_and(|ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    });
    let names = [".local", ".internal", ".lan", ".home.arpa"];
    private
        || is_this_machine(host)
        || (!host.contains(['.', ':']))
        || names.iter().any(|name| host.ends_with(name))
}

#[cfg(test)]
mod tests;
