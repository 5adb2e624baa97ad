//! Tokens that their vendors gave a prefix, so that they can be told from other text.
//!
//! Formats are from the vendors' documentation and from the public rules of secret scanners
//! (gitleaks, trufflehog, GitHub's list of supported patterns). Least lengths are below the
//! real ones: formats grow and shrink, and a token that was cut is still half a secret.

use std::ops::Range;

use super::class::{Class, starts_word};

/// A vendor's token.
pub(super) struct Shape {
    pub(super) prefix: &'static str,
    pub(super) kind: &'static str,
    /// What follows the prefix.
    class: Class,
    /// How many bytes of `class` must follow.
    least: usize,
    needs: Needs,
}

/// What else it takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// The prefix is no word's end: it counts within a word too.
    Nothing,
    /// No letter or digit before.
    Start,
    /// No byte of base64 before: the prefix can turn up within a blob.
    Alone,
    /// No letter or digit before, and a digit in the token.
    Digit,
    /// That, and only hexadecimal digits.
    Hex,
    /// A path of a web hook's URL follows, which is secret as a whole.
    Path,
}

const fn shape(
    prefix: &'static str,
    kind: &'static str,
    class: Class,
    least: usize,
    needs: Needs,
) -> Shape {
    Shape {
        prefix,
        kind,
        class,
        least,
        needs,
    }
}

use Needs::{Alone, Digit, Hex, Nothing, Path, Start};

const ALNUM: Class = Class::ALNUM;
const WORD: Class = Class::WORD;
const TOKEN: Class = Class::TOKEN;
const DOTTED: Class = Class::DOTTED;
const CAPITAL: Class = Class::CAPITAL;
const BASE64: Class = Class::BASE64_ANY;

#[rustfmt::skip]
pub(super) static SHAPES: &[Shape] = &[
    // Model providers.
    shape("sk-ant-", "anthropic-key", TOKEN, 12, Nothing),
    shape("sk-proj-", "openai-key", TOKEN, 12, Nothing),
    shape("sk-svcacct-", "openai-key", TOKEN, 12, Nothing),
    shape("sk-admin-", "openai-key", TOKEN, 12, Nothing),
    shape("sk-None-", "openai-key", TOKEN, 12, Nothing),
    shape("sk-or-v1-", "openrouter-key", TOKEN, 12, Nothing),
    shape("sk-lf-", "langfuse-key", TOKEN, 16, Nothing),
    shape("lsv2_", "langsmith-key", WORD, 16, Start),
    shape("sk-", "openai-key", ALNUM, 16, Digit),
    shape("sess-", "openai-key", ALNUM, 24, Digit),
    shape("gsk_", "groq-key", ALNUM, 16, Start),
    shape("xai-", "xai-key", ALNUM, 16, Start),
    shape("pplx-", "perplexity-key", ALNUM, 16, Start),
    shape("tvly-", "tavily-key", TOKEN, 12, Start),
    shape("fc-", "firecrawl-key", ALNUM, 32, Hex),
    shape("r8_", "replicate-key", ALNUM, 16, Start),
    shape("hf_", "huggingface-token", ALNUM, 16, Start),
    shape("api_org_", "huggingface-token", ALNUM, 16, Start),
    shape("nvapi-", "nvidia-key", TOKEN, 16, Start),
    shape("pcsk_", "pinecone-key", WORD, 16, Start),
    shape("AIza", "google-key", TOKEN, 28, Start),
    // Google.
    shape("ya29.", "google-token", DOTTED, 16, Start),
    shape("GOCSPX-", "google-secret", TOKEN, 12, Nothing),
    shape("1//0", "google-token", TOKEN, 24, Start),
    // GitHub, https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/
    shape("ghp_", "github-token", WORD, 10, Nothing),
    shape("gho_", "github-token", WORD, 10, Nothing),
    shape("ghu_", "github-token", WORD, 10, Nothing),
    shape("ghs_", "github-token", WORD, 10, Nothing),
    shape("ghr_", "github-token", WORD, 10, Nothing),
    shape("github_pat_", "github-token", WORD, 10, Nothing),
    // GitLab, https://docs.gitlab.com/security/tokens/#token-prefixes
    shape("glpat-", "gitlab-token", TOKEN, 10, Nothing),
    shape("gloas-", "gitlab-token", TOKEN, 10, Nothing),
    shape("gldt-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glrt-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glrtr-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glcbt-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glptt-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glft-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glimt-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glagent-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glwt-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glsoat-", "gitlab-token", TOKEN, 10, Nothing),
    shape("glffct-", "gitlab-token", TOKEN, 10, Nothing),
    shape("GR1348941", "gitlab-token", TOKEN, 12, Start),
    // Slack, https://docs.slack.dev/authentication/tokens
    shape("xoxb-", "slack-token", TOKEN, 10, Nothing),
    shape("xoxp-", "slack-token", TOKEN, 10, Nothing),
    shape("xoxa-", "slack-token", TOKEN, 10, Nothing),
    shape("xoxr-", "slack-token", TOKEN, 10, Nothing),
    shape("xoxs-", "slack-token", TOKEN, 10, Nothing),
    shape("xoxo-", "slack-token", TOKEN, 10, Nothing),
    shape("xoxc-", "slack-token", TOKEN, 10, Nothing),
    shape("xoxd-", "slack-token", Class::TOKEN68, 10, Nothing),
    shape("xoxe-", "slack-token", TOKEN, 10, Nothing),
    shape("xoxe.", "slack-token", DOTTED, 10, Nothing),
    shape("xapp-", "slack-token", TOKEN, 10, Nothing),
    shape("xwfp-", "slack-token", TOKEN, 10, Nothing),
    shape("hooks.slack.com/services/", "slack-webhook", TOKEN, 4, Path),
    shape("hooks.slack.com/workflows/", "slack-webhook", TOKEN, 4, Path),
    shape("hooks.slack.com/triggers/", "slack-webhook", TOKEN, 4, Path),
    // Stripe and others that take money. `pk_` keys are made to be public.
    shape("sk_live_", "stripe-key", WORD, 8, Start),
    shape("sk_test_", "stripe-key", WORD, 8, Start),
    shape("rk_live_", "stripe-key", WORD, 8, Start),
    shape("rk_test_", "stripe-key", WORD, 8, Start),
    shape("sk_prod_", "stripe-key", WORD, 8, Start),
    shape("whsec_", "stripe-webhook-secret", BASE64, 12, Nothing),
    shape("sq0csp-", "square-secret", TOKEN, 16, Start),
    shape("sq0atp-", "square-token", TOKEN, 16, Start),
    shape("EAAAE", "square-token", TOKEN, 54, Alone),
    shape("access_token$production$", "paypal-token", ALNUM, 16, Nothing),
    // Package registries.
    shape("npm_", "npm-token", ALNUM, 16, Start),
    shape("pypi-", "pypi-token", WORD, 16, Start),
    shape("rubygems_", "rubygems-token", ALNUM, 16, Start),
    shape("cio", "crates-io-token", ALNUM, 32, Digit),
    shape("dckr_pat_", "docker-token", TOKEN, 12, Nothing),
    shape("dckr_oat_", "docker-token", TOKEN, 12, Nothing),
    shape("oy2", "nuget-key", ALNUM, 43, Digit),
    // Clouds and hosting. Access key ids of AWS and keys of Azure: see `shape`.
    shape("IQoJ", "aws-session-token", BASE64, 80, Alone),
    shape("FwoG", "aws-session-token", BASE64, 80, Alone),
    shape("FQoG", "aws-session-token", BASE64, 80, Alone),
    shape("AQoD", "aws-session-token", BASE64, 80, Alone),
    shape("ABSK", "aws-bedrock-key", BASE64, 60, Alone),
    shape("bedrock-api-key-", "aws-bedrock-key", BASE64, 16, Start),
    shape("dop_v1_", "digitalocean-token", ALNUM, 16, Nothing),
    shape("doo_v1_", "digitalocean-token", ALNUM, 16, Nothing),
    shape("dor_v1_", "digitalocean-token", ALNUM, 16, Nothing),
    shape("dapi", "databricks-token", ALNUM, 24, Hex),
    shape("HRKU-", "heroku-key", TOKEN, 16, Start),
    shape("fo1_", "fly-token", TOKEN, 16, Start),
    shape("fm1r_", "fly-token", BASE64, 16, Start),
    shape("fm2_", "fly-token", BASE64, 16, Start),
    shape("nfp_", "netlify-token", ALNUM, 16, Start),
    shape("vcp_", "vercel-token", ALNUM, 16, Start),
    shape("v1.0-", "cloudflare-ca-key", ALNUM, 24, Hex),
    shape("sbp_", "supabase-token", ALNUM, 16, Start),
    shape("sb_secret_", "supabase-key", TOKEN, 12, Nothing),
    shape("pscale_tkn_", "planetscale-token", DOTTED, 16, Nothing),
    shape("pscale_pw_", "planetscale-password", DOTTED, 16, Nothing),
    shape("hvs.", "vault-token", TOKEN, 16, Start),
    shape("hvb.", "vault-token", TOKEN, 16, Start),
    shape("hvr.", "vault-token", TOKEN, 16, Start),
    shape(".atlasv1.", "terraform-token", TOKEN, 24, Nothing),
    shape("dp.pt.", "doppler-token", ALNUM, 16, Start),
    shape("dp.st.", "doppler-token", DOTTED, 16, Start),
    shape("dp.sa.", "doppler-token", ALNUM, 16, Start),
    shape("pul-", "pulumi-token", ALNUM, 24, Hex),
    shape("ops_eyJ", "1password-token", BASE64, 40, Start),
    shape("tskey-", "tailscale-key", TOKEN, 12, Nothing),
    shape("AGE-SECRET-KEY-", "age-key", CAPITAL, 16, Nothing),
    // Mail, chat, work.
    shape("SG.", "sendgrid-key", DOTTED, 30, Digit),
    shape("key-", "mailgun-key", ALNUM, 24, Hex),
    shape("xkeysib-", "brevo-key", TOKEN, 16, Nothing),
    shape("SK", "twilio-key", ALNUM, 32, Hex),
    shape("lin_api_", "linear-key", ALNUM, 16, Nothing),
    shape("lin_oauth_", "linear-key", ALNUM, 16, Nothing),
    shape("ntn_", "notion-token", ALNUM, 16, Start),
    shape("secret_", "notion-token", ALNUM, 32, Start),
    shape("figd_", "figma-token", TOKEN, 16, Start),
    shape("figo_", "figma-token", TOKEN, 16, Start),
    shape("PMAK-", "postman-key", TOKEN, 16, Start),
    shape("ATATT3", "atlassian-token", BASE64, 24, Start),
    shape("ATCTT3", "atlassian-token", BASE64, 24, Start),
    shape("ATBB", "bitbucket-token", ALNUM, 24, Digit),
    shape("pat-na1-", "hubspot-token", TOKEN, 24, Start),
    shape("pat-eu1-", "hubspot-token", TOKEN, 24, Start),
    shape("shpat_", "shopify-token", ALNUM, 16, Nothing),
    shape("shpca_", "shopify-token", ALNUM, 16, Nothing),
    shape("shppa_", "shopify-token", ALNUM, 16, Nothing),
    shape("shpss_", "shopify-token", ALNUM, 16, Nothing),
    shape("EAACEdEose0cBA", "facebook-token", ALNUM, 8, Start),
    // Watching.
    shape("glsa_", "grafana-token", WORD, 16, Start),
    shape("glc_", "grafana-token", BASE64, 24, Start),
    shape("sntrys_", "sentry-token", BASE64, 16, Start),
    shape("sntryu_", "sentry-token", ALNUM, 16, Start),
    shape("NRAK-", "newrelic-key", ALNUM, 16, Start),
    shape("phx_", "posthog-key", ALNUM, 24, Start),
    shape("dt0c01.", "dynatrace-token", DOTTED, 24, Start),
    shape("sqp_", "sonarqube-token", ALNUM, 24, Hex),
    shape("squ_", "sonarqube-token", ALNUM, 24, Hex),
    shape("CFPAT-", "contentful-token", TOKEN, 16, Start),
    // Web hooks.
    shape("discord.com/api/webhooks/", "discord-webhook", TOKEN, 8, Path),
    shape("discordapp.com/api/webhooks/", "discord-webhook", TOKEN, 8, Path),
    shape("webhook.office.com/webhookb2/", "teams-webhook", TOKEN, 8, Path),
    // Private keys without their frame: PKCS #1, #8 and OpenSSH in base64, and whole PEM files in base64.
    shape("MIIEvQIBADANB", "private-key", BASE64, 32, Alone),
    shape("MIIEvgIBADANB", "private-key", BASE64, 32, Alone),
    shape("MIIEvAIBADANB", "private-key", BASE64, 32, Alone),
    shape("MIIEuwIBADANB", "private-key", BASE64, 32, Alone),
    shape("MIIJQ", "private-key", BASE64, 400, Alone),
    shape("MIIEpAIBAAKCAQ", "private-key", BASE64, 32, Alone),
    shape("MIIEpQIBAAKCAQ", "private-key", BASE64, 32, Alone),
    shape("MIIEowIBAAKCAQ", "private-key", BASE64, 32, Alone),
    shape("MIIEogIBAAKCAQ", "private-key", BASE64, 32, Alone),
    shape("MIICXAIBAAKBgQ", "private-key", BASE64, 32, Alone),
    shape("MIICXQIBAAKBgQ", "private-key", BASE64, 32, Alone),
    shape("MIICdwIBADANB", "private-key", BASE64, 32, Alone),
    shape("MIICdgIBADANB", "private-key", BASE64, 32, Alone),
    shape("MHcCAQEE", "private-key", BASE64, 32, Alone),
    shape("MIGHAgEAMBMG", "private-key", BASE64, 32, Alone),
    shape("MC4CAQAwBQYDK2Vw", "private-key", BASE64, 32, Alone),
    shape("b3BlbnNzaC1rZXktdjE", "private-key", BASE64, 32, Alone),
    shape("LS0tLS1CRUdJTiBQUklWQVRF", "private-key", BASE64, 32, Alone),
    shape("LS0tLS1CRUdJTiBSU0EgUFJJVkFUR", "private-key", BASE64, 32, Alone),
    shape("LS0tLS1CRUdJTiBFQyBQUklWQVRF", "private-key", BASE64, 32, Alone),
    shape("LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg", "private-key", BASE64, 32, Alone),
    shape("LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFUR", "private-key", BASE64, 32, Alone),
];

impl Shape {
    /// The token whose prefix stands at `at`. It ends where no token byte follows, not where
    /// the vendor's length would have it end.
    pub(super) fn read(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        if self.needs == Path {
            return self.read_path(text, at);
        }
        if self.needs != Nothing && !starts_word(text, at) && !after_colour(text, at) {
            return None;
        }
        if self.needs == Alone
            && at > 0
            && Class::BASE64_ANY.has(text[at - 1])
            && text[at - 1] != b'='
        {
            return None;
        }
        let body = at + self.prefix.len();
        let end = self.class.run(text, body);
        if end - body < self.least && !(end == text.len() && self.is_cut(&text[body..end])) {
            return None;
        }
        let body = &text[body..end];
        match self.needs {
            Digit if !Class::DIGIT.any(body) => return None,
            Hex if !body.iter().all(u8::is_ascii_hexdigit) => return None,
            _ => {}
        }
        let mut end = Class::TOKEN.run(text, end);
        while text[end - 1] == b'.' {
            end -= 1;
        }
        Some(at..end)
    }

    /// Whether what is left of a token at a text's end, where it may have been cut, is enough.
    fn is_cut(&self, body: &[u8]) -> bool {
        match self.needs {
            Nothing => body.len() >= 6,
            Start => body.len() >= 10 && Class::DIGIT.any(body),
            _ => false,
        }
    }

    fn read_path(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        let start = at + self.prefix.len();
        let path = |byte: &u8| Class::DOTTED.has(*byte) || matches!(byte, b'/' | b'@' | b'%');
        let end = start + text[start..].iter().take_while(|byte| path(byte)).count();
        (end - start >= self.least).then_some(start..end)
    }
}

/// Whether an escape sequence for colour ends before `at`: its last letter is no part of a
/// word.
pub(super) fn after_colour(text: &[u8], at: usize) -> bool {
    if at == 0 || text[at - 1] != b'm' {
        return false;
    }
    let digits = text[..at - 1]
        .iter()
        .rev()
        .take(24)
        .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
        .count();
    text[..at - 1 - digits].ends_with(b"\x1b[")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<&str> {
        SHAPES
            .iter()
            .filter_map(|shape| {
                let at = text.find(shape.prefix)?;
                shape.read(text.as_bytes(), at)
            })
            .map(|range| &text[range])
            .max_by_key(|token| token.len())
    }

    #[test]
    fn the_whole_run_is_the_token() {
        for (text, token) in [
            (
                concat!("x gh", "p_abcdefghij0123456789."),
                Some(concat!("gh", "p_abcdefghij0123456789")),
            ),
            (
                concat!("AI", "zaSyA1234567890abcdefghijklmnopqrstuvw'"),
                Some(concat!("AI", "zaSyA1234567890abcdefghijklmnopqrstuvw")),
            ),
            (
                concat!("S", "G.abcdefghijklmnop1.qrstuvwxyz012345."),
                Some(concat!("S", "G.abcdefghijklmnop1.qrstuvwxyz012345")),
            ),
            (
                concat!("hooks.slack", ".com/services/T00/B00/xyzXYZ?x"),
                Some("T00/B00/xyzXYZ"),
            ),
            (
                concat!("\x1b[31m", "s", "k-abcdefghijklmnop1"),
                Some(concat!("s", "k-abcdefghijklmnop1")),
            ),
            ("task-abcdefghijklmnop1", None),
            ("sk-circle-fade-dot-with-2-words", None),
            ("hf_hub_download_to_the_cache_dir", None),
            ("npm_config_registry_and_more", None),
            ("ghp_short", None),
            ("secret_name_of_the_kubernetes_object_in_question", None),
        ] {
            assert_eq!(read(text), token, "{text}");
        }
    }
}
