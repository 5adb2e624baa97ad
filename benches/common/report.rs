//! What is printed.

use crate::stats::median;
use crate::verdict::Recorded;
use serde_json::json;

/// What a figure has to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// Shown, since it tells something, but nobody set a goal for it.
    None,
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
            Self::None => true,
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(limit) => write!(f, "<= {limit}"),
            Self::AtLeast(limit) => write!(f, ">= {limit}"),
            Self::None => f.write_str("-"),
        }
    }
}

/// One figure of one run.
#[derive(Debug)]
pub(crate) struct Measured {
    /// What it is, with its unit.
    pub(crate) what: String,
    pub(crate) goal: Goal,
    pub(crate) value: f64,
    /// The figures that it was made of.
    pub(crate) detail: String,
    pub(crate) recorded: Recorded,
    /// Whether recorded bytes may be missing, if they are counted.
    pub(crate) gaps_allowed: bool,
}

/// Prints lines as they come, and remembers how they went.
#[derive(Debug)]
pub(crate) struct Report {
    json: bool,
    /// What the last column says, such as `recorded = sent`.
    right: &'static str,
    met: usize,
    missed: Vec<String>,
    /// Those of the table at the end.
    rows: Vec<String>,
}

impl Report {
    /// `right` is what the last column says.
    pub(crate) fn new(json: bool, right: &'static str) -> Self {
        if !json {
            let cpus = std::thread::available_parallelism().map_or(0, usize::from);
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            let load = load.split(' ').next().unwrap_or_default().to_owned();
            println!("{cpus} processors, load {load} at the start");
        }
        Self {
            json,
            right,
            met: 0,
            missed: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Takes what the runs of a section measured, the same lines in each. The median over the
    /// runs is what is judged.
    pub(crate) fn add(&mut self, section: &str, runs: Vec<Vec<Measured>>) {
        if !self.json {
            println!(
                "\n{:<58} {:>8}  {:<24} {:>8}         {}",
                section, "goal", "runs", "median", self.right
            );
        }
        let mut lines: Vec<Vec<Measured>> = Vec::new();
        for run in runs {
            for measured in run {
                match lines.iter_mut().find(|line| line[0].what == measured.what) {
                    Some(line) => line.push(measured),
                    None => lines.push(vec![measured]),
                }
            }
        }
        for line in &lines {
            self.line(section, line);
        }
    }

    fn line(&mut self, section: &str, runs: &[Measured]) {
        let [first, others @ ..] = runs else { return };
        let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
        let middle = median(&values);
        let recorded = others.iter().fold(first.recorded.clone(), |all, run| {
            all.and(run.recorded.clone())
        });
        let complete = if first.gaps_allowed {
            recorded.is_honest()
        } else {
            recorded.is_all()
        };
        let met = first.goal.is_met(middle) && complete;
        let judged = !matches!(first.goal, Goal::None);
        if met {
            self.met += usize::from(judged);
        } else {
            self.missed.push(format!("{section}: {}", first.what));
        }
        // That of the run which is the median, so that the figures fit.
        let far = |run: &Measured| (run.value - middle).abs();
        let nearest = runs.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
        let detail = nearest.unwrap_or(first);
        if self.json {
            let (at_most, at_least) = match first.goal {
                Goal::AtMost(limit) => (Some(limit), None),
                Goal::AtLeast(limit) => (None, Some(limit)),
                Goal::None => (None, None),
            };
            let line = json!({
                "section": section,
                "what": first.what,
                "at_most": at_most,
                "at_least": at_least,
                "runs": values,
                "median": middle,
                "met": met,
                "recorded": recorded.to_string(),
                "detail": detail.detail,
            });
            println!("{line}");
            return;
        }
        self.rows.push(format!(
            "| {} | {} | {} | {recorded} |",
            first.what,
            first.goal,
            figure(middle)
        ));
        let each: Vec<String> = values.iter().map(|&value| figure(value)).collect();
        println!(
            "  {:<56} {:>8}  {:<24} {:>8} {:>7} {recorded}",
            first.what,
            first.goal.to_string(),
            each.join("  "),
            figure(middle),
            match met {
                true if judged => "met",
                true => "",
                false => "MISSED",
            },
        );
        if !detail.detail.is_empty() {
            println!("      {}", detail.detail);
        }
    }

    pub(crate) fn all_met(&self) -> bool {
        self.missed.is_empty()
    }

    /// Prints a table in Markdown, and what was missed.
    pub(crate) fn end(&self) {
        if self.json {
            return;
        }
        let right = self.right;
        println!("\n| | goal | median | {right} |\n|---|---|---|---|");
        for row in &self.rows {
            println!("{row}");
        }
        println!("\n{} goals met, {} missed", self.met, self.missed.len());
        for what in &self.missed {
            println!("  missed: {what}");
        }
    }
}

/// A ratio has none where what it is relative to drowned in noise.
fn figure(value: f64) -> String {
    if value.is_nan() {
        "none".into()
    } else {
        format!("{value:.2}")
    }
}
