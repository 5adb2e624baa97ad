//! Files with a secret in them.

use crate::error::CommandError;
use std::path::Path;

/// What stands in a file that only its owner can read, without blanks around it.
pub(crate) fn read(path: &Path) -> Result<String, CommandError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let about = std::fs::metadata(path).map_err(CommandError::path(path))?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(CommandError::Usage {
                what: format!("{} can be read by others", path.display()),
                hint: "`chmod 600` it, and make a new key if someone may have read it",
            });
        }
    }
    let text = std::fs::read_to_string(path).map_err(CommandError::path(path))?;
    Ok(text.trim().to_owned())
}
