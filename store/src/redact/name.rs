//! Does a name say that its value is secret?
//!
//! A name is split into words (`clientSecret`, `X-Api-Key`, `PGPASSWORD`). Its head, the last
//! word that speaks of secrets, decides; what follows the head can make it a thing about a
//! secret (`token_count`, `password_hint`, `secretName`), and what precedes it can make it
//! something else altogether (`progressToken`, `nextPageToken`, `primary_key`).

/// What a name says about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Says {
    /// How sure it is.
    pub strength: Strength,
    /// What kind of secret it speaks of, as markers name it.
    pub kind: &'static str,
}

/// How sure a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// The value is secret only if it looks like chance (`key`, `session`, `code`).
    Weak,
    /// The value is secret whatever it looks like (`password`, `api_key`).
    Strong,
}

/// Longer names are no names.
const MAX_NAME: usize = 96;
const MAX_WORDS: usize = 16;

/// What `name` says, if it says secret at all.
#[must_use]
pub fn name_says_secret(name: &[u8]) -> Option<Says> {
    let mut buffer = [0; MAX_NAME];
    let words = Words::split(name, &mut buffer)?;
    let words = words.as_slice();
    let at = words.iter().rposition(|word| head(word).is_some())?;
    let head = head(words[at])?;
    let (before, after) = (&words[..at], &words[at + 1..]);
    if before.is_empty() && after.is_empty() && is_lone_exception(name) {
        return None;
    }
    if words == ["mcp", "session", "id"] {
        // A credential on the wire, unlike the many other ids of sessions.
        return Some(Says {
            strength: Strength::Strong,
            kind: "session-id",
        });
    }
    if after.iter().any(|word| is_about(word)) || before.iter().any(|word| STATES.contains(word)) {
        return None;
    }
    let says = head.judge(before)?;
    let plain = after.iter().all(|word| is_neutral(word));
    // `TOKEN_GITHUB` is a token, `token_bucket` is not; an environment shouts its names.
    let loud = !name.iter().any(u8::is_ascii_lowercase);
    if plain || says.kind == "password" || loud {
        Some(says)
    } else {
        Some(Says {
            strength: Strength::Weak,
            ..says
        })
    }
}

/// Whether a value under this name is opaque by protocol: it may look like a credential
/// (a signed cursor is a JWT) and is none.
pub(super) fn is_opaque(name: &[u8]) -> bool {
    OPAQUE.iter().any(|known| name.eq_ignore_ascii_case(known))
}

const OPAQUE: &[&[u8]] = &[
    b"requestState",
    b"progressToken",
    b"cursor",
    b"nextCursor",
    b"pageToken",
    b"nextPageToken",
    b"nextToken",
    b"continuationToken",
    b"syncToken",
    b"page_token",
    b"next_page_token",
    b"next_cursor",
    b"continuation_token",
    b"sync_token",
];

/// Whether a name of two words, the second of which says secret, says something else than the
/// second alone: `api_key` more than `key`, `page_token` less than `token`.
pub(super) fn is_qualified(name: &[u8]) -> bool {
    let mut buffer = [0; MAX_NAME];
    let Some(words) = Words::split(name, &mut buffer) else {
        return false;
    };
    match words.as_slice() {
        [first, "key" | "keys", ..] => {
            *first == "api" || KEY_OF.contains(first) || NO_KEY.contains(first)
        }
        [first, "token" | "tokens", ..] => NO_TOKEN.contains(first),
        [first, "code", ..] => CODE_OF.contains(first),
        _ => false,
    }
}

/// The current directory of a shell.
fn is_lone_exception(name: &[u8]) -> bool {
    matches!(name, b"PWD" | b"OLDPWD")
}

#[derive(Clone, Copy)]
enum Head {
    Password,
    /// Secret whatever precedes.
    Sure(&'static str),
    Token,
    Key,
    Pass,
    /// A personal access token, or a pattern.
    Pat,
    /// `code_verifier`
    Verifier,
    Weak(&'static str),
}

fn head(word: &str) -> Option<Head> {
    let found = match word {
        "password" | "passwords" | "passwd" | "pwd" | "passphrase" | "passcode" | "passwort" => {
            Head::Password
        }
        "secret" | "secrets" => Head::Sure("secret"),
        "authorization" => Head::Sure("authorization"),
        "cookie" | "cookies" => Head::Sure("cookie"),
        "credential" | "credentials" | "creds" => Head::Sure("credential"),
        "bearer" | "jwt" => Head::Sure("token"),
        "apikey" | "apikeys" => Head::Sure("api-key"),
        "mnemonic" => Head::Sure("mnemonic"),
        "verifier" => Head::Verifier,
        "token" => Head::Token,
        "key" | "keys" => Head::Key,
        "pass" => Head::Pass,
        "pat" => Head::Pat,
        "tokens" => Head::Weak("token"),
        "auth" => Head::Weak("authorization"),
        "session" | "sid" => Head::Weak("session"),
        "sig" | "signature" => Head::Weak("signature"),
        "nonce" => Head::Weak("nonce"),
        "code" => Head::Weak("code"),
        _ => return compact(word),
    };
    Some(found)
}

/// Names that are written as one word: `PGPASSWORD`, `accesstoken`, `MYSECRETKEY`.
fn compact(word: &str) -> Option<Head> {
    const ENDS: &[(&str, Head)] = &[
        ("password", Head::Password),
        ("passwd", Head::Password),
        ("passphrase", Head::Password),
        ("apikey", Head::Sure("api-key")),
        ("secretkey", Head::Sure("key")),
        ("accesskey", Head::Sure("key")),
        ("privatekey", Head::Sure("key")),
        ("accountkey", Head::Sure("key")),
        ("encryptionkey", Head::Sure("key")),
        ("signingkey", Head::Sure("key")),
        ("masterkey", Head::Sure("key")),
        ("authkey", Head::Sure("key")),
        ("appkey", Head::Sure("key")),
        ("privkey", Head::Sure("key")),
        ("secret", Head::Sure("secret")),
        ("token", Head::Token),
        ("cookie", Head::Sure("cookie")),
        ("pwd", Head::Password),
        ("sessionid", Head::Weak("session")),
        ("sessid", Head::Weak("session")),
    ];
    if word.len() < 6 || word == "oldpwd" {
        return None;
    }
    if word
        .strip_suffix("pass")
        .is_some_and(|of| PASS_OF.contains(&of))
    {
        return Some(Head::Password);
    }
    let (end, head) = ENDS.iter().find(|(end, _)| word.ends_with(end))?;
    let rest = &word[..word.len() - end.len()];
    let other = matches!(head, Head::Token)
        && NO_TOKEN
            .iter()
            .any(|first| rest.starts_with(first) || rest.ends_with(first));
    (!other).then_some(*head)
}

impl Head {
    fn judge(self, before: &[&str]) -> Option<Says> {
        let strong = |kind| {
            Some(Says {
                strength: Strength::Strong,
                kind,
            })
        };
        let weak = |kind| {
            Some(Says {
                strength: Strength::Weak,
                kind,
            })
        };
        match self {
            Self::Password => {
                let deed = before.last().is_some_and(|word| DEEDS.contains(word));
                if deed { None } else { strong("password") }
            }
            Self::Sure(kind) => strong(kind),
            Self::Token => {
                let other = before.iter().any(|word| NO_TOKEN.contains(word));
                if other { None } else { strong("token") }
            }
            Self::Pass => match before.last() {
                Some(word) if PASS_OF.contains(word) => strong("password"),
                _ => weak("password"),
            },
            Self::Verifier => (before.last() == Some(&"code")).then_some(Says {
                strength: Strength::Strong,
                kind: "code",
            }),
            Self::Pat => match before.last() {
                Some(
                    &("ado" | "azure" | "bitbucket" | "devops" | "ext" | "gh" | "git" | "github"
                    | "gitlab" | "jira"),
                ) => strong("token"),
                _ => weak("token"),
            },
            Self::Key => match before.last() {
                Some(&"api") => strong("api-key"),
                Some(word) if KEY_OF.contains(word) => strong("key"),
                Some(word) if NO_KEY.contains(word) => None,
                _ => weak("key"),
            },
            // `authorization_code`, `oauth_code`, `code_verifier`: single use, yet secret.
            Self::Weak("code") => match before.last() {
                Some(word) if CODE_OF.contains(word) => strong("code"),
                _ => weak("code"),
            },
            Self::Weak(kind) => weak(kind),
        }
    }
}

/// Words after the head that make a name speak *about* a secret.
#[rustfmt::skip]
const ABOUT: &[&str] = &[
    "address", "age", "alg", "algorithm", "alias", "amount", "arn", "at", "audience", "backend", "balance", "based", "box", "budget",
    "button", "callback", "challenge", "change", "changed", "checksum", "claims", "color", "contract", "cost", "count", "created", "date",
    "decimals", "desc", "description", "digest", "dir", "directory", "disabled", "driver", "duration", "email", "enabled", "encryption",
    "endpoint", "engine", "entry", "env", "envvar", "error", "exchange", "exists", "expiration", "expire", "expired", "expiry", "factory",
    "family", "field", "file", "filename", "fingerprint", "flag", "folder", "form", "format", "four", "generator", "grant", "handler",
    "header", "help", "hint", "holder", "id", "idx", "index", "input", "invalid", "issuer", "jar", "kind", "label", "language", "last",
    "latency", "ldflags", "len", "length", "lifetime", "limit", "link", "list", "location", "manager", "masked", "max", "message", "method",
    "min", "mode", "model", "name", "offset", "on", "option", "owner", "page", "param", "parameter", "path", "pattern", "per",
    "placeholder", "policies", "policy", "position", "prefix", "preview", "price", "prompt", "properties", "provider", "query", "question",
    "rate", "ratio", "ref", "reference", "regex", "required", "reset", "rotation", "rule", "schema", "scope", "selector", "service", "size",
    "sock", "source", "state", "status", "stdin", "storage", "store", "strength", "style", "suffix", "supply", "supported", "symbol",
    "thumbprint", "time", "timeout", "timestamp", "title", "tokenizer", "total", "ttl", "type", "updated", "uri", "url", "usage", "used",
    "valid", "validation", "validator", "validity", "var", "variable", "vault", "verified", "version", "visibility", "visible", "window",
];

fn is_about(word: &str) -> bool {
    let one = word.strip_suffix('s').unwrap_or(word);
    ABOUT.contains(&word) || ABOUT.contains(&one)
}

/// Words before the head that make a name a yes-or-no or an event.
#[rustfmt::skip]
const STATES: &[&str] = &[
    "allow", "can", "enable", "expired", "forgot", "has", "hide", "invalid", "is", "missing", "needs", "requires", "should", "show",
    "supports", "use", "uses", "without",
];

/// `resetPassword` is a deed; `reset_token` is a secret.
const DEEDS: &[&str] = &["change", "forget", "recover", "reset", "update", "verify"];

/// Tokens that are places in a list, pieces of text, coins, or handles of a protocol.
#[rustfmt::skip]
const NO_TOKEN: &[&str] = &[
    "bos", "cached", "cancel", "cancellation", "cls", "color", "completion", "continuation", "continue", "cursor", "delta", "design", "eos",
    "governance", "idempotency", "lp", "mask", "max", "min", "native", "next", "nft", "num", "output", "pad", "page", "paging", "pagination",
    "prev", "previous", "progress", "prompt", "reasoning", "resume", "resumption", "reward", "semantic", "separator", "skip", "special",
    "start", "starting", "stop", "sub", "sync", "syntax", "theme", "unk", "word",
];

/// Codes that are exchanged for a token, or replace a password.
const CODE_OF: &[&str] = &[
    "auth",
    "authorization",
    "backup",
    "code",
    "device",
    "oauth",
    "recovery",
];

/// `smtp_pass` is a password, `render_pass` is not.
#[rustfmt::skip]
const PASS_OF: &[&str] = &[
    "account", "admin", "auth", "basic", "broker", "database", "db", "email", "ftp", "http", "imap", "ldap", "login", "mail", "master",
    "mongo", "mongodb", "mqtt", "mysql", "pg", "pop", "postgres", "postgresql", "proxy", "redis", "root", "server", "sftp", "smtp", "sql", "ssh",
    "sudo", "svc", "user", "vpn", "wifi",
];

/// Keys that open something.
#[rustfmt::skip]
const KEY_OF: &[&str] = &[
    "access", "account", "admin", "aes", "anon", "anthropic", "app", "application", "auth", "authentication", "azure", "brave", "cf", "client", "cloudflare",
    "cohere", "consumer", "datadog", "dd", "decryption", "deploy", "deepseek", "encryption", "exa", "figma", "firecrawl", "functions", "gemini", "github",
    "gitlab", "google", "groq", "hf", "hmac", "huggingface", "integration", "jwt", "linear", "mailgun", "maps", "master", "mistral", "newrelic", "notion",
    "openai", "openrouter", "perplexity", "pinecone", "priv", "privacy", "private", "rest", "role", "secret", "sendgrid", "serp", "serpapi", "server", "service", "shared",
    "signing", "ssh", "stripe", "subscription", "supabase", "tavily", "twilio", "webhook", "write", "xai",
];

/// Keys that name or order something, or are made to be shown.
#[rustfmt::skip]
const NO_KEY: &[&str] = &[
    "cache", "composite", "config", "dict", "foreign", "gpg", "group", "hash", "host", "hot", "i18n", "idempotency", "index", "issue", "json",
    "locale", "map", "meta", "metadata", "object", "partition", "primary", "project", "public", "publishable", "query", "range", "registry", "root",
    "routing", "row", "shortcut", "sort", "tag", "translation", "unique",
];

/// Words after the head that leave it what it is.
fn is_neutral(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
        || matches!(
            word,
            "again"
                | "b"
                | "base"
                | "base64"
                | "beta"
                | "confirm"
                | "confirmation"
                | "current"
                | "data"
                | "dev"
                | "enc"
                | "encoded"
                | "encrypted"
                | "hash"
                | "live"
                | "new"
                | "old"
                | "plain"
                | "plaintext"
                | "prod"
                | "production"
                | "raw"
                | "repeat"
                | "staging"
                | "str"
                | "string"
                | "test"
                | "text"
                | "v"
                | "val"
                | "value"
                | "values"
        )
}

/// The words of a name, lower case, in a buffer of the caller's.
struct Words<'b> {
    words: [&'b str; MAX_WORDS],
    count: usize,
}

impl<'b> Words<'b> {
    fn split(name: &[u8], buffer: &'b mut [u8; MAX_NAME]) -> Option<Self> {
        let buffer = buffer.get_mut(..name.len())?;
        buffer.copy_from_slice(name);
        buffer.make_ascii_lowercase();
        let lower: &'b str = std::str::from_utf8(buffer).ok()?;
        let mut split = Self {
            words: [""; MAX_WORDS],
            count: 0,
        };
        let mut start = 0;
        for at in 0..=name.len() {
            if at == name.len() || !name[at].is_ascii_alphanumeric() {
                split.push(lower.get(start..at)?)?;
                start = at + 1;
            } else if at > start && is_seam(name, at) {
                split.push(lower.get(start..at)?)?;
                start = at;
            }
        }
        Some(split)
    }

    /// `None` if there are too many.
    fn push(&mut self, word: &'b str) -> Option<()> {
        if !word.is_empty() {
            *self.words.get_mut(self.count)? = word;
            self.count += 1;
        }
        Some(())
    }

    fn as_slice(&self) -> &[&'b str] {
        &self.words[..self.count]
    }
}

/// Whether a new word starts at `at`, with a letter or digit on both sides.
fn is_seam(name: &[u8], at: usize) -> bool {
    let (before, here) = (name[at - 1], name[at]);
    if before.is_ascii_digit() != here.is_ascii_digit() {
        return true;
    }
    let ends_acronym = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    here.is_ascii_uppercase() && (before.is_ascii_lowercase() || ends_acronym)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strength(name: &str) -> Option<Strength> {
        name_says_secret(name.as_bytes()).map(|says| says.strength)
    }

    #[test]
    fn strong_names() {
        let names = "password Password db_password dbPassword PGPASSWORD MYSQL_PWD passwd passphrase user_pass DBPASS \
            password_confirmation newPassword password2 password_hash secret client_secret clientSecret SECRET_KEY app.secret token \
            access_token accessToken refresh_token id_token authToken _authToken GITHUB_TOKEN TOKEN_GITHUB csrf_token X-Auth-Token \
            password_reset_token api_key apiKey apikey API_KEY x-api-key X-Api-Key OPENAI_API_KEY OPENAIAPIKEY openai_key APIKey \
            private_key privateKey AccountKey SharedAccessKey secretAccessKey aws_secret_access_key ENCRYPTION_KEY \
            Ocp-Apim-Subscription-Key authorization Authorization Proxy-Authorization cookie Set-Cookie credentials session_token \
            aws_session_token bearer SharedSecret accesstoken code_verifier authorization_code device_code API_KEY_PROD Mcp-Session-Id \
            mcp-session-id JWT jwt_secret oauth2_token service_role_key GITHUB_PAT";
        for name in names.split_whitespace() {
            assert_eq!(strength(name), Some(Strength::Strong), "{name}");
        }
    }

    #[test]
    fn weak_names() {
        let names = "key auth session sig signature nonce code tokens pass pat MY_KEY _auth token_bucket PHPSESSID sid";
        for name in names.split_whitespace() {
            assert_eq!(strength(name), Some(Strength::Weak), "{name}");
        }
    }

    #[test]
    fn names_that_say_nothing() {
        let names = "progressToken progress_token cursor nextCursor pageToken nextPageToken next_page_token NextToken continuationToken \
            syncToken requestState tokenId token_id accessKeyId AWS_ACCESS_KEY_ID private_key_id max_token token_count total_token_count \
            token_type token_endpoint token_endpoint_auth_methods_supported tokenUrl token_uri password_policy password_hint \
            password_min_length tokenFile PASSWORD_FILE secretName secret_name publicKey public_key primary_key token_expires_at \
            tokenExpiry cookie_name cookiePolicy hasPassword requires_password is_secret resetPassword forgot_password tokenizer \
            tokenize secretary keyboard monkey hotkey sortKey cacheKey passive bypass compass encode decoder author authority \
            authenticate WWW-Authenticate sessionId session_id thread_id SSH_AUTH_SOCK XDG_SESSION_ID PWD OLDPWD api_key_env \
            apiKeyHeader authorization_endpoint authorization_servers_url code_challenge tokenAddress design_token id description \
            input_tokens_count name pagetoken pattern";
        for name in names.split_whitespace() {
            assert_eq!(strength(name), None, "{name}");
        }
        assert_eq!(strength(""), None);
    }

    #[test]
    fn long_names_are_no_names() {
        assert_eq!(strength(&"token".repeat(30)), None);
        assert_eq!(strength(&"token_".repeat(17)), None);
        assert_eq!(name_says_secret(b"\xFFpassword"), None);
    }
}
