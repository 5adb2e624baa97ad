//! Which server it is: by what runs, or where it is, and not by what it calls itself or what a
//! client's configuration calls it.
//!
//! | how it is reached | identity |
//! |---|---|
//! | a URL, also through `mcp-remote` and the like | `url:https://host/path`, without query, account and default port |
//! | `npx`, `bunx`, `pnpm dlx`, `yarn dlx`, `npm exec`, or a script below `node_modules` | `npm:@scope/name`, without version |
//! | `uvx`, `uv tool run`, `pipx run`, `python -m`, or a script below `site-packages` | `py:name`, without version and extras |
//! | `docker run`, `podman run` | `oci:image`, without tag and digest |
//! | a script of `node`, `deno`, `bun`, `python`, `ruby`, … | `file:/path/of/it` |
//! | another command | `cmd:name`, with the path if it is one; of a shell all of its words |
//!
//! Versions and arguments are no part of it: the definitions of another version are compared
//! with those of this one.

use super::reduced;

/// The longest identity, in bytes.
const LONGEST: usize = 512;
/// So many words of a command are looked at.
const WORDS: usize = 256;

/// What identifies the server of this command, run in this folder, or at this URL; both as they
/// are recorded, secrets hidden.
#[must_use]
pub fn of(command: &[String], folder: &str, url: Option<&str>) -> String {
    let words: Vec<&str> = command.iter().take(WORDS).map(|word| &word[..]).collect();
    let found = match url {
        Some(url) => address(url),
        None => run(&words, folder),
    };
    bounded(&reduced(&found)).to_owned()
}

fn bounded(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A URL without what may change: account, default port, query, fragment, closing slash.
fn address(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (scheme, rest) = url[..end]
        .split_once("://")
        .unwrap_or(("http", &url[..end]));
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let scheme = scheme.to_ascii_lowercase();
    let port = match &scheme[..] {
        "https" => ":443",
        _ => ":80",
    };
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix(port).unwrap_or(&host);
    format!("url:{scheme}://{host}{}", path.trim_end_matches('/'))
}

fn run(words: &[&str], folder: &str) -> String {
    let Some((program, rest)) = words.split_first() else {
        return "cmd:".into();
    };
    let name = program_name(program);
    let package = match (&name[..], rest.first().copied()) {
        ("env", _) => {
            let is_set = |word: &&&str| word.contains('=') || word.starts_with('-');
            let set = rest.iter().take_while(is_set).count();
            return run(&rest[set..], folder);
        }
        ("cmd", Some("/c" | "/C")) => return run(&rest[1..], folder),
        ("npx" | "bunx", _) => npm(rest),
        ("npm", Some("exec" | "x")) | ("pnpm" | "yarn", Some("dlx")) => npm(&rest[1..]),
        ("bun", Some("x")) => npm(&rest[1..]),
        ("uvx", _) => python(rest),
        ("pipx", Some("run")) => python(&rest[1..]),
        ("uv", Some("tool")) if rest.get(1) == Some(&"run") => python(&rest[2..]),
        ("uv", Some("run")) => {
            let rest = &rest[1..];
            let program = rest.iter().position(|word| !word.starts_with('-'));
            match program {
                Some(at) if is_runtime(&program_name(rest[at])) => return run(&rest[at..], folder),
                _ => None,
            }
        }
        ("docker" | "podman" | "nerdctl", Some("run")) => image(&rest[1..]),
        ("docker" | "podman", Some("container")) if rest.get(1) == Some(&"run") => {
            image(&rest[2..])
        }
        (name, _) if is_runtime(name) => script(rest, folder),
        ("sh" | "bash" | "zsh" | "dash" | "fish" | "powershell" | "pwsh" | "cmd", _) => {
            return format!("cmd:{name} {}", rest.join(" "));
        }
        _ => None,
    };
    package
        .or_else(|| installed(program))
        .unwrap_or_else(|| match program.contains(['/', '\\']) {
            true => format!("cmd:{}", absolute(program, folder)),
            false => format!("cmd:{name}"),
        })
}

/// The name of a program without its folder and its ending.
fn program_name(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.to_ascii_lowercase();
    let endings = [".exe", ".cmd", ".bat"];
    let plain = endings.iter().find_map(|ending| name.strip_suffix(ending));
    plain.unwrap_or(&name).to_owned()
}

fn is_runtime(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        plain,
        "node"
            | "deno"
            | "bun"
            | "python"
            | "pythonw"
            | "ruby"
            | "php"
            | "perl"
            | "tsx"
            | "ts-node"
    )
}

/// Options of `npx` and the like with a value behind them.
const NPM: [&str; 6] = ["-p", "--package", "-c", "--call", "--registry", "--cache"];
/// Options of `uvx` and the like with a value behind them.
const PYTHON: [&str; 10] = [
    "--python",
    "-p",
    "--with",
    "--index",
    "--index-url",
    "--extra-index-url",
    "--spec",
    "--with-editable",
    "--pip-args",
    "--cache-dir",
];
/// Options of `docker run` without a value behind them.
const FLAGS: [&str; 13] = [
    "-i",
    "-t",
    "-it",
    "-ti",
    "-d",
    "-P",
    "--rm",
    "--init",
    "--interactive",
    "--tty",
    "--privileged",
    "--read-only",
    "--detach",
];

fn npm(words: &[&str]) -> Option<String> {
    let (named, at) = first(words, &NPM, &["-p", "--package"])?;
    if named.is_none() {
        let package = words[at];
        // These stand between a client and a URL.
        let is_bridge = matches!(
            versionless(package),
            "mcp-remote" | "supergateway" | "mcp-proxy"
        );
        let url = words[at + 1..].iter().find(|word| word.contains("://"));
        if let Some(url) = url.filter(|_| is_bridge) {
            return Some(address(url));
        }
    }
    Some(format!("npm:{}", versionless(named.unwrap_or(words[at]))))
}

fn python(words: &[&str]) -> Option<String> {
    let (named, at) = first(words, &PYTHON, &["--from", "--spec"])?;
    let package = named.unwrap_or(words[at]);
    if package.contains("://") {
        return Some(format!("py:{package}"));
    }
    Some(format!("py:{}", distribution(package)))
}

/// The first word that is no option, and what one of the options `names` names.
fn first<'a>(
    words: &[&'a str],
    valued: &[&str],
    names: &[&str],
) -> Option<(Option<&'a str>, usize)> {
    let (mut at, mut named) = (0, None);
    while let Some(word) = words.get(at).copied() {
        if word == "--" {
            return words.get(at + 1).map(|_| (named, at + 1));
        }
        if !word.starts_with('-') {
            return Some((named, at));
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let takes = valued.contains(&name) || names.contains(&name);
        if names.contains(&name) {
            named = named.or(value.or_else(|| words.get(at + 1).copied()));
        }
        at += 1 + usize::from(takes && value.is_none());
    }
    named.map(|named| (Some(named), words.len() - 1))
}

/// An npm package without its version.
fn versionless(package: &str) -> &str {
    match package.char_indices().skip(1).find(|(_, c)| *c == '@') {
        Some((at, _)) => &package[..at],
        None => package,
    }
}

/// The normalised name of a Python distribution, without version and extras.
fn distribution(package: &str) -> String {
    let end = package.find(['=', '<', '>', '~', '!', '[', '@', ' ', ';']);
    let name = &package[..end.unwrap_or(package.len())];
    let name = name.to_ascii_lowercase();
    name.replace(['_', '.'], "-")
}

fn image(words: &[&str]) -> Option<String> {
    let mut at = 0;
    while words.get(at)?.starts_with('-') {
        let word = words[at];
        at += 1 + usize::from(!word.contains('=') && !FLAGS.contains(&word));
    }
    let image = words[at];
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    let path = image.rfind('/').map_or(0, |slash| slash + 1);
    let end = image[path..]
        .find(':')
        .map_or(image.len(), |tag| path + tag);
    Some(format!("oci:{}", &image[..end]))
}

/// What a runtime runs.
fn script(words: &[&str], folder: &str) -> Option<String> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match *word {
            "-m" => return Some(format!("py:{}", distribution(words.get(at + 1)?))),
            "run" => at += 1,
            "-e" | "-c" | "--eval" => return Some(format!("cmd:{}", words.join(" "))),
            "-r" | "--require" | "--import" | "--loader" | "-W" | "-X" | "--config" => at += 2,
            option if option.starts_with('-') => at += 1,
            script => {
                let url = script.contains("://") || script.starts_with("npm:");
                return installed(script).or_else(|| {
                    Some(match url {
                        true => format!("file:{script}"),
                        false => format!("file:{}", absolute(script, folder)),
                    })
                });
            }
        }
    }
    None
}

/// The package that a file belongs to, if it is one that was installed.
fn installed(path: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    if let Some((_, rest)) = path.rsplit_once("/node_modules/") {
        let mut parts = rest.split('/');
        let first = parts.next()?;
        return Some(match (first, parts.next()) {
            (".bin", Some(name)) => format!("npm:{name}"),
            (scope, Some(name)) if scope.starts_with('@') => format!("npm:{scope}/{name}"),
            (name, _) => format!("npm:{name}"),
        });
    }
    let (_, rest) = path.rsplit_once("/site-packages/")?;
    let name = rest.split('/').next()?;
    Some(format!("py:{}", distribution(name.trim_end_matches(".py"))))
}

/// A path without `.`, `..` and doubled slashes, from the root where the folder is known.
fn absolute(path: &str, folder: &str) -> String {
    let path = path.replace('\\', "/");
    let rooted = path.starts_with('/') || path.as_bytes().get(1) == Some(&b':');
    let full = match rooted || folder.is_empty() {
        true => path,
        false => format!("{}/{path}", folder.replace('\\', "/")),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in full.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let root = if full.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(command: &str) -> String {
        let words: Vec<String> = command.split(' ').map(Into::into).collect();
        of(&words, "/home/ada/project", None)
    }

    #[test]
    fn a_server_that_is_reached_in_several_ways_is_one() {
        for (expected, ways) in [
            (
                "npm:@scope/server",
                &[
                    "npx @scope/server",
                    "npx -y @scope/server@1.2.3 /data",
                    "npx --yes --package=@scope/server@latest server",
                    "/opt/node/bin/npx -p @scope/server server",
                    "cmd /c npx @scope/server",
                    "pnpm dlx @scope/server",
                    "npm exec -- @scope/server",
                    "node /home/ada/node_modules/@scope/server/dist/index.js --port 3",
                    "node --no-warnings /usr/lib/node_modules/@scope/server/dist/index.js",
                    "env DEBUG=1 npx @scope/server",
                ][..],
            ),
            (
                "py:mcp-server-git",
                &[
                    "uvx mcp-server-git",
                    "uvx --from mcp_server_git==1.0 git-server",
                    "uv tool run mcp-server-git[x]",
                    "python3.12 -m mcp_server_git --repository .",
                    "pipx run mcp-server-git",
                    "uv run python -m mcp_server_git",
                ],
            ),
            (
                "oci:ghcr.io/github/server",
                &[
                    "docker run -i --rm -e TOKEN ghcr.io/github/server:v1",
                    "podman run --init ghcr.io/github/server@sha256:00 stdio",
                ],
            ),
            (
                "url:https://mcp.example.com/sse",
                &[
                    "npx mcp-remote https://MCP.example.com:443/sse/?key=1",
                    "npx -y mcp-remote@latest https://u:p@mcp.example.com/sse --header x",
                ],
            ),
            (
                "file:/home/ada/project/server.py",
                &[
                    "python server.py",
                    "python3 -u ./server.py --verbose",
                    "/usr/bin/python /home/ada/project/x/../server.py",
                ],
            ),
            (
                "cmd:/opt/a/server",
                &["/opt/a/server --port 3", "/opt//a/./server"],
            ),
            ("cmd:github-mcp", &["github-mcp stdio", "github-mcp.exe"]),
        ] {
            for way in ways {
                assert_eq!(named(way), expected, "{way}");
            }
        }
        let url = of(&[], "", Some("https://mcp.example.com/sse#x"));
        assert_eq!(url, "url:https://mcp.example.com/sse");
    }

    #[test]
    fn other_servers_are_others() {
        let all = [
            "npx @scope/server",
            "npx server",
            "uvx server",
            "python /a/server.py",
            "python /b/server.py",
            "/a/server",
            "/b/server",
            "server",
            "sh -c a",
            "sh -c b",
            "docker run server",
            "npx mcp-remote https://a.example/mcp",
            "npx mcp-remote https://b.example/mcp",
        ];
        let names: std::collections::BTreeSet<String> = all.iter().map(|way| named(way)).collect();
        assert_eq!(names.len(), all.len(), "{names:?}");
    }

    #[test]
    fn any_command_has_one() {
        for way in [
            "",
            "npx",
            "npx -y",
            "npx -p",
            "uvx --from",
            "docker run",
            "node",
            "python -m",
            "é -é=é @",
        ] {
            assert!(!named(way).is_empty(), "{way}");
        }
        assert_eq!(of(&[], "", None), "cmd:");
    }
}
