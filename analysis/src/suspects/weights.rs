//! The rules by name, and what each weighs. One table, the same for everyone, set by hand.
//!
//! The idea behind the numbers: what the protocol says (an error) counts more than what a text
//! says (words of failure), and both more than what is merely unusual. A step whose answer was
//! lacking *and* led to a failure must come before the step at which it showed, so two reasons
//! of that kind together weigh more than an error that came first.

use serde::Serialize;

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident = $weight:literal,)+) => {
        /// A kind of evidence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Rule {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Rule {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// What it weighs at most, in hundredths; where the evidence is weaker, less.
            #[must_use]
            pub fn weight(self) -> u32 {
                match self {
                    $(Self::$name => $weight,)+
                }
            }
        }
    };
}

rules! {
    /// An experiment found that the step matters; where it found the opposite, the step's
    /// other reasons count for little.
    Tested = 600,
    /// It ended in an error that was not made good.
    Error = 300,
    /// A tool's answer counts as well, but says that it failed.
    SwallowedError = 250,
    /// Its arguments do not fit the tool's definition, or there is no such tool.
    InvalidArguments = 250,
    /// Its answer holds nothing, and the run went on with it.
    EmptyResult = 250,
    /// Failing siblings have a step like it, passing ones have not (Ochiai).
    Spectrum = 250,
    /// It gave a value to a step that failed; where nothing failed, less, to the last call.
    Producer = 200,
    /// It gave nothing, or not all, and a later step that failed used a value from nowhere.
    LackedBeforeFailure = 300,
    /// Its answer is only a part, and nobody asked for the rest.
    TruncatedResult = 200,
    /// An argument is another one than in passing siblings.
    ArgumentDiffers = 200,
    /// Its server crashed after it.
    BeforeCrash = 200,
    /// The tool's definition had changed.
    DefinitionChanged = 150,
    /// The same call, with the same outcome, again and again.
    Loop = 150,
    /// Signs of an error in the text of an answer.
    ErrorSigns = 120,
    /// Another server has a tool of that name, and the values that it was given.
    OtherServer = 150,
    /// It was given a value that a later step failed with, and may have changed what it stands
    /// for.
    ChangedBetween = 150,
    /// It failed before anything else did.
    FirstFailure = 100,
    /// Someone did not accept what was asked of them.
    Declined = 100,
    /// The client gave up on it.
    Cancelled = 80,
    /// It was tried again and failed again.
    BeforeRetries = 50,
    /// It failed, and that was made good.
    RecoveredError = 120,
    /// Words of failure in the text of an answer.
    SoftFailure = 50,
    /// The answer says of itself that it is made up.
    MadeUp = 50,
    /// It took far longer than others of its kind.
    Slow = 60,
    /// It failed with a value that appeared nowhere before.
    ValueFromNowhere = 40,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_table_is_this_one() {
        let documented = include_str!("../../../docs/suspects.md");
        for rule in Rule::ALL {
            let name = serde_json::to_value(rule).unwrap();
            let weight = f64::from(rule.weight()) / 100.0;
            let row = format!("| `{}` | {weight:.2} |", name.as_str().unwrap());
            assert!(documented.contains(&row), "{row}");
        }
    }
}
