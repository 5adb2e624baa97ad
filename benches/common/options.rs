//! What can be asked for.

use crate::Result;

/// A part of a benchmark.
pub(crate) trait Sections: Copy + 'static {
    const ALL: &'static [Self];

    fn name(self) -> &'static str;
}

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Options<S> {
    pub(crate) quick: bool,
    pub(crate) json: bool,
    pub(crate) check: bool,
    /// How often a section is run.
    pub(crate) runs: usize,
    pub(crate) sections: Vec<S>,
}

impl<S: Sections> Options<S> {
    /// None where help was asked for.
    pub(crate) fn parse(args: Vec<String>, name: &str) -> Result<Option<Self>> {
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
                word => match S::ALL.iter().find(|s| s.name() == word) {
                    Some(&section) => options.sections.push(section),
                    None => {
                        return Err(
                            format!("unknown argument {word}\n{}", Self::usage(name)).into()
                        );
                    }
                },
            }
        }
        if options.sections.is_empty() {
            options.sections = S::ALL.to_vec();
        }
        Ok(Some(options))
    }

    pub(crate) fn usage(name: &str) -> String {
        let sections: Vec<&str> = S::ALL.iter().map(|section| section.name()).collect();
        format!(
            "\
usage: cargo bench --bench {name} -- [OPTIONS] [SECTION...]

sections: {} (default: all)

  --quick     smaller counts, for a first look
  --runs N    runs of each section, of which the median counts (default 3)
  --json      one JSON object a line instead of tables
  --check     exit with 1 if a goal is missed
",
            sections.join(" ")
        )
    }
}
