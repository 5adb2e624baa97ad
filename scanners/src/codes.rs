//! What each code means. A code never changes its meaning.

use serde::Serialize;

/// A kind of finding.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Code {
    /// Such as `AT1001`.
    pub code: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// What it means, and why it is reported.
    pub meaning: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    /// Ids of the OWASP MCP Top 10, of SAFE-MCP, and of CWE where one is right.
    pub tags: &'static [&'static str],
}

const REMOVE: &str = "Do not connect this server before you have read its source. If you know and trust it, report the text to its author.";
const CONTENT: &str = "Treat what followed in this run as steered: look at the calls after this result. The text came from outside; the tool itself may be honest.";
const CALLS: &str = "Look at these calls and at what stands in their arguments. If nobody asked for it, change the keys that were read.";
const COMPARE: &str =
    "Compare the two tools and keep the one whose source you know; rename or disconnect the other.";

const PIN: &str = "Name a version that you have looked at: `npx -y pkg@1.2.3`, `uvx pkg==1.2.3`, an image with a digest.";

/// All codes, in their order.
pub static CODES: &[Code] = &[
    code(
        "AT1001",
        "the user is not to learn of it",
        "The text tells the model to do something and to keep it from the user.",
        REMOVE,
        &["MCP03", "SAFE-T1001", "SAFE-T1404"],
    ),
    code(
        "AT1002",
        "secrets or the conversation are to be passed on",
        "The text has the model put a secret, a file or the conversation into a call or message.",
        REMOVE,
        &["MCP03", "MCP10", "SAFE-T1001", "SAFE-T1911"],
    ),
    code(
        "AT1003",
        "a private file is to be read",
        "The text has the model open a file that holds keys, credentials or the shell's start-up commands.",
        REMOVE,
        &["MCP03", "MCP01", "SAFE-T1001", "SAFE-T1502"],
    ),
    code(
        "AT1004",
        "a command is to be run",
        "The text has the model run a shell command that is not the tool's own work.",
        REMOVE,
        &["MCP03", "MCP05", "SAFE-T1001", "CWE-78"],
    ),
    code(
        "AT1005",
        "a start-up or credential file is to be changed",
        "The text has the model write into a file that decides what runs or who may log in.",
        REMOVE,
        &["MCP03", "MCP05", "SAFE-T1001"],
    ),
    code(
        "AT1006",
        "an argument is to be changed",
        "The text has the model replace what the user asked for by another value.",
        REMOVE,
        &["MCP03", "MCP06", "SAFE-T1001"],
    ),
    code(
        "AT1007",
        "another call is forced",
        "The text has the model call another tool before or after this one, and gives a pretext instead of a need.",
        REMOVE,
        &["MCP03", "MCP06", "SAFE-T1001", "SAFE-T1401"],
    ),
    code(
        "AT1008",
        "redirects to another tool",
        "The text says that a tool is not to be used any more, with a pretext, and names another to use.",
        REMOVE,
        &["MCP03", "SAFE-T1008"],
    ),
    code(
        "AT1009",
        "sets rules for another tool",
        "The text says how a tool that is not its own behaves or is to be called.",
        REMOVE,
        &["MCP03", "SAFE-T1008", "SAFE-T1301"],
    ),
    code(
        "AT1010",
        "copies go to an address",
        "The text has the model send results or arguments to an address that it names.",
        REMOVE,
        &["MCP03", "MCP10", "SAFE-T1001", "SAFE-T1913"],
    ),
    code(
        "AT1011",
        "claims authority over the model",
        "The text speaks to the model in the name of an authority, or switches off a safeguard.",
        REMOVE,
        &["MCP03", "SAFE-T1001"],
    ),
    code(
        "AT1012",
        "drops the model's instructions",
        "The text tells the model to forget or ignore what it was told.",
        REMOVE,
        &["MCP03", "SAFE-T1102"],
    ),
    code(
        "AT1013",
        "markers of a chat template",
        "The text holds markers by which models tell the system's words from others.",
        REMOVE,
        &["MCP03", "SAFE-T1102"],
    ),
    code(
        "AT1014",
        "hidden instruction",
        "An instruction stands in a comment, in an element that is not displayed, or out of sight.",
        REMOVE,
        &["MCP03", "SAFE-T1402"],
    ),
    code(
        "AT1015",
        "encoded instruction",
        "An instruction stands encoded in the text: base64, hexadecimal, escapes, tag characters, rot13.",
        REMOVE,
        &["MCP03", "SAFE-T1402"],
    ),
    code(
        "AT1016",
        "instruction in a value of the schema",
        "A default, enum, const or example holds a sentence that tells the model to do something.",
        REMOVE,
        &["MCP03", "SAFE-T1501"],
    ),
    code(
        "AT1017",
        "instruction in several pieces",
        "Several tools of one server each hold a piece of an instruction.",
        REMOVE,
        &["MCP03", "SAFE-T1001"],
    ),
    code(
        "AT1018",
        "praises itself",
        "The text praises the tool so that the model prefers it. That is no attack by itself.",
        "Prefer tools that say what they do.",
        &["MCP03", "SAFE-T1001"],
    ),
    code(
        "AT1019",
        "speaks to the model",
        "The text tells the model what to do. Honest descriptions do that as well.",
        "Read it.",
        &["MCP03"],
    ),
    code(
        "AT1020",
        "parameter that carries context out",
        "A parameter asks for the conversation, the system's prompt, secrets or facts about the user that the tool's work does not need.",
        REMOVE,
        &["MCP10", "SAFE-T1911"],
    ),
    code(
        "AT1021",
        "copy of another server's tool",
        "The tool has nearly the name of another server's tool, and its description.",
        COMPARE,
        &["MCP09", "SAFE-T1004"],
    ),
    code(
        "AT1022",
        "reference out of the schema",
        "A `$ref` points outside of the schema, to a file or an address.",
        "A client that resolves it reads what the server names. Ask the author to inline it.",
        &["MCP03", "SAFE-T1501"],
    ),
    code(
        "AT1023",
        "something is to be done besides",
        "The text has the model do something that is not the tool's work, and gives a pretext.",
        REMOVE,
        &["MCP03", "MCP06", "SAFE-T1001"],
    ),
    code(
        "AT1024",
        "words for the model to say",
        "The text puts words into the model's mouth: what it is to tell or recommend to the user.",
        REMOVE,
        &["MCP03", "MCP06", "SAFE-T1001"],
    ),
    code(
        "AT1101",
        "invisible characters",
        "Characters that show nothing stand between others.",
        "Look at the text with these characters shown.",
        &["MCP03", "SAFE-T1402"],
    ),
    code(
        "AT1102",
        "tag characters",
        "Characters that nothing displays and models read as letters.",
        REMOVE,
        &["MCP03", "SAFE-T1402"],
    ),
    code(
        "AT1103",
        "reordered text",
        "Characters that change the direction of writing: what is seen is not what is read.",
        REMOVE,
        &["MCP03", "SAFE-T1402", "CWE-451"],
    ),
    code(
        "AT1104",
        "terminal escapes",
        "Escape sequences that move the cursor, hide or recolour text in a terminal.",
        REMOVE,
        &["MCP03", "SAFE-T1402", "CWE-150"],
    ),
    code(
        "AT1105",
        "look-alike letters",
        "A word mixes Latin letters with others that look the same.",
        REMOVE,
        &["MCP03", "SAFE-T1402", "SAFE-T1004", "CWE-1007"],
    ),
    code(
        "AT1106",
        "not fully scanned",
        "A text is encoded more than four times over. What it says at last was not read.",
        "Decode it by hand, or treat it as hostile.",
        &["MCP03", "SAFE-T1402"],
    ),
    code(
        "AT1201",
        "a result speaks to the model",
        "The text addresses an assistant and asks it to act.",
        CONTENT,
        &["MCP06", "SAFE-T1102"],
    ),
    code(
        "AT1202",
        "a result drops instructions",
        "The text tells the model to forget or ignore what it was told.",
        CONTENT,
        &["MCP06", "SAFE-T1102"],
    ),
    code(
        "AT1203",
        "a result gives orders in a marked block",
        "A block that is marked as critical or as the system's has the model act.",
        CONTENT,
        &["MCP06", "SAFE-T1102"],
    ),
    code(
        "AT1204",
        "hidden instruction in a result",
        "An instruction to a model stands in a comment or in an element that is not displayed.",
        CONTENT,
        &["MCP06", "SAFE-T1102", "SAFE-T1402"],
    ),
    code(
        "AT1205",
        "encoded instruction in a result",
        "An instruction stands encoded in the text.",
        CONTENT,
        &["MCP06", "SAFE-T1102", "SAFE-T1402"],
    ),
    code(
        "AT1206",
        "an error that asks for a call",
        "An error or notice has the model call something, with a pretext instead of a need.",
        CONTENT,
        &["MCP06", "SAFE-T1102"],
    ),
    code(
        "AT1207",
        "a result asks for copies",
        "The text has data sent to an address, in secret or on a pretext.",
        CONTENT,
        &["MCP06", "SAFE-T1102", "SAFE-T1913"],
    ),
    code(
        "AT1208",
        "a turn that nobody spoke",
        "The text poses as a message of the user or the system and asks for an act.",
        CONTENT,
        &["MCP06", "SAFE-T1102"],
    ),
    code(
        "AT1209",
        "a result that may speak to the model",
        "The text mentions a model and asks for something. Documents about agents do that as well.",
        "Read it.",
        &["MCP06"],
    ),
    code(
        "AT1301",
        "what is private may have gone out",
        "The run read something private, took in text from outside, and then sent something out. Reported where a value was carried or the text gave orders.",
        CALLS,
        &["MCP06", "MCP10", "SAFE-T1703", "SAFE-T1914", "CWE-200"],
    ),
    code(
        "AT1302",
        "a secret was read, then something was sent",
        "A call read keys or credentials, and a later one sent something out. Reported where a value was carried.",
        CALLS,
        &["MCP01", "MCP10", "SAFE-T1502", "SAFE-T1913", "CWE-522"],
    ),
    code(
        "AT1303",
        "many reads, then an archive",
        "Many files or records were read and then packed into one.",
        CALLS,
        &["MCP10", "SAFE-T1914", "CWE-200"],
    ),
    code(
        "AT1304",
        "written outside of the workspace",
        "A call wrote to a file that decides what runs or who may log in, outside of the folder that was worked in.",
        "Look at what was written, and undo it unless the user asked for it.",
        &["MCP02", "MCP05", "CWE-73"],
    ),
    code(
        "AT1305",
        "the environment was listed",
        "A call listed all variables of the environment, in which keys often stand.",
        CALLS,
        &["MCP01", "SAFE-T1503", "CWE-526"],
    ),
    code(
        "AT1401",
        "a definition is not what it was",
        "A client that had seen this definition before was told another one, which nobody had seen.",
        "Read what is different. If you know why, accept it with `agent-trace mcp-scan pins approve`; else disconnect the server.",
        &["MCP03", "MCP04", "SAFE-T1201"],
    ),
    code(
        "AT1402",
        "announces new lists again and again",
        "The server says that its lists changed so often that a client which asks each time does little else, and that no one can look at what changed.",
        "Look at what changed between the lists. A server that is sound says this when something did.",
        &["MCP03", "SAFE-T1201"],
    ),
    code(
        "AT1501",
        "a downloaded script is run",
        "The entry starts a shell that fetches a script and runs it: what runs is decided anew each time by whoever answers.",
        "Install the server, look at it, and start what you installed.",
        &["MCP04", "MCP05"],
    ),
    code(
        "AT1502",
        "runs whatever version is newest",
        "The entry fetches a package or image without a version: a new release runs on the next start, whoever made it.",
        PIN,
        &["MCP04", "SAFE-T1201"],
    ),
    code(
        "AT1503",
        "a secret stands in the configuration",
        "The entry holds a credential as it is. Whoever can read the file has it; a project's file is often under version control.",
        "Keep it in the environment, a keychain or an input of the assistant, and replace the one that stood there.",
        &["MCP01"],
    ),
    code(
        "AT1504",
        "spoken to without encryption",
        "The server is called with http:// on another machine: whoever is between reads and changes what is said, credentials too.",
        "Use https://.",
        &["MCP07"],
    ),
    code(
        "AT1505",
        "certificates are not checked",
        "A variable or argument switches off the check of who is spoken to.",
        "Take it out, and have the server trust the certificate that is needed.",
        &["MCP07"],
    ),
    code(
        "AT1506",
        "loads code from elsewhere",
        "A variable or argument puts other code into the server, or has its packages fetched from another place.",
        "Take it out unless you know what is loaded.",
        &["MCP04", "MCP05"],
    ),
    code(
        "AT1507",
        "a container with the host's rights",
        "The container is given all rights, the host's whole file system, or the socket that controls other containers.",
        "Give it the folders that it needs.",
        &["MCP02"],
    ),
];

const fn code(
    code: &'static str,
    title: &'static str,
    meaning: &'static str,
    advice: &'static str,
    tags: &'static [&'static str],
) -> Code {
    Code {
        code,
        title,
        meaning,
        advice,
        tags,
    }
}

/// What a code means; `None` where there is no such code.
#[must_use]
pub fn explain(code: &str) -> Option<&'static Code> {
    CODES
        .iter()
        .find(|known| known.code.eq_ignore_ascii_case(code))
}

/// Whether a code is about an entry of a configuration, and not about what a server said.
#[must_use]
pub fn is_of_entry(code: &str) -> bool {
    code.starts_with("AT15")
}

pub(crate) fn title(code: &str) -> &'static str {
    explain(code).map_or("", |code| code.title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_rules_have_one() {
        assert!(CODES.windows(2).all(|pair| pair[0].code < pair[1].code));
        use crate::rules::{definition, manner, orders, result};
        let rules = [
            definition::RULES,
            orders::RULES,
            manner::RULES,
            result::RULES,
        ]
        .into_iter()
        .flatten();
        for rule in rules {
            assert!(explain(rule.code).is_some(), "{}", rule.code);
        }
        assert!(explain("at1001").is_some());
    }
}
