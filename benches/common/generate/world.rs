//! Who talks to whom: clients, servers, and what their tools take and return.

/// A client.
#[derive(Debug)]
pub(crate) struct Client {
    /// How it introduces itself.
    pub(crate) name: &'static str,
    /// The name of its process.
    pub(crate) process: &'static str,
    pub(crate) version: &'static str,
    pub(crate) agent: &'static str,
    /// What it puts into `_meta` of a call.
    pub(crate) meta: ClientMeta,
}

/// What a client tells of a call beside its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientMeta {
    Token,
    /// Claude Code's id of the tool's use.
    ToolUse,
    /// Codex's ids of the call and of the conversation.
    Conversation,
}

/// The names, versions and `_meta` of real clients, the most used one first.
pub(crate) const CLIENTS: [Client; 4] = [
    Client {
        name: "claude-code",
        process: "claude",
        version: "2.1.332",
        agent: "claude-code/2.1.332 (sdk-cli)",
        meta: ClientMeta::ToolUse,
    },
    Client {
        name: "cursor-vscode",
        process: "cursor",
        version: "1.0.0",
        agent: "node",
        meta: ClientMeta::Token,
    },
    Client {
        name: "codex-mcp-client",
        process: "codex",
        version: "0.171.0",
        agent: "codex-mcp-client/0.171.0",
        meta: ClientMeta::Conversation,
    },
    Client {
        name: "gemini-cli-mcp-client",
        process: "node",
        version: "0.61.0",
        agent: "node",
        meta: ClientMeta::Token,
    },
];

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) command: &'static [&'static str],
    /// The most used one first. No name is a part of another one.
    pub(crate) tools: &'static [Tool],
}

/// A tool.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static [(&'static str, Argument)],
    /// Median length of a result's text, in bytes.
    pub(crate) result: f64,
    /// The members of the rows that it returns; none where it returns prose.
    pub(crate) rows: &'static [(&'static str, Argument)],
    /// Median time to a result, in milliseconds.
    pub(crate) takes: f64,
}

/// What an argument's value looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    Path,
    Number,
    Words(usize),
    Id,
    Flag,
}

const fn tool(
    name: &'static str,
    arguments: &'static [(&'static str, Argument)],
    result: f64,
    takes: f64,
) -> Tool {
    Tool {
        name,
        arguments,
        result,
        rows: &[],
        takes,
    }
}

/// One that returns rows, as JSON in its text.
const fn listing(
    name: &'static str,
    arguments: &'static [(&'static str, Argument)],
    rows: &'static [(&'static str, Argument)],
    result: f64,
    takes: f64,
) -> Tool {
    Tool {
        name,
        arguments,
        result,
        rows,
        takes,
    }
}

use Argument::{Flag, Id, Number, Path, Words};

/// The most used one first.
pub(crate) const SERVERS: [Server; 6] = [
    Server {
        name: "files",
        command: &["npx", "-y", "@modelcontextprotocol/server-filesystem", "."],
        tools: &[
            tool(
                "read_text_file",
                &[("path", Path), ("head", Number)],
                900.0,
                4.0,
            ),
            listing(
                "list_directory",
                &[("path", Path)],
                &[("name", Path), ("type", Flag), ("size", Number)],
                500.0,
                3.0,
            ),
            tool(
                "edit_file",
                &[
                    ("path", Path),
                    ("old", Words(90)),
                    ("new", Words(120)),
                    ("dry_run", Flag),
                ],
                350.0,
                9.0,
            ),
            listing(
                "find_files",
                &[("pattern", Path), ("limit", Number)],
                &[("path", Path), ("line", Number)],
                400.0,
                60.0,
            ),
            tool(
                "write_text",
                &[("path", Path), ("content", Words(600))],
                60.0,
                7.0,
            ),
            tool("move_file", &[("from", Path), ("to", Path)], 50.0, 4.0),
        ],
    },
    Server {
        name: "github",
        command: &[
            "docker",
            "run",
            "-i",
            "--rm",
            "ghcr.io/github/github-mcp-server",
        ],
        tools: &[
            tool(
                "get_issue",
                &[("owner", Id), ("repo", Id), ("number", Number)],
                1_100.0,
                210.0,
            ),
            listing(
                "search_code",
                &[("query", Words(40)), ("page", Number)],
                &[
                    ("repository", Id),
                    ("path", Path),
                    ("line", Number),
                    ("fragment", Words(90)),
                ],
                1_300.0,
                480.0,
            ),
            tool(
                "pull_request_diff",
                &[("owner", Id), ("repo", Id), ("number", Number)],
                1_600.0,
                350.0,
            ),
            listing(
                "list_commits",
                &[("owner", Id), ("repo", Id), ("since", Id)],
                &[
                    ("sha", Id),
                    ("author", Id),
                    ("message", Words(50)),
                    ("verified", Flag),
                ],
                1_000.0,
                260.0,
            ),
            tool(
                "add_comment",
                &[("owner", Id), ("number", Number), ("body", Words(260))],
                150.0,
                390.0,
            ),
            listing(
                "workflow_runs",
                &[("owner", Id), ("repo", Id)],
                &[
                    ("id", Number),
                    ("name", Id),
                    ("conclusion", Flag),
                    ("head_sha", Id),
                    ("url", Path),
                ],
                800.0,
                300.0,
            ),
        ],
    },
    Server {
        name: "postgres",
        command: &["uvx", "postgres-mcp", "--access-mode=restricted"],
        tools: &[
            listing(
                "query",
                &[("sql", Words(160))],
                &[
                    ("id", Number),
                    ("customer", Id),
                    ("total", Number),
                    ("paid", Flag),
                    ("note", Words(30)),
                ],
                900.0,
                35.0,
            ),
            listing(
                "describe_table",
                &[("table", Id)],
                &[
                    ("column_name", Id),
                    ("data_type", Id),
                    ("is_nullable", Flag),
                    ("position", Number),
                ],
                700.0,
                12.0,
            ),
            tool(
                "explain_plan",
                &[("sql", Words(160)), ("analyze", Flag)],
                800.0,
                90.0,
            ),
            tool("index_advice", &[("table", Id)], 400.0, 900.0),
        ],
    },
    Server {
        name: "browser",
        command: &["npx", "@playwright/mcp@latest", "--headless"],
        tools: &[
            tool("snapshot", &[("depth", Number)], 1_800.0, 140.0),
            tool(
                "click",
                &[("element", Words(30)), ("ref", Id)],
                350.0,
                260.0,
            ),
            tool("navigate", &[("url", Path)], 500.0, 1_100.0),
            tool(
                "type_text",
                &[("ref", Id), ("text", Words(50)), ("submit", Flag)],
                200.0,
                190.0,
            ),
            listing(
                "console_messages",
                &[("level", Id)],
                &[("level", Id), ("text", Words(60)), ("line", Number)],
                300.0,
                8.0,
            ),
        ],
    },
    Server {
        name: "slack",
        command: &[
            "npx",
            "-y",
            "slack-mcp-server@latest",
            "--transport",
            "stdio",
        ],
        tools: &[
            listing(
                "channel_history",
                &[("channel", Id), ("limit", Number)],
                &[
                    ("user", Id),
                    ("ts", Number),
                    ("text", Words(80)),
                    ("thread", Flag),
                ],
                1_200.0,
                240.0,
            ),
            tool(
                "post_message",
                &[("channel", Id), ("text", Words(200))],
                120.0,
                310.0,
            ),
            tool(
                "thread_replies",
                &[("channel", Id), ("ts", Id)],
                700.0,
                220.0,
            ),
            listing(
                "list_users",
                &[("cursor", Id)],
                &[
                    ("id", Id),
                    ("name", Words(14)),
                    ("is_bot", Flag),
                    ("tz_offset", Number),
                ],
                900.0,
                330.0,
            ),
        ],
    },
    Server {
        name: "calendar",
        command: &["node", "/opt/servers/calendar/dist/index.js"],
        tools: &[
            listing(
                "free_slots",
                &[("from", Id), ("until", Id)],
                &[("start", Id), ("end", Id), ("all_day", Flag)],
                300.0,
                150.0,
            ),
            tool(
                "create_event",
                &[("title", Words(40)), ("start", Id), ("guests", Words(60))],
                180.0,
                420.0,
            ),
            listing(
                "search_events",
                &[("query", Words(30))],
                &[
                    ("event", Id),
                    ("title", Words(30)),
                    ("start", Id),
                    ("busy", Flag),
                ],
                600.0,
                180.0,
            ),
            tool(
                "update_event",
                &[("event", Id), ("notes", Words(120))],
                160.0,
                380.0,
            ),
        ],
    },
];

/// How many tools there are in all.
pub(crate) const TOOLS: usize = 29;

/// The position of a server's tool among those of all servers.
pub(crate) fn tool_number(server: usize, tool: usize) -> usize {
    let before: usize = SERVERS[..server]
        .iter()
        .map(|server| server.tools.len())
        .sum();
    before + tool
}

/// The folders that people work in.
pub(crate) const PROJECTS: [&str; 8] = [
    "/home/dev/shop",
    "/home/dev/billing",
    "/home/dev/website",
    "/home/dev/infra",
    "/home/dev/mobile",
    "/home/dev/data-pipeline",
    "/home/dev/docs",
    "/home/dev/playground",
];
