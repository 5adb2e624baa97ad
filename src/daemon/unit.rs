//! What has the system start the daemon when the user logs in: a user unit for systemd, or a
//! property list for launchd.

use super::launch::words;
use super::{absolute, log_file};
use crate::config::{Config, Flags};
use crate::error::CommandError;
use std::path::Path;
use std::time::Duration;

/// What the daemon takes to end beyond what it gives open exchanges.
const ENDING: Duration = Duration::from_secs(10);

/// A user unit for systemd.
pub(crate) fn systemd(flags: &Flags) -> Result<String, CommandError> {
    let config = Config::load(flags)?;
    let words: Vec<String> = command(flags, &config)?
        .iter()
        .map(|word| quoted(word))
        .collect();
    let limit = config.drain().0 + ENDING;
    Ok(unit(&words.join(" "), limit))
}

/// A property list for launchd.
pub(crate) fn launchd(flags: &Flags) -> Result<String, CommandError> {
    let config = Config::load(flags)?;
    let words = command(flags, &config)?;
    let log = log_file(&absolute(&config.store())?);
    Ok(plist(&words, &text_of(&log)?))
}

/// The program and its arguments, as they mean the same for everybody.
fn command(flags: &Flags, config: &Config) -> Result<Vec<String>, CommandError> {
    let failed = CommandError::failed("cannot tell where this program is");
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = vec![text_of(&program)?];
    for word in words(flags, config)? {
        command.push(text_of(Path::new(&word))?);
    }
    command.extend(["daemon".into(), "run".into()]);
    Ok(command)
}

fn text_of(path: &Path) -> Result<String, CommandError> {
    let text = path
        .to_str()
        .filter(|text| !text.contains(char::is_control));
    text.map(str::to_owned).ok_or_else(|| CommandError::Usage {
        what: format!(
            "{}: such a path cannot be written into a unit",
            path.display()
        ),
        hint: "give paths of printable characters",
    })
}

/// What hardens it needs no privileges, so that it works in a user's own manager, and leaves
/// open what relaying takes.
fn unit(command: &str, limit: Duration) -> String {
    format!(
        "\
# Put this into ~/.config/systemd/user/agent-trace.service, then:
#   systemctl --user daemon-reload
#   systemctl --user enable --now agent-trace
[Unit]
Description=agent-trace: relays MCP servers and records what ran

[Service]
Type=exec
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
TimeoutStopSec={}
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
",
        limit.as_secs() + 1
    )
}

/// A word of a command as systemd reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.,:=+@".contains(c);
    let escaped = word
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
        .replace('$', "$$");
    if !word.is_empty() && word.chars().all(is_plain) {
        escaped
    } else {
        format!("\"{escaped}\"")
    }
}

fn plist(command: &[String], log: &str) -> String {
    let arguments: String = command
        .iter()
        .map(|word| format!("    <string>{}</string>\n", escaped(word)))
        .collect();
    format!(
        "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!-- Put this into ~/Library/LaunchAgents/agent-trace.plist, then:
     launchctl bootstrap gui/$UID ~/Library/LaunchAgents/agent-trace.plist -->
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<plist version=\"1.0\">
<dict>
  <key>Label</key>
  <string>agent-trace</string>
  <key>ProgramArguments</key>
  <array>
{arguments}  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>20</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardErrorPath</key>
  <string>{}</string>
</dict>
</plist>
",
        escaped(log)
    )
}

/// Text as XML writes it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_who_reads_them() {
        assert_eq!(quoted("/usr/bin/agent-trace"), "/usr/bin/agent-trace");
        assert_eq!(quoted("/my \"50%\" $x\\y"), r#""/my \"50%%\" $$x\\y""#);
        assert_eq!(quoted(""), "\"\"");
        let command = ["/a".to_owned(), "--store".into(), "/x & <y>".into()];
        let text = plist(&command, "/log");
        assert!(
            text.contains("<string>/x &amp; &lt;y&gt;</string>"),
            "{text}"
        );
        let text = unit("/a daemon run", Duration::from_secs(15));
        assert!(text.contains("\nExecStart=/a daemon run\n"), "{text}");
        assert!(text.contains("\nTimeoutStopSec=16\n"), "{text}");
    }
}
