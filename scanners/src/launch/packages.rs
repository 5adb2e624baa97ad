//! What a command line fetches before it runs it.

/// The name of a program, without its folder and ending.
fn program(word: &str) -> String {
    let file = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let file = file.to_ascii_lowercase();
    for ending in [".exe", ".cmd", ".bat"] {
        if let Some(stem) = file.strip_suffix(ending) {
            return stem.to_owned();
        }
    }
    file
}

/// The words without what only starts others: `env`, `cmd /c`, our own relay.
fn unwrapped(words: &[&str]) -> usize {
    let mut at = 0;
    loop {
        let Some(word) = words.get(at) else { return at };
        match &program(word)[..] {
            "cmd"
                if words
                    .get(at + 1)
                    .is_some_and(|word| word.eq_ignore_ascii_case("/c")) =>
            {
                at += 2;
            }
            "env" => {
                at += 1;
                while words
                    .get(at)
                    .is_some_and(|word| word.contains('=') || word.starts_with('-'))
                {
                    at += 1;
                }
            }
            "agent-trace" => match words[at..].iter().position(|word| *word == "--") {
                Some(dashes) => at += dashes + 1,
                None => return at,
            },
            _ => return at,
        }
    }
}

/// Whether the command starts a container.
pub(super) fn is_container(words: &[&str]) -> bool {
    let words = &words[unwrapped(words)..];
    let is = |name: &&str| matches!(&program(name)[..], "docker" | "podman" | "nerdctl");
    words.first().is_some_and(is) && words.contains(&"run")
}

/// The position of a script that fetches another and runs it.
pub(super) fn downloaded_script(words: &[&str]) -> Option<usize> {
    let from = unwrapped(words);
    let shell = program(words.get(from)?);
    let is_shell = matches!(
        &shell[..],
        "sh" | "bash" | "zsh" | "dash" | "ksh" | "fish" | "powershell" | "pwsh" | "cmd"
    );
    // `cmd /c` was passed over; what follows it is a line for a shell.
    if !is_shell && from == 0 {
        return None;
    }
    let rest = words.iter().enumerate().skip(from);
    rest.filter(|(_, word)| fetches_and_runs(word))
        .map(|(at, _)| at)
        .next()
}

fn fetches_and_runs(script: &str) -> bool {
    let lower = script.to_ascii_lowercase();
    let fetches = [
        "curl ",
        "wget ",
        "invoke-webrequest",
        "iwr ",
        "irm ",
        "invoke-restmethod",
        "downloadstring",
    ];
    if !fetches.iter().any(|word| lower.contains(word)) {
        return false;
    }
    // Through a pipe, in place of a file, or in place of words.
    let shells = [
        "sh",
        "bash",
        "zsh",
        "dash",
        "python",
        "python3",
        "node",
        "perl",
        "ruby",
        "iex",
        "invoke-expression",
    ];
    let piped = lower.split('|').skip(1).any(|part| {
        let mut words = part
            .split_whitespace()
            .filter(|word| !matches!(*word, "sudo" | "env" | "exec"));
        words
            .next()
            .is_some_and(|word| shells.contains(&&program(word)[..]))
    });
    let taken = [
        "<(curl", "<(wget", "$(curl", "$(wget", "`curl", "`wget", "iex (", "iex(", "iex ",
    ];
    let runs = lower.contains("eval")
        || lower.contains(" -c ")
        || lower.starts_with("iex")
        || lower.contains("<(")
        || lower.contains("iex")
        || lower.starts_with('$')
        || lower.starts_with('`');
    piped || (runs && taken.iter().any(|word| lower.contains(word)))
}

/// The position of a package or image that is fetched without a version.
pub(super) fn unpinned(words: &[&str]) -> Option<usize> {
    let from = unwrapped(words);
    let name = program(words.get(from)?);
    let rest = |after: usize| from + after;
    let (at, ok): (usize, fn(&str) -> bool) = match (&name[..], words.get(from + 1).copied()) {
        ("npx" | "bunx", _) => (
            package(
                words,
                rest(1),
                &["-p", "--package", "-c", "--call"],
                &["-p", "--package"],
            )?,
            npm,
        ),
        ("npm", Some("exec" | "x")) | ("pnpm" | "yarn", Some("dlx")) | ("bun", Some("x")) => (
            package(
                words,
                rest(2),
                &["-p", "--package", "-c", "--call"],
                &["-p", "--package"],
            )?,
            npm,
        ),
        ("uvx", _) => (package(words, rest(1), UV, &["--from"])?, python),
        ("uv", Some("tool")) if words.get(from + 2) == Some(&"run") => {
            (package(words, rest(3), UV, &["--from"])?, python)
        }
        ("pipx", Some("run")) => (
            package(
                words,
                rest(2),
                &["--python", "--pip-args", "--index-url"],
                &["--spec"],
            )?,
            python,
        ),
        ("docker" | "podman" | "nerdctl", Some("run")) => {
            (package(words, rest(2), DOCKER, &[])?, image)
        }
        _ => return None,
    };
    (!ok(words[at])).then_some(at)
}

/// Options of `uvx` that take a value.
const UV: &[&str] = &[
    "--from",
    "--with",
    "--python",
    "-p",
    "--index-url",
    "--extra-index-url",
    "--default-index",
    "--index",
    "--directory",
    "--project",
    "--with-requirements",
    "--with-editable",
    "--env-file",
    "--refresh-package",
    "--cache-dir",
    "--config-file",
];
/// Options of `docker run` that take a value.
const DOCKER: &[&str] = &[
    "-e",
    "--env",
    "--env-file",
    "-v",
    "--volume",
    "--mount",
    "-p",
    "--publish",
    "--name",
    "--network",
    "--net",
    "-u",
    "--user",
    "-w",
    "--workdir",
    "--entrypoint",
    "-l",
    "--label",
    "-m",
    "--memory",
    "--cpus",
    "--add-host",
    "--platform",
    "--pull",
    "-h",
    "--hostname",
    "--gpus",
    "--tmpfs",
    "--cap-add",
    "--cap-drop",
    "--security-opt",
    "--shm-size",
    "--log-driver",
    "--log-opt",
    "--pid",
    "--ipc",
    "--device",
    "--ulimit",
    "--dns",
];

/// The position of what is fetched: what a `naming` option gives, else the first word that is
/// no option and no option's value.
fn package(words: &[&str], from: usize, with_value: &[&str], naming: &[&str]) -> Option<usize> {
    let mut at = from;
    while let Some(word) = words.get(at) {
        if naming.contains(word) {
            return (at + 1 < words.len()).then_some(at + 1);
        }
        if naming.iter().any(|name| {
            word.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('='))
        }) {
            return Some(at);
        }
        if with_value.contains(word) {
            at += 2;
        } else if word.starts_with('-') {
            at += 1;
        } else {
            return Some(at);
        }
    }
    None
}

/// What is given after `=`, if it is an option.
fn value(word: &str) -> &str {
    match word.starts_with('-') {
        true => word.split_once('=').map_or(word, |(_, value)| value),
        false => word,
    }
}

/// Whether it is a place on this machine, or filled in later.
fn is_local(word: &str) -> bool {
    word.starts_with(['.', '/', '~', '$']) || word.contains("${") || word.starts_with("file:")
}

/// Whether a package of npm has one version.
fn npm(word: &str) -> bool {
    let word = value(word);
    let name = word.strip_prefix('@').unwrap_or(word);
    match name.split_once('@') {
        Some((_, version)) => is_version(version),
        None => is_local(word),
    }
}

/// Whether a package of Python has one version.
fn python(word: &str) -> bool {
    let word = value(word);
    if is_local(word) {
        return true;
    }
    if let Some((_, version)) = word.split_once("==") {
        return is_version(version.trim());
    }
    if let Some((_, place)) = word.split_once("git+") {
        // A commit cannot move.
        let at = place.rsplit_once('@').map_or("", |(_, at)| at);
        return at.len() >= 7 && at.bytes().all(|b| b.is_ascii_hexdigit())
            || is_version(at.trim_start_matches('v'));
    }
    match word.split_once('@') {
        Some((_, version)) => is_version(version.trim()),
        None => false,
    }
}

/// Whether an image has one version.
fn image(word: &str) -> bool {
    if word.contains("@sha256:") || is_local(word) {
        return true;
    }
    let name = word.rsplit('/').next().unwrap_or(word);
    name.split_once(':')
        .is_some_and(|(_, tag)| tag != "latest" && !tag.is_empty())
}

fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(['x', '*', ' ', '|', '>', '<'])
        || text.contains("${")
}
