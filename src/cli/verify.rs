//! Arguments of what proves journals.

use super::Format;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing is wrong, 1 something was changed, cut or taken out, 2 it\n\
                  could not be judged (another store's key, no hash chain).\n\n\
                  Whoever has the store's key can make a journal that checks out. The last records of\n\
                  a journal that is still written, or whose process was killed, are not proven."
)]
pub(crate) struct Verify {
    /// The run: `latest`, its id, or the beginning of that
    #[arg(required_unless_present = "all")]
    pub(crate) run: Option<String>,
    /// Check every journal of the store, and whether all verdicts can be read
    #[arg(long, conflicts_with = "run")]
    pub(crate) all: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
