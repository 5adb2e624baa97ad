//! How large a store is made, and where.

use crate::Result;
use crate::generate::Plan;
use std::path::PathBuf;

/// What is asked for beside what every benchmark knows.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub(crate) plan: Plan,
    /// A folder in which the store stays for the next time.
    pub(crate) keep: Option<PathBuf>,
}

impl Scale {
    pub(crate) const USAGE: &str = "
  --recorded N  recorded runs in the store (default 100000; with --quick 4000)
  --events N    messages in them, about (default 100 a run)
  --seed N      what the store is made of (default 1)
  --keep DIR    make the store in DIR, and use what is there from a time before
";

    /// Takes these options out of the arguments.
    pub(crate) fn take(args: &mut Vec<String>) -> Result<Self> {
        let (mut runs, mut events, mut seed, mut keep) = (None, None, None, None);
        let mut rest = Vec::new();
        let mut all = std::mem::take(args).into_iter();
        while let Some(arg) = all.next() {
            let value = match &arg[..] {
                "--recorded" => &mut runs,
                "--events" => &mut events,
                "--seed" => &mut seed,
                "--keep" => {
                    keep = Some(all.next().ok_or("--keep takes a folder")?.into());
                    continue;
                }
                _ => {
                    rest.push(arg);
                    continue;
                }
            };
            let number = all.next().and_then(|number| number.parse::<u64>().ok());
            *value = Some(number.ok_or_else(|| format!("{arg} takes a number"))?);
        }
        let quick = rest.iter().any(|arg| arg == "--quick");
        let runs = runs.unwrap_or(if quick { 4_000 } else { 100_000 });
        *args = rest;
        Ok(Self {
            plan: Plan {
                runs,
                events: events.unwrap_or(100 * runs),
                seed: seed.unwrap_or(1),
            },
            keep,
        })
    }
}
