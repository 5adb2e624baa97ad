//! Arguments of what tells how a run went: `timeline`, `explain`, `why`, `suspects`, `diff`,
//! `replay`, `tree`.

use super::Format;
use clap::{Args, ValueEnum};
use std::str::FromStr;
use std::time::Duration;

/// What `why --help` says of values.
pub(crate) const SAME: &str = "\
When two values are the same:
  A number, or a string of four characters and more, is the same as a string or number with the
  same text, and as whole words in a text. Where a plain word or a short number may stand in a
  text by chance, this is said. Numbers are compared by their text: 1.0 is not 1.
  Shorter strings and numbers below 100 count under a member of the same name only; true, false,
  null, 0, 1 and single characters are not traced.
  Of a string that appeared nowhere as a whole, words with a digit in them are looked for: the
  first 32. What was not recorded, or not searched because there was too much, is said.";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    #[default]
    Text,
    /// One JSON document
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lines {
    #[default]
    Text,
    /// One JSON object a line
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct Timeline {
    /// The run: `latest`, its id, or the beginning of that
    pub(crate) run: String,
    /// From how long on a pause is told as idleness
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::units::duration)]
    pub(crate) idle: Duration,
    /// From how long on a step is slow, whatever the others take [default: the setting
    /// `[steps] slow`, else 10s]
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration)]
    pub(crate) slow: Option<Duration>,
    /// How many columns to fill [default: the terminal's, else 100]
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) width: Option<usize>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The run: `latest`, its id, or the beginning of that
    pub(crate) run: String,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The run: `latest`, its id, or the beginning of that
    pub(crate) run: String,
    /// The number of the step, as `show -n` prints it
    pub(crate) step: usize,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Suspects {
    /// The run: `latest`, its id, or the beginning of that
    pub(crate) run: String,
    /// A run of the same task to compare with, whether it passed or failed; can be repeated
    ///
    /// Whether it passed is told by its verdict, else by what happened in it. Three and more of
    /// either kind are better than one.
    #[arg(long = "sibling", value_name = "RUN")]
    pub(crate) siblings: Vec<String>,
    /// Ask the model that the configuration names (`[judge]`), too: its opinion stands beside the
    /// ranking
    ///
    /// What the steps were given and what they answered is sent there, cut to 48 KiB.
    #[arg(long)]
    pub(crate) judge: bool,
    /// How many suspects to print at most
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) most: usize,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The one run: `latest`, its id, or the beginning of that
    pub(crate) a: String,
    /// The other run
    pub(crate) b: String,
    /// How many characters of arguments and results to print; 0 prints all that is kept
    #[arg(short = 's', long, value_name = "COUNT", default_value_t = 80)]
    pub(crate) string_limit: usize,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run: `latest`, its id, or the beginning of that
    pub(crate) run: String,
    /// How many times as fast as it was, or `max`
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub(crate) speed: Speed,
    /// Begin with this step
    #[arg(long, value_name = "STEP", default_value_t = 1)]
    pub(crate) from: usize,
    /// Wait no longer than this at once
    #[arg(long, value_name = "TIME", value_parser = crate::units::duration)]
    pub(crate) max_pause: Option<Duration>,
    /// How many characters of arguments and results to print; 0 prints all
    #[arg(short = 's', long, value_name = "COUNT", default_value_t = 120)]
    pub(crate) string_limit: usize,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Lines,
}

#[derive(Debug, Args)]
pub(crate) struct Tree {
    /// The run: `latest`, its id, or the beginning of that
    pub(crate) run: String,
    /// How many characters of arguments to print; 0 prints all
    #[arg(short = 's', long, value_name = "COUNT", default_value_t = 60)]
    pub(crate) string_limit: usize,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

/// How fast a run is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speed {
    Factor(f64),
    Max,
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite() && *number > 0.0);
        let factor = number.ok_or("give a number above 0, such as 2 or 0.5, or `max`")?;
        Ok(Self::Factor(factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_factor_or_max() {
        assert_eq!("2".parse(), Ok(Speed::Factor(2.0)));
        assert_eq!("0.5x".parse(), Ok(Speed::Factor(0.5)));
        assert_eq!("max".parse(), Ok(Speed::Max));
        for wrong in ["0", "-1", "inf", "NaN", "", "fast"] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }
}
