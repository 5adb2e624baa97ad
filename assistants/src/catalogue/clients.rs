//! The assistants. Facts that were measured with the real programs say so; the others are as
//! their makers document them, or as `source` says.

use super::{Base, Client, Members, Place, Scope};
use crate::document::Format;
use crate::machine::System;

const ALL: &[System] = &[System::Linux, System::Mac, System::Windows];
const NOT_WINDOWS: &[System] = &[System::Linux, System::Mac];
const WINDOWS: &[System] = &[System::Windows];

/// What most have.
const USUAL: Members = Members {
    command: &["command"],
    args: "args",
    env: &["env"],
    env_names: &[],
    url: &["url"],
    headers: &["headers"],
    on: &["enabled"],
    off: &["disabled"],
};
const SERVER_URL: Members = Members {
    url: &["serverUrl", "url"],
    ..USUAL
};
const CODEX: Members = Members {
    env_names: &["env_vars"],
    headers: &["http_headers", "env_http_headers"],
    ..USUAL
};
const GEMINI: Members = Members {
    url: &["httpUrl", "url"],
    ..USUAL
};
const OPENCODE: Members = Members {
    env: &["environment"],
    ..USUAL
};
const GOOSE: Members = Members {
    command: &["cmd"],
    env: &["envs"],
    env_names: &["env_keys"],
    url: &["uri"],
    ..USUAL
};

const MCP_SERVERS: &[&[&str]] = &[&["mcpServers"]];
const SERVERS: &[&[&str]] = &[&["servers"]];

/// A file of the user, as most have it; the others say what is different.
const USER: Place = Place {
    scope: Scope::User,
    base: Base::Home,
    path: "",
    systems: ALL,
    format: Format::Json,
    servers: MCP_SERVERS,
    members: &USUAL,
    is_state: false,
};
const PROJECT: Place = Place {
    scope: Scope::Project,
    base: Base::Project,
    ..USER
};

const CLAUDE_STATE: Place = Place {
    base: Base::Variable("CLAUDE_CONFIG_DIR", ""),
    path: ".claude.json",
    is_state: true,
    ..USER
};
const OPENCODE_USER: Place = Place {
    base: Base::Xdg,
    servers: &[&["mcp"]],
    members: &OPENCODE,
    ..USER
};
const OPENCODE_PROJECT: Place = Place {
    servers: &[&["mcp"]],
    members: &OPENCODE,
    ..PROJECT
};
/// A map of servers without anything around it.
const BARE: &[&[&str]] = &[&[], &["mcpServers"]];
const CONTINUE_USER: Place = Place {
    base: Base::Variable("CONTINUE_GLOBAL_DIR", ".continue"),
    format: Format::Yaml,
    ..USER
};
const CONTINUE_PROJECT: Place = Place {
    format: Format::Yaml,
    ..PROJECT
};
const ZED: Place = Place {
    servers: &[&["context_servers"]],
    ..USER
};
const GOOSE_USER: Place = Place {
    format: Format::Yaml,
    servers: &[&["extensions"]],
    members: &GOOSE,
    ..USER
};
const VSCODE: Place = Place {
    base: Base::Settings,
    servers: SERVERS,
    ..USER
};
const VSCODE_SETTINGS: Place = Place {
    servers: &[&["mcp", "servers"]],
    ..VSCODE
};

/// All assistants that are known.
pub const CLIENTS: &[Client] = &[
    Client {
        id: "cursor",
        name: "Cursor",
        source: "cursor.com/docs/context/mcp",
        places: &[
            Place {
                path: ".cursor/mcp.json",
                ..USER
            },
            Place {
                path: ".cursor/mcp.json",
                ..PROJECT
            },
        ],
    },
    Client {
        id: "windsurf",
        name: "Windsurf",
        source: "docs.windsurf.com/windsurf/cascade/mcp",
        places: &[Place {
            path: ".codeium/windsurf/mcp_config.json",
            members: &SERVER_URL,
            ..USER
        }],
    },
    Client {
        id: "vscode",
        name: "VS Code",
        source: "microsoft/vscode-docs, docs/copilot/reference/mcp-configuration.md",
        places: &[
            Place {
                path: "Code/User/mcp.json",
                ..VSCODE
            },
            Place {
                path: "Code/User/profiles/*/mcp.json",
                ..VSCODE
            },
            Place {
                path: "Code/User/settings.json",
                ..VSCODE_SETTINGS
            },
            Place {
                path: "Code - Insiders/User/mcp.json",
                ..VSCODE
            },
            Place {
                path: "Code - Insiders/User/settings.json",
                ..VSCODE_SETTINGS
            },
            Place {
                path: "VSCodium/User/mcp.json",
                ..VSCODE
            },
            Place {
                path: ".vscode/mcp.json",
                servers: SERVERS,
                ..PROJECT
            },
        ],
    },
    Client {
        id: "claude-code",
        name: "Claude Code",
        source: "measured with 2.1.332; anthropics/claude-code, plugin-dev",
        places: &[
            CLAUDE_STATE,
            Place {
                scope: Scope::Local,
                servers: &[&["projects", "*", "mcpServers"]],
                ..CLAUDE_STATE
            },
            Place {
                path: ".mcp.json",
                ..PROJECT
            },
        ],
    },
    Client {
        id: "claude-desktop",
        name: "Claude Desktop",
        source: "modelcontextprotocol.io/docs/develop/connect-local-servers",
        places: &[Place {
            base: Base::Settings,
            path: "Claude/claude_desktop_config.json",
            ..USER
        }],
    },
    Client {
        id: "codex",
        name: "Codex",
        source: "measured with 0.171.0; openai/codex, docs/config.md",
        places: &[
            Place {
                base: Base::Variable("CODEX_HOME", ".codex"),
                path: "config.toml",
                format: Format::Toml,
                servers: &[&["mcp_servers"]],
                members: &CODEX,
                ..USER
            },
            Place {
                path: ".codex/config.toml",
                format: Format::Toml,
                servers: &[&["mcp_servers"]],
                members: &CODEX,
                ..PROJECT
            },
        ],
    },
    Client {
        // The desktop application shares the files of the command line.
        id: "copilot",
        name: "GitHub Copilot",
        source: "measured with Copilot CLI 1.0.102; github/docs, add-mcp-servers.md",
        places: &[
            Place {
                base: Base::Variable("COPILOT_HOME", ".copilot"),
                path: "mcp-config.json",
                ..USER
            },
            Place {
                path: ".mcp.json",
                ..PROJECT
            },
            Place {
                path: ".github/mcp.json",
                ..PROJECT
            },
        ],
    },
    Client {
        id: "gemini",
        name: "Gemini CLI",
        source: "measured with 0.61.0; google-gemini/gemini-cli, docs/tools/mcp-server.md",
        places: &[
            Place {
                base: Base::Variable("GEMINI_CLI_HOME", ""),
                path: ".gemini/settings.json",
                members: &GEMINI,
                ..USER
            },
            Place {
                path: ".gemini/settings.json",
                members: &GEMINI,
                ..PROJECT
            },
        ],
    },
    Client {
        id: "opencode",
        name: "opencode",
        source: "measured with 1.18.33; anomalyco/opencode, mcp-servers.mdx",
        places: &[
            Place {
                path: "opencode/opencode.json",
                ..OPENCODE_USER
            },
            Place {
                path: "opencode/opencode.jsonc",
                ..OPENCODE_USER
            },
            Place {
                base: Base::Variable("OPENCODE_CONFIG", ".opencode.json"),
                ..OPENCODE_USER
            },
            Place {
                path: ".agents/mcp.json",
                servers: BARE,
                members: &OPENCODE,
                ..USER
            },
            Place {
                path: ".local/share/opencode/mcp-local.json",
                servers: BARE,
                members: &OPENCODE,
                ..USER
            },
            Place {
                path: "opencode.json",
                ..OPENCODE_PROJECT
            },
            Place {
                path: "opencode.jsonc",
                ..OPENCODE_PROJECT
            },
            Place {
                path: ".opencode/opencode.json",
                ..OPENCODE_PROJECT
            },
            Place {
                path: ".agents/mcp.json",
                servers: BARE,
                members: &OPENCODE,
                ..PROJECT
            },
        ],
    },
    Client {
        id: "zed",
        name: "Zed",
        source: "zed-industries/zed, docs/src/ai/mcp.md",
        places: &[
            Place {
                base: Base::Xdg,
                path: "zed/settings.json",
                systems: NOT_WINDOWS,
                ..ZED
            },
            Place {
                base: Base::Settings,
                path: "Zed/settings.json",
                systems: WINDOWS,
                ..ZED
            },
            Place {
                path: ".zed/settings.json",
                servers: &[&["context_servers"]],
                ..PROJECT
            },
        ],
    },
    Client {
        id: "cline",
        name: "Cline",
        source: "cline/cline, docs and code at 21cb8d2525",
        places: &[
            Place {
                base: Base::Variable(
                    "CLINE_MCP_SETTINGS_PATH",
                    ".cline/data/settings/cline_mcp_settings.json",
                ),
                ..USER
            },
            Place {
                path: ".cline/mcp.json",
                ..USER
            },
            // In whichever editor of this family.
            Place {
                base: Base::Settings,
                path: "*/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                ..USER
            },
        ],
    },
    Client {
        id: "roo",
        name: "Roo Code",
        source: "RooCodeInc/Roo-Code-Docs, mcp/using-mcp-in-roo",
        places: &[
            Place {
                base: Base::Settings,
                path: "*/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
                ..USER
            },
            Place {
                path: ".roo/mcp.json",
                ..PROJECT
            },
        ],
    },
    Client {
        id: "continue",
        name: "Continue",
        source: "docs.continue.dev/customize/deep-dives/mcp",
        places: &[
            Place {
                path: "config.yaml",
                ..CONTINUE_USER
            },
            Place {
                path: "mcpServers/*.yaml",
                ..CONTINUE_USER
            },
            Place {
                path: "mcpServers/*.json",
                format: Format::Json,
                ..CONTINUE_USER
            },
            Place {
                path: ".continue/mcpServers/*.yaml",
                ..CONTINUE_PROJECT
            },
            Place {
                path: ".continue/mcpServers/*.yml",
                ..CONTINUE_PROJECT
            },
            Place {
                path: ".continue/mcpServers/*.json",
                ..PROJECT
            },
        ],
    },
    Client {
        id: "kiro",
        name: "Kiro",
        source: "kiro.dev/docs/mcp/configuration",
        places: &[
            Place {
                path: ".kiro/settings/mcp.json",
                ..USER
            },
            Place {
                path: ".kiro/agents/*.json",
                ..USER
            },
            Place {
                path: ".kiro/settings/mcp.json",
                ..PROJECT
            },
            Place {
                path: ".kiro/agents/*.json",
                ..PROJECT
            },
        ],
    },
    Client {
        id: "amazon-q",
        name: "Amazon Q",
        source: "aws/amazon-q-developer-cli, docs/agent-format.md",
        places: &[
            Place {
                path: ".aws/amazonq/mcp.json",
                ..USER
            },
            Place {
                path: ".aws/amazonq/agents/*.json",
                ..USER
            },
            Place {
                path: ".aws/amazonq/cli-agents/*.json",
                ..USER
            },
            Place {
                path: ".amazonq/mcp.json",
                ..PROJECT
            },
            Place {
                path: ".amazonq/cli-agents/*.json",
                ..PROJECT
            },
        ],
    },
    Client {
        id: "junie",
        name: "JetBrains Junie",
        source: "jetbrains.com/help/junie/model-context-protocol-mcp.html; places not verified",
        places: &[
            Place {
                path: ".junie/mcp/mcp.json",
                ..USER
            },
            Place {
                path: ".junie/mcp/mcp.json",
                ..PROJECT
            },
        ],
    },
    Client {
        id: "goose",
        name: "Goose",
        source: "block.github.io/goose/docs/guides/config-files",
        places: &[
            Place {
                base: Base::Xdg,
                path: "goose/config.yaml",
                systems: NOT_WINDOWS,
                ..GOOSE_USER
            },
            Place {
                base: Base::Settings,
                path: "Block/goose/config/config.yaml",
                systems: WINDOWS,
                ..GOOSE_USER
            },
        ],
    },
    Client {
        id: "lm-studio",
        name: "LM Studio",
        source: "lmstudio.ai/docs/app/mcp; its bug tracker, #1371",
        places: &[
            Place {
                path: ".lmstudio/mcp.json",
                ..USER
            },
            Place {
                path: ".cache/lm-studio/mcp.json",
                ..USER
            },
        ],
    },
    Client {
        id: "antigravity",
        name: "Antigravity",
        source: "places as other programs that look for its servers have them; not verified",
        places: &[
            Place {
                path: ".gemini/antigravity/mcp_config.json",
                members: &SERVER_URL,
                ..USER
            },
            Place {
                path: ".gemini/config/mcp_config.json",
                members: &SERVER_URL,
                ..USER
            },
        ],
    },
];
