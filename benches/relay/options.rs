//! What can be asked for.

use crate::Result;

pub(crate) const USAGE: &str = "\
usage: cargo bench --bench relay -- [OPTIONS] [SECTION...]

sections: latency startup big flat memory (default: all)

  --quick     smaller counts, for a first look
  --runs N    runs of each section, of which the median counts (default 3)
  --json      one JSON object a line instead of tables
  --check     exit with 1 if a goal is missed
";

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Latency,
    Startup,
    Big,
    Flat,
    Memory,
}

impl Section {
    const ALL: [Self; 5] = [
        Self::Latency,
        Self::Startup,
        Self::Big,
        Self::Flat,
        Self::Memory,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Startup => "startup",
            Self::Big => "big",
            Self::Flat => "flat",
            Self::Memory => "memory",
        }
    }
}

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) quick: bool,
    pub(crate) json: bool,
    pub(crate) check: bool,
    runs: usize,
    pub(crate) sections: Vec<Section>,
}

impl Options {
    /// None where help was asked for.
    pub(crate) fn parse(args: Vec<String>) -> Result<Option<Self>> {
        let mut options = Self {
            quick: false,
            json: false,
            check: false,
            runs: 3,
            sections: Vec::new(),
        };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                // What cargo adds.
                "--bench" => {}
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--check" => options.check = true,
                "--runs" => {
                    let number = args.next().and_then(|number| number.parse().ok());
                    options.runs = number.filter(|n| *n > 0).ok_or("--runs takes a number")?;
                }
                "-h" | "--help" => return Ok(None),
                name => match Section::ALL.iter().find(|s| s.name() == name) {
                    Some(&section) => options.sections.push(section),
                    None => return Err(format!("unknown argument {name}\n{USAGE}").into()),
                },
            }
        }
        if options.sections.is_empty() {
            options.sections = Section::ALL.to_vec();
        }
        Ok(Some(options))
    }

    /// How often a section is run. Memory takes the most time and varies the least.
    pub(crate) fn runs_of(&self, section: Section) -> usize {
        if self.quick && section == Section::Memory {
            1
        } else {
            self.runs
        }
    }
}
