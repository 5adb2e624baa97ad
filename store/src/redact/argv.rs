//! Secrets in the arguments of a command.
//!
//! Here a name is always followed by its value, so that values need not look like secrets:
//! `--token x`, `-e API_KEY=x`, `-H 'X-Api-Key: x'`, `-u name:x`.

use std::ops::Range;

use super::Redactor;
use super::class::{Class, skip_blanks};
use super::header;
use super::mark::{Hit, Kind, Rank, is_marked, print, settle};
use super::name::{Says, Strength, name_says_secret};
use super::pair::is_weak_secret;
use super::rules::variable_says_secret;
use super::view::Scan;
use super::words::{is_path, is_reference};

/// What the next argument is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Any,
    /// The value of a flag that says secret.
    Value(Says),
    /// `Name: value`
    Header,
    /// `name:password`
    User,
    /// `name=value; …` or a file's name.
    Cookies,
    /// A command line: as any text.
    Script,
}

/// The settled hits of each argument.
pub(super) fn scan<S: AsRef<str>>(redactor: &Redactor, args: &[S]) -> Vec<Vec<Hit>> {
    let mut next = Next::Any;
    let mut programs: Vec<&str> = Vec::new();
    let mut all = Vec::with_capacity(args.len());
    for arg in args {
        let arg = arg.as_ref();
        let text = arg.as_bytes();
        let (mut hits, _) = Scan::message(redactor, text);
        let mut add = |secret: Option<(Range<usize>, &'static str)>| {
            if let Some((range, kind)) =
                secret.filter(|(range, _)| !range.is_empty() && !is_marked(&text[range.clone()]))
            {
                let print = print(&redactor.key, &text[range.clone()]);
                hits.push(Hit {
                    range,
                    kind: Kind::known(kind),
                    rank: Rank::Name,
                    print,
                    bare: None,
                });
            }
        };
        let expected = std::mem::replace(&mut next, Next::Any);
        let is_flag = text.len() > 1 && text[0] == b'-' && !Class::DIGIT.has(text[1]);
        match expected {
            Next::Value(says) if !(is_flag && text.starts_with(b"--")) => add(value(text, 0, says)),
            Next::Header => add(header_value(text)),
            Next::User => add(user(text)),
            Next::Script => {}
            Next::Cookies if text.contains(&b'=') => add(Some((0..text.len(), "cookie"))),
            _ => {
                add(assignment(text));
                add(attached(text, &programs));
                if is_flag {
                    next = after_flag(arg, &programs);
                }
            }
        }
        if !is_flag {
            programs.push(arg.rsplit(['/', '\\']).next().unwrap_or(arg));
        }
        settle(text, &mut hits, |range| print(&redactor.key, &text[range]));
        all.push(hits);
    }
    all
}

fn value(text: &[u8], start: usize, says: Says) -> Option<(Range<usize>, &'static str)> {
    let value = &text[start..];
    let skip = header::secret_part(value, says.kind).start;
    let part = &value[skip..];
    let plain = is_reference(part) || is_path(part) && says.kind != "password";
    let secret = match says.strength {
        Strength::Strong => !plain,
        Strength::Weak => !plain && is_weak_secret(part, says),
    };
    secret.then_some((start + skip..text.len(), says.kind))
}

/// `NAME=value`, `--name=value`
fn assignment(text: &[u8]) -> Option<(Range<usize>, &'static str)> {
    let sign = memchr::memchr(b'=', text)?;
    let name = &text[..sign];
    let dashes = name.iter().take_while(|&&byte| byte == b'-').count();
    let name = &name[dashes..];
    let named = !name.is_empty()
        && name
            .iter()
            .all(|&byte| Class::DOTTED.has(byte) || matches!(byte, b':' | b'/' | b'@'));
    let says = name_says_secret(name).filter(|_| named)?;
    // `-e KEY=x`
    let loud = !Class::LOWER.any(name) && variable_says_secret(name, &text[sign + 1..]).is_some();
    let strength = if loud {
        Strength::Strong
    } else {
        says.strength
    };
    value(text, sign + 1, Says { strength, ..says })
}

/// `Name: value`
fn header_value(text: &[u8]) -> Option<(Range<usize>, &'static str)> {
    let colon = memchr::memchr(b':', text)?;
    let says = name_says_secret(&text[..colon])?;
    value(text, skip_blanks(text, colon + 1), says)
}

/// `name:password`, or Samba's `name%password`
fn user(text: &[u8]) -> Option<(Range<usize>, &'static str)> {
    let sign = text.iter().position(|byte| matches!(byte, b':' | b'%'))?;
    let (name, password) = (&text[..sign], &text[sign + 1..]);
    // `1000:1000` and `node:node` are a user and a group.
    let group = name == password || Class::DIGIT.all(password) && Class::DIGIT.all(name);
    (!group && !is_reference(password)).then_some((sign + 1..text.len(), "password"))
}

/// Flags with the value in the same argument: `mysql -psecret`, `-Hname: value`.
fn attached(text: &[u8], programs: &[&str]) -> Option<(Range<usize>, &'static str)> {
    let mysql = programs
        .iter()
        .any(|program| program.starts_with("mysql") || program.starts_with("mariadb"));
    match text {
        [b'-', b'p', _, ..] if mysql && text[2] != b'=' => Some((2..text.len(), "password")),
        [b'-', b'H', ..] => {
            header_value(&text[2..]).map(|(range, kind)| (range.start + 2..range.end + 2, kind))
        }
        _ => None,
    }
}

fn after_flag(flag: &str, programs: &[&str]) -> Next {
    let runs = |names: &[&str]| programs.iter().any(|program| names.contains(program));
    let password = Next::Value(Says {
        strength: Strength::Strong,
        kind: "password",
    });
    match flag {
        "-H" | "--header" | "--headers" | "--proxy-header" | "--http-header" | "--add-header" => {
            return Next::Header;
        }
        "-u" | "--user" | "--proxy-user" | "-U" | "--auth" | "--basic-auth" | "--creds" => {
            return Next::User;
        }
        "-b" | "--cookie" if runs(&["curl"]) => return Next::Cookies,
        "-c" | "-lc"
            if runs(&[
                "sh",
                "bash",
                "zsh",
                "dash",
                "fish",
                "cmd",
                "powershell",
                "pwsh",
            ]) =>
        {
            return Next::Script;
        }
        "-p" if runs(&["sshpass", "login", "mongosh", "mongo", "mongodump", "lftp"]) => {
            return password;
        }
        "-a" if runs(&["redis-cli"]) => return password,
        "-w" if runs(&["ldapsearch", "ldapmodify", "ldapadd"]) => return password,
        "-P" if runs(&["sqlcmd", "bcp"]) => return password,
        _ => {}
    }
    if flag.contains('=') {
        return Next::Any;
    }
    name_says_secret(flag.trim_start_matches('-').as_bytes()).map_or(Next::Any, Next::Value)
}
