//! Made-up secrets of many kinds, and the search for what is left of them.
//!
//! They are put together here from pieces, so that nobody takes them for real ones.

use super::Home;
use std::collections::HashMap;
use std::path::PathBuf;

/// A secret in a text.
#[derive(Clone, Debug)]
pub(crate) struct Secret {
    /// What it is, and where it was put.
    pub(crate) label: String,
    /// As it stands in a text, with what makes it one.
    pub(crate) text: String,
    /// What of the text is secret: of this not even eight bytes may be left.
    parts: Vec<String>,
}

const ALNUM: &str = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHJKLMNPQRSTUVWXYZ234567";

/// Draws secrets: other ones from each seed, the same ones from the same.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn random(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet = alphabet.as_bytes();
        let mut next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            let index = usize::try_from(self.0 >> 33).unwrap() % alphabet.len();
            char::from(alphabet[index])
        };
        (0..length).map(|_| next()).collect()
    }

    /// One secret of each kind, for this place.
    pub(crate) fn each_kind(&mut self, place: &str) -> Vec<Secret> {
        let mut all = Vec::new();
        let mut add = |kind: &str, text: String, parts: &[&str]| {
            all.push(Secret {
                label: format!("{kind} in {place}"),
                text,
                parts: parts.iter().map(ToString::to_string).collect(),
            });
        };
        // Told by their shape.
        for (kind, pieces, alphabet, length) in [
            ("anthropic", ["sk-", "ant-api03-"], ALNUM, 80),
            ("openai", ["sk-", "proj-"], ALNUM, 60),
            ("github", ["gh", "p_"], ALNUM, 36),
            ("github app", ["gh", "s_"], ALNUM, 36),
            ("github fine", ["github", "_pat_"], ALNUM, 60),
            ("gitlab", ["gl", "pat-"], ALNUM, 20),
            ("slack", ["xo", "xb-1234567890-"], ALNUM, 24),
            ("stripe", ["sk_", "live_"], ALNUM, 24),
            ("google", ["AI", "za"], ALNUM, 35),
            ("npm", ["np", "m_"], ALNUM, 36),
            ("huggingface", ["h", "f_"], ALNUM, 34),
            ("sendgrid", ["S", "G."], ALNUM, 60),
            ("digitalocean", ["dop", "_v1_"], HEX, 64),
            ("aws id", ["AK", "IA"], UPPER, 16),
        ] {
            let secret = self.random(alphabet, length);
            add(kind, pieces.concat() + &secret, &[&secret]);
        }
        let (claims, signature) = (self.random(ALNUM, 40), self.random(ALNUM, 43));
        let head = ["eyJ", "hbGciOiJIUzI1NiJ9"].concat();
        let token = format!("{head}.eyJ{claims}.{signature}");
        add("jwt", token, &[&claims, &signature]);
        let hook = self.random(ALNUM, 24);
        let url = ["https://hooks.slack", ".com/services/T01ABCDEF/B01ABCDEF/"].concat();
        add("web hook", url + &hook, &[&hook]);
        // Told by what stands around them.
        for (kind, before, after, length) in [
            ("bearer", "Authorization: Bearer ", "", 40),
            ("cookie", "Cookie: session=", "; theme=dark", 32),
            ("password", "password=", "", 16),
            (
                "password of a URL",
                "postgres://app:",
                "@db.example.com/x",
                20,
            ),
            (
                "parameter of a URL",
                "https://x.example.com/cb?access_token=",
                "&state=1",
                32,
            ),
            (
                "code of a URL",
                "https://x.example.com/cb?code=",
                "&state=1",
                32,
            ),
            ("variable", "SERVICE_API_KEY=", "", 32),
            ("member", "{\"client_secret\": \"", "\"}", 32),
            ("key and value", "api_key: ", "", 32),
        ] {
            let secret = self.random(ALNUM, length - 1) + "7";
            add(kind, format!("{before}{secret}{after}"), &[&secret]);
        }
        let (id, key) = (self.random(UPPER, 16), self.random(ALNUM, 39) + "9");
        let pair = format!("{}{id} and {key}", ["AK", "IA"].concat());
        add("aws pair", pair, &[&id, &key]);
        let lines: Vec<String> = (0..6).map(|_| self.random(ALNUM, 64)).collect();
        let parts: Vec<&str> = lines.iter().map(|line| &line[..]).collect();
        let dashes = "-".repeat(5);
        let label = ["RSA PRIV", "ATE KEY"].concat();
        let block = format!(
            "{dashes}BEGIN {label}{dashes}\n{}\n{dashes}END {label}{dashes}",
            lines.join("\n")
        );
        add("private key", block, &parts);
        all
    }

    /// A token that is told by its shape, in any place.
    pub(crate) fn token(&mut self, place: &str) -> Secret {
        let secret = self.random(ALNUM, 36);
        Secret {
            label: format!("github in {place}"),
            text: ["gh", "p_"].concat() + &secret,
            parts: vec![secret],
        }
    }

    /// A value that is told by nothing but its name, which the caller gives it.
    pub(crate) fn value(&mut self, place: &str) -> Secret {
        let secret = self.random(ALNUM, 24) + "5x";
        Secret {
            label: format!("value in {place}"),
            text: secret.clone(),
            parts: vec![secret],
        }
    }
}

/// The least that must not be left of a secret.
const WINDOW: usize = 8;

/// What is looked for in the store and in what commands print.
pub(crate) struct Search<'a> {
    windows: HashMap<&'a [u8], &'a str>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(secrets: &'a [Secret]) -> Self {
        let mut windows = HashMap::new();
        for secret in secrets {
            for part in &secret.parts {
                let parts = part.as_bytes().windows(WINDOW);
                windows.extend(parts.map(|window| (window, &secret.label[..])));
            }
        }
        assert!(!windows.is_empty());
        Self { windows }
    }

    /// The secrets of which something is left in a text.
    pub(crate) fn left_in(&self, text: &[u8]) -> Vec<&'a str> {
        let mut left: Vec<&str> = text
            .windows(WINDOW)
            .filter_map(|window| self.windows.get(window).copied())
            .collect();
        left.sort_unstable();
        left.dedup();
        left
    }

    #[track_caller]
    pub(crate) fn assert_not_in(&self, text: &[u8], what: &str) {
        let left = self.left_in(text);
        assert_eq!(left, [""; 0], "left in {what}");
    }

    /// Nothing is left in any file of the store, nor in anything that commands print of it.
    #[track_caller]
    pub(crate) fn assert_nowhere(&self, home: &Home) {
        let files: Vec<(PathBuf, Vec<u8>)> = home.store_files();
        assert!(files.iter().any(|(path, _)| path.extension().is_some()));
        for (path, content) in files {
            self.assert_not_in(&content, &path.display().to_string());
            let name = path.display().to_string();
            self.assert_not_in(name.as_bytes(), "a file's name");
        }
        for command in [
            "runs",
            "runs --format json",
            "runs --format jsonl",
            "show latest -s 0 --stderr --numbers",
            "show latest -c",
            "show latest -c --format json",
            "show latest --frames",
            "show latest --format json",
            "show latest --format jsonl",
            "export latest -o -",
            "redact --run latest",
            "doctor",
            "config",
            "retention",
            "show latest -s 0 --stderr",
            "--log trace show latest --format json",
        ] {
            let said = home.run(command.split(' '));
            assert!(said.code < 2, "{command}: {said:?}");
            self.assert_not_in(said.out.as_bytes(), command);
            self.assert_not_in(said.err.as_bytes(), command);
        }
    }
}
