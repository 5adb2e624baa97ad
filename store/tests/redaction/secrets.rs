//! Made-up secrets, put together from pieces so that scanners of repositories do not take them
//! for real ones.

#![allow(dead_code)]

/// Secrets that are recognised by themselves.
pub(crate) const SHAPES: &[&str] = &[
    concat!("sk", "-ant-abcdefghijklmnopqrstuvwxyz12"),
    concat!("sk", "-ant-api03-Qw3rTy_uI0pAsDf-GhJkLzXcVbNm1234567890AA"),
    concat!("sk", "-proj-Abc123_def456-GHI789jklMNO012pqrSTU345"),
    concat!("sk", "-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"),
    concat!("sk", "-svcacct-abcdefghij1234567890"),
    concat!("AI", "zaSyA1234567890abcdefghijklmnopqrstuvw"),
    concat!("ya", "29.a0AfH6SMBx1234567890abcdefghij"),
    concat!("GOC", "SPX-abcdefghijklmnopqrstuvwx1234"),
    concat!("npm", "_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!(
        "py",
        "pi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4LTkwYWItY2RlZi0xMjM0NTY3ODkwYWI"
    ),
    concat!("h", "f_abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    concat!("gh", "p_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gh", "o_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gh", "u_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gh", "s_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gh", "r_abcdefghijklmnopqrstuvwxyz0123456789"),
    concat!(
        "github",
        "_pat_11ABCDEFG0abcdefghijkl_MNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz01234567"
    ),
    concat!("gl", "pat-abcdefghij1234567890"),
    concat!("gl", "dt-abcdefghij1234567890"),
    concat!("gl", "rt-t1_abcdefghij1234567890"),
    concat!("gl", "cbt-64_abcdefghij1234567890"),
    concat!("gl", "ptt-abcdefghij1234567890abcdefghij1234567890"),
    concat!(
        "xo",
        "xb-123456789012-1234567890123-abcdefghijklmnopqrstuvwx"
    ),
    concat!(
        "xo",
        "xp-123456789012-123456789012-123456789012-abcdef0123456789abcdef0123456789"
    ),
    concat!("xo", "xe.xoxp-1-abcdefghijklmnopqrstuvwxyz"),
    concat!("xa", "pp-1-A0123456789-1234567890123-abcdef0123456789"),
    concat!("sk", "_live_abcdefghijklmnopqrstuvwx"),
    concat!("sk", "_test_abcdefghijklmnopqrstuvwx"),
    concat!("rk", "_live_abcdefghijklmnopqrstuvwx"),
    concat!("wh", "sec_abcdefghijklmnopqrstuvwxyz012345"),
    concat!("AK", "IAIOSFODNN7EXAMPLE"),
    concat!("AS", "IAIOSFODNN7EXAMPLE"),
    concat!(
        "IQ",
        "oJb3JpZ2luX2VjEHoaCXVzLWVhc3QtMSJHMEUCIQDabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnop"
    ),
    concat!("abc8", "Q~abcdefghijklmnopqrstuvwxyz012345678"),
    concat!(
        "ey",
        "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
    ),
    concat!(
        "ey",
        "JhbGciOiJSU0EtT0FFUCJ9.OKOawDo13gRp2ojaHV7LFpZcgV7T6DVZKTyKOMTYUmKoTCVJRgckCL9kiMT03JGe.48V1_ALb6US04U3b.5eym8TW_c8SuK0ltJ3rpYIzOeDQz7TALvtu6UG9oMo4vpzs9tX_EFShS8iB7j6ji.XFBoMYUZodetZdvTiFvSkQ"
    ),
    concat!(
        "S",
        "G.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
    ),
    concat!(
        "dop",
        "_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    ),
    concat!("sh", "pat_0123456789abcdef0123456789abcdef"),
    concat!("da", "pi0123456789abcdef0123456789abcdef"),
    concat!("hv", "s.CAESIJabcdefghijklmnopqrstuvwxyz0123456789"),
    concat!("gl", "sa_abcdefghijklmnopqrstuvwxyzABCDEF_01234567"),
    concat!("lin", "_api_abcdefghijklmnopqrstuvwxyz0123456789ABCD"),
    concat!("nt", "n_123456789012abcdefghijklmnopqrstuvwxyzABCDEF"),
    concat!("SK", "0123456789abcdef0123456789abcdef"),
    concat!("tv", "ly-abcdefghijklmnopqrstuvwxyz012345"),
    concat!(
        "gs",
        "k_abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnop"
    ),
    concat!(
        "AGE-SECRET",
        "-KEY-1QQPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQG"
    ),
    concat!("123456789", ":AAabcdefghijklmnopqrstuvwxyz0123456"),
];

/// Texts with a secret that their structure gives away, and the secret part.
pub(crate) fn structures() -> Vec<(String, Vec<&'static str>)> {
    let body = concat!(
        "MIIEowIBAAKCAQEAxK3cB9hQ5tVw2Yz7Lm4NpRsT\nuVwXyZ0123456789",
        "abcdefghijklmnopqrstuvwx"
    );
    let lines = vec![&body[..40], &body[41..]];
    let pem = |label: &str| {
        (
            format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----"),
            lines.clone(),
        )
    };
    let aws = concat!("wJalrXUtnFEMI/K7MDENG/bPx", "RfiCYEXAMPLEKEY");
    let azure = concat!(
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/",
        "K1SZFPTOtr/KBHBeksoGMGw=="
    );
    let sig = "wT3nV9k2bQ7zL5mX8cR1pY4sA6dF0gH2jK3lZ8vN5oE%3D";
    let mut all = vec![
        pem("PRIVATE KEY"),
        pem("RSA PRIVATE KEY"),
        pem("EC PRIVATE KEY"),
        pem("OPENSSH PRIVATE KEY"),
        pem("ENCRYPTED PRIVATE KEY"),
        pem("PGP PRIVATE KEY BLOCK"),
        (
            format!("-----BEGIN PRIVATE KEY-----\n{body}"),
            lines.clone(),
        ),
        (format!("AWS_SECRET_ACCESS_KEY={aws}"), vec![aws]),
        (format!("aws_secret_access_key = {aws}"), vec![aws]),
        (
            format!(
                "id {} and key {aws} of it",
                concat!("AK", "IAIOSFODNN7EXAMPLE")
            ),
            vec![aws],
        ),
        (
            format!(
                "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={azure};EndpointSuffix=core.windows.net"
            ),
            vec![azure],
        ),
        (
            format!(
                "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={azure}"
            ),
            vec![azure],
        ),
        (
            format!(
                "https://x.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig={sig}&se=2030-01-01"
            ),
            vec![sig],
        ),
    ];
    let texts: &[(&str, &str)] = &[
        (
            "Authorization: Bearer abcdef1234567890abcdef",
            "abcdef1234567890abcdef",
        ),
        ("authorization: bearer Zx9Kq2Lm8Vb4", "Zx9Kq2Lm8Vb4"),
        ("sent Bearer Zx9Kq2Lm8Vb4Nc6 to it", "Zx9Kq2Lm8Vb4Nc6"),
        (
            "Authorization: Basic dXNlcjpodW50ZXIyaHVudGVyMg==",
            "dXNlcjpodW50ZXIyaHVudGVyMg==",
        ),
        (
            "with Basic dXNlcjpodW50ZXIyaHVudGVyMg== it",
            "dXNlcjpodW50ZXIyaHVudGVyMg==",
        ),
        (
            "Authorization: Token 9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b",
            "9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b",
        ),
        (
            "Proxy-Authorization: Basic dXNlcjpodW50ZXIyaHVudGVyMg==",
            "dXNlcjpodW50ZXIyaHVudGVyMg==",
        ),
        (
            "Cookie: session=abc123def456ghi789; theme=dark",
            "session=abc123def456ghi789; theme=dark",
        ),
        (
            "Set-Cookie: sid=abc123def456ghi789; Path=/; HttpOnly",
            "sid=abc123def456ghi789",
        ),
        ("X-Api-Key: 5f2b8c1d9e4a7036", "5f2b8c1d9e4a7036"),
        (
            "postgres://app:S3cr3tPassw0rd@db.example.com:5432/app",
            "S3cr3tPassw0rd",
        ),
        (
            "postgresql+asyncpg://app:S3cr3tPassw0rd@db/app?ssl=1",
            "S3cr3tPassw0rd",
        ),
        ("mysql://root:p@ss/w0rd#1x@10.0.0.1/db", "p@ss/w0rd#1x"),
        (
            "mongodb+srv://u:S3cr3tPassw0rd@c0.mongodb.net/?w=majority",
            "S3cr3tPassw0rd",
        ),
        ("redis://:S3cr3tPassw0rd@cache:6379/0", "S3cr3tPassw0rd"),
        ("amqp://guest:S3cr3tPassw0rd@mq", "S3cr3tPassw0rd"),
        (
            "https://user:S3cr3tPassw0rd@example.com/x",
            "S3cr3tPassw0rd",
        ),
        (
            "https://aB3dE5fG7hI9jK1lM3nO5pQ7@example.com/x.git",
            "aB3dE5fG7hI9jK1lM3nO5pQ7",
        ),
        ("root:S3cr3tPassw0rd@tcp(db:3306)/app", "S3cr3tPassw0rd"),
        (
            "jdbc:sqlserver://h:1433;user=sa;password=S3cr3tPassw0rd;encrypt=true",
            "S3cr3tPassw0rd",
        ),
        (
            "Server=h;Database=d;User Id=sa;Password=S3cr3tPassw0rd;",
            "S3cr3tPassw0rd",
        ),
        ("Server=h;Uid=sa;Pwd=S3cr3tPassw0rd", "S3cr3tPassw0rd"),
        (
            "https://api.example.com/v1?api_key=abcdef123456&x=1",
            "abcdef123456",
        ),
        (
            "https://api.example.com/v1?x=1&access_token=abcdef123456",
            "abcdef123456",
        ),
        (
            "https://example.com/cb#access_token=abcdef123456&token_type=bearer",
            "abcdef123456",
        ),
        (
            "http://127.0.0.1:33418/callback?code=SplxlOBeZQQYbYS6&state=xyz",
            "SplxlOBeZQQYbYS6",
        ),
        (
            "grant_type=authorization_code&code=SplxlOBeZQQYbYS6&redirect_uri=x",
            "SplxlOBeZQQYbYS6",
        ),
        (
            "client_id=x&client_secret=abcdef123456&grant_type=refresh_token",
            "abcdef123456",
        ),
        (
            "curl -u admin:S3cr3tPassw0rd https://example.com",
            "S3cr3tPassw0rd",
        ),
        (
            "//npm.example.org/:_authToken=abcdef12-3456-7890-abcd-ef1234567890",
            "abcdef12-3456-7890-abcd-ef1234567890",
        ),
        ("export API_KEY=abcdef123456", "abcdef123456"),
        (
            "export DB_PASSWORD='correct horse battery staple'",
            "correct horse battery staple",
        ),
        ("password=hunter2hunter2", "hunter2hunter2"),
        ("password: hunter2hunter2", "hunter2hunter2"),
        ("password hunter2hunter2", "hunter2hunter2"),
        ("the password is hunter2hunter2.", "hunter2hunter2"),
        ("Password: Tr0ub4dor&3zebra", "Tr0ub4dor&3zebra"),
        ("**Password**: hunter2hunter2", "hunter2hunter2"),
        ("API key: 5f2b8c1d9e4a7036", "5f2b8c1d9e4a7036"),
        (
            "Incorrect API key provided: 5f2b8c1d9e4a7036",
            "5f2b8c1d9e4a7036",
        ),
        ("const apiKey = \"abcdef123456\";", "abcdef123456"),
        ("self.secret_key = 'abcdef123456'", "abcdef123456"),
        ("password: str = \"abcdef123456\"", "abcdef123456"),
        (
            "{\"password\":\"correct horse battery staple\"}",
            "correct horse battery staple",
        ),
        ("{'api_key': 'abcdef123456'}", "abcdef123456"),
        ("server --api-key abcdef123456 --port 80", "abcdef123456"),
        ("server --api-key=abcdef123456", "abcdef123456"),
        ("<password>hunter2hunter2</password>", "hunter2hunter2"),
        (
            "<add key=\"ApiKey\" value=\"abcdef123456\"/>",
            "abcdef123456",
        ),
        ("CREATE USER x IDENTIFIED BY 'abcdef123456'", "abcdef123456"),
        (
            "\"name\": \"API_KEY\", \"value\": \"abcdef123456\"",
            "abcdef123456",
        ),
        (
            "https://hooks.slack.com/services/T0123ABCD/B0123ABCD/abcdefghijklmnopqrstuvwx",
            "T0123ABCD/B0123ABCD/abcdefghijklmnopqrstuvwx",
        ),
        (
            "api_key: |\n    abcdefghijklmnopqrstuv\n  other: x",
            "abcdefghijklmnopqrstuv",
        ),
        ("app_key: ABCDEFGHIJKLMNOPQRSTUV", "ABCDEFGHIJKLMNOPQRSTUV"),
        (
            "https://api.example.com/v1?key=3290abeefc68e1bbe852a25252bad88c",
            "3290abeefc68e1bbe852a25252bad88c",
        ),
        (
            "https://api.example.com/v1?key=s3cr3tvalue123&v=3",
            "s3cr3tvalue123",
        ),
        ("\"Env\": [\"DD_API_KEY=abcdef123456\"]", "abcdef123456"),
        (
            "Config { api_key: \"abcdefgh\", password: Some(\"hunter2hunter2\") }",
            "hunter2hunter2",
        ),
        (
            "Config(api_key=SecretStr('abcdef123456'), x=1)",
            "abcdef123456",
        ),
        ("Received auth code: 4/0AX4XfWhQ9Zk2m", "4/0AX4XfWhQ9Zk2m"),
        ("password for user bob: hunter2hunter2", "hunter2hunter2"),
        ("x-api-key: abcdefghijkl", "abcdefghijkl"),
        ("gpg --passphrase correcthorse --batch", "correcthorse"),
        ("ALTER USER x WITH PASSWORD 'abcdefgh'", "abcdefgh"),
        ("$env:API_KEY = \"abcdefghijkl\"", "abcdefghijkl"),
        (
            "machine x login y password hunter2hunter2",
            "hunter2hunter2",
        ),
        ("AZURE_DEVOPS_EXT_PAT=abcdefghijklmnop", "abcdefghijklmnop"),
        (
            "{\"auth\":\"dXNlcjpodW50ZXIyaHVudGVyMg==\"}",
            "dXNlcjpodW50ZXIyaHVudGVyMg==",
        ),
        ("bob:hunter2hunter2@tcp(db)/x", "hunter2hunter2"),
        (
            "Authorization: Digest username=\"x\", response=\"6629fae49393a05397450978507c4ef1\"",
            "6629fae49393a05397450978507c4ef1",
        ),
        (
            "Authorization: AWS4-HMAC-SHA256 Credential=x/20300101/us-east-1, Signature=fe5f80f77d5fa3beca038a248ff027d0",
            "fe5f80f77d5fa3beca038a248ff027d0",
        ),
        (
            "https://s3.amazonaws.com/b/k?X-Amz-Expires=60&X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027d0",
            "fe5f80f77d5fa3beca038a248ff027d0",
        ),
        (
            "otpauth://totp/x?secret=JBSWY3DPEHPK3PXP&issuer=x",
            "JBSWY3DPEHPK3PXP",
        ),
    ];
    all.extend(
        texts
            .iter()
            .map(|(text, secret)| ((*text).to_owned(), vec![*secret])),
    );
    all
}
