//! What is no secret stays as it is: digests, ids, pictures, schemas, code and prose about
//! secrets, and what the protocol itself calls tokens.

#![allow(clippy::unwrap_used)]

use agent_trace_store::redact::{Key, Redactor};
use serde_json::{Value, json};

fn assert_untouched(text: &str) {
    let redactor = Redactor::new(Key::from_bytes([7; 32]), &[]).unwrap();
    assert_eq!(redactor.text(text), text);
    // Nor in a string of a message, or in a string of a string.
    for message in [
        json!({"content": [{"type": "text", "text": text}]}).to_string(),
        json!({"text": json!({"text": text}).to_string()}).to_string(),
    ] {
        assert_eq!(redactor.text(&message), message);
    }
}

fn assert_json_untouched(message: &Value) {
    assert_untouched(&message.to_string());
    assert_untouched(&serde_json::to_string_pretty(message).unwrap());
}

#[test]
fn digests_and_ids() {
    for text in [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8\nAuthor: A <a@example.com>\nDate: Thu\n\n    Rotate the token",
        "9fceb02 fix password check\nda39a3e token: refresh",
        "key: 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "key=123e4567-e89b-12d3-a456-426614174000",
        "session=123e4567-e89b-12d3-a456-426614174000 started",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "\"integrity\": \"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\"",
        "h1:tt0zYUZ0Lzm0ZdnXB2bD2fQn3kVwVKoI6Xq8xrM0p6k= go.sum",
        "ETag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
        "X-Request-Id: 7b3bf470-9456-11ee-b9d1-0242ac120002",
        "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "docker.io/library/alpine@sha256:c5b1261d6d3e43071626931fc004f70149baeba2c8ec672bd4f27761f8e1ad6b",
        "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDLSH2R8gSDBBQqjvk host key",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "https://github.com/a/b/blob/9fceb02d0ae598e95dc970b74767f19372d61af8/src/token.rs#L10",
        "Fingerprint: DE:AD:BE:EF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF",
    ] {
        assert_untouched(text);
    }
    assert_json_untouched(&json!({
        "id": "9fceb02d0ae598e95dc970b74767f19372d61af8", "key": "9fceb02d0ae598e95dc970b74767f19372d61af8", "session": "123e4567-e89b-12d3-a456-426614174000",
        "signature": "sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "nonce": 12, "code": "ENOENT", "hash": "e3b0c44298fc1c149afbf4c8996fb924",
        "sessionId": "aB3dE5fG7hI9jK1lM3nO5pQ7", "tokenId": "aB3dE5fG7hI9jK1lM3nO5pQ7", "private_key_id": "0123456789abcdef0123456789abcdef01234567",
    }));
}

#[test]
fn messages_of_the_protocol() {
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}, "_meta": {"progressToken": "aB3dE5fG7hI9jK1lM3nO5pQ7"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7, "progress": 1, "total": 2}}),
        json!({"jsonrpc": "2.0", "id": 2, "result": {"tools": [], "nextCursor": "eyJwYWdlIjoyLCJ4IjoxfQ=="}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"cursor": "aB3dE5fG7hI9jK1lM3nO5pQ7"}}),
        json!({"resultType": "input_required", "inputRequests": {}, "requestState": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"}),
        json!({"requestState": "aB3dE5fG7hI9jK1lM3n/O5pQ7rS9tU1vW3xY5zA7", "cursor": "aB3dE5fG7hI9jK1lM3n+O5pQ7rS9tU1vW3xY5zA7"}),
        json!({"nextPageToken": "aB3dE5fG7hI9jK1lM3nO5pQ7", "continuationToken": "aB3dE5fG7hI9jK1lM3nO5pQ7", "NextToken": "aB3dE5fG7hI9jK1lM3nO5pQ7"}),
        json!({"_meta": {"claudecode/toolUseId": "toolu_01A09q90qw90lq917835lq9", "io.modelcontextprotocol/related-task": {"taskId": "aB3dE5fG7hI9"}, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}),
        json!({"usage": {"input_tokens": 1200, "output_tokens": 30, "cache_read_input_tokens": 5, "total_tokens": "1235"}, "maxTokens": 4096, "stop_token": "</s>"}),
        json!({"token_type": "Bearer", "expires_in": 3600, "token_endpoint": "https://example.com/oauth/token", "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"], "grant_types_supported": ["authorization_code"], "authorization_servers": ["https://example.com"], "bearer_methods_supported": ["header"]}),
        json!({"mcpServers": {"x": {"command": "npx", "args": ["-y", "x", "--token-file", "/run/token"], "env": {"API_KEY": "${API_KEY}", "TOKEN": "<your-token>", "KEYRING": "login"}}}}),
        json!({"error": {"code": -32602, "message": "Invalid params: password must be at least 8 characters, token is required"}}),
    ] {
        assert_json_untouched(&message);
    }
}

#[test]
fn schemas() {
    assert_json_untouched(&json!({"tools": [{
        "name": "login",
        "description": "Logs in with a password or an API key. The token is kept for the session.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "username": {"type": "string"},
                "password": {"type": "string", "description": "The password: at least 8 characters", "minLength": 8, "default": "changeme1"},
                "token": {"type": "string", "enum": ["a1b2c3d4e5", "none"], "examples": ["abcdef123456"]},
                "apiKey": {"type": ["string", "null"], "description": "API key (see https://example.com/keys)"},
                "secret": {"$ref": "#/$defs/secret"},
                "authorization": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "key": {"type": "string", "pattern": "^[A-Za-z0-9]{32}$"},
            },
            "required": ["username", "password", "token"],
            "dependentRequired": {"password": ["username"], "token": ["apiKey"]},
        },
        "annotations": {"title": "Log in with password", "readOnlyHint": false},
    }]}));
    assert_json_untouched(
        &json!({"action": "form", "requestedSchema": {"type": "object", "properties": {"passphrase": {"type": "string", "title": "Passphrase"}}, "required": ["passphrase"]}}),
    );
    assert_json_untouched(
        &json!({"prompts": [{"name": "rotate", "arguments": [{"name": "token", "description": "Which token", "required": true}]}]}),
    );
}

#[test]
fn prose() {
    for text in [
        "The password must contain a digit. Passwords are hashed with bcrypt.",
        "Password: required. Token: optional. Secret: none.",
        "password: string\ntoken: str\napi_key: Optional[str]\nsecret: SecretStr\npassword: varchar(255)\ntoken: uint256",
        "Use bearer authentication, Basic auth or a token-based scheme.",
        "WWW-Authenticate: Bearer realm=\"example\", error=\"invalid_token\", resource_metadata=\"https://example.com/.well-known/oauth-protected-resource\"",
        "Send `Authorization: Bearer <token>` or `Authorization: Bearer $TOKEN`, or \"Authorization\": \"Bearer YOUR_TOKEN\".",
        "Set `password=<password>`, `API_KEY=your-api-key`, `TOKEN=${GITHUB_TOKEN}` or --token TOKEN.",
        "Usage: server [--token TOKEN] [--password-file FILE] [--api-key KEY]\n  --token TOKEN        access token\n  --password string    password to use",
        "We use cookies. Cookie: see our policy. A cookie is a small file.",
        "Secret sharing splits a secret into parts. The secret is safe. Secretary: Alice.",
        "The session key is negotiated; the public key: ssh-ed25519, the key is sorted.",
        "Connect to postgres://user:password@localhost:5432/db or redis://localhost:6379, https://host:8080/path@x.",
        "git@github.com:owner/repo.git and ssh://git@github.com/owner/repo, mailto:someone@example.com",
        "password sha256, password base64, token oauth2: formats",
        "Keys: ArrowUp, ArrowDown. key: Enter; code: KeyA; Token count: 1500, tokens=20",
        "expected \"-----BEGIN PRIVATE KEY-----\" at the start of the file",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@host",
        "Le mot de passe est requis. Das Passwort ist falsch. 密码：必填",
    ] {
        assert_untouched(text);
    }
}

#[test]
fn code() {
    for text in [
        "const token = getToken();\nlet password = user.password;\nif (!token) throw new Error('token missing');",
        "def connect(user, password=None, token: str = \"\", api_key: Optional[str] = None):\n    return login(user=user, password=password, token=self.token)",
        "password = os.environ[\"DB_PASSWORD\"]\ntoken = os.getenv('TOKEN')\nsecret = config.get(\"secret\")",
        "let token: Token = lexer.next_token()?;\nmatch token.kind { TokenKind::Ident => {} }\npub if_token: Token![if],",
        "const API_KEY = process.env.API_KEY;\napiKey: process.env.OPENAI_API_KEY,",
        "for key, value in data.items():\n    print(key, value)\nkey=lambda x: x[1]",
        "SELECT password, token FROM users WHERE api_key = $1;",
        "<input type=\"password\" name=\"password\" placeholder=\"Password\">",
        "interface Login { username: string; password: string; token?: string }",
        "password_hash = bcrypt.hashpw(password, salt)\nassert token == expected_token",
        "type Token struct { Value string `json:\"token\"` }",
        "headers = {'Authorization': f'Bearer {token}'}\nheaders['X-Api-Key'] = api_key",
        "curl -H \"Authorization: Bearer $TOKEN\" -u \"$USER:$PASS\" https://example.com",
        "${{ secrets.GITHUB_TOKEN }} ${SECRET:-default} %(password)s {password} {{token}}",
        "struct sk_buff *skb; sk-circle sk-SK task-1234567890abcdefghij",
        "hf_hub_download(repo_id) npm_config_registry npm_package_version",
        "print('Password: ', end='')\nprompt=\"Token: \"",
        "pub const SO_COOKIE: c_int = 57;\npub frag_token: __u32,",
        "{token:\"keyword.operator\",regex:/x/}",
        "docker run -u 1000:1000 -p 8080:80 -v /a:/b image",
        "__Secret__ = 'password'\ntype = \"password\"\nautocomplete=\"current-password\"",
    ] {
        assert_untouched(text);
    }
}

#[test]
fn pictures_and_other_data() {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 58) as usize
    };
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let data: String = (0..400_000).map(|_| char::from(alphabet[next()])).collect();
    assert_json_untouched(
        &json!({"content": [{"type": "image", "data": format!("iVBORw0KGgo{data}=="), "mimeType": "image/png"}]}),
    );
    assert_json_untouched(&json!({"contents": [{"uri": "file:///x", "blob": data}]}));
    assert_untouched(&format!("data:image/png;base64,{data}"));
    let lines: Vec<_> = data.as_bytes()[..20_000]
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    assert_untouched(&lines.join("\n"));
}

#[test]
fn configuration() {
    for text in [
        "\"node_modules/x\": {\n  \"version\": \"1.0.0\",\n  \"resolved\": \"https://npm.example.org/x/-/x-1.0.0.tgz\"\n}",
        "name = \"secrecy\"\nchecksum = \"e891af845473308773346dc847b2c23ee78fe442e0472ac50e22a18a93d3ae5a\"",
        "password_file: /run/secrets/db\npassword: ${DB_PASSWORD}\ntoken: !env TOKEN\nsecretName: my-secret\nsecretKeyRef:\n  name: db\n  key: password",
        "- uses: actions/checkout@8f4b7f84864484a7bf31766abe9204da3cbe65b3\n  with:\n    token: ${{ secrets.GITHUB_TOKEN }}",
        "PATH=/usr/bin:/bin\nHOME=/home/me\nPWD=/home/me/x\nOLDPWD=/home/me\nSSH_AUTH_SOCK=/run/ssh-x/agent.1\nXDG_SESSION_ID=3",
        "max_tokens = 4096\ntoken_limit=100000\nsession_timeout=30\npassword_min_length=8\nauth_method=oauth2",
        "key: value\nkeys:\n  - a\n  - b\nauth:\n  type: basic",
        "publicKey: MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAxK3cB9hQ5tVw",
    ] {
        assert_untouched(text);
    }
}
