//! Runs of the same task, which a run can be compared with.

use crate::answer::ToolError;
use crate::ask::{Asked, Opened};
use agent_trace_index::listing::{Listed, RunsQuery};
use agent_trace_index::siblings::{Chosen, MOST, choose};

impl Asked {
    /// The runs that this one is compared with, by what whoever started them named as their task.
    pub(crate) async fn of_its_task(&self, run: &Listed) -> Result<Chosen, ToolError> {
        if run.row.task.is_none() {
            return Ok(Chosen::default());
        }
        let mut query = RunsQuery {
            task: run.row.task.clone(),
            limit: MOST,
            ..self.query(None)
        };
        let mut all = Vec::new();
        loop {
            let page = self.runs(query.clone()).await?;
            // What is left of the run that asks, when the question is cut out, is not judged here.
            let mut runs = page.runs;
            runs.retain(|run| !page.cut.contains_key(&run.row.id));
            all.extend(runs);
            if page.cursor.is_none() || all.len() >= MOST {
                return Ok(choose(run, all));
            }
            query.cursor = page.cursor;
        }
    }

    /// The same, read.
    pub(crate) async fn siblings(&self, run: &Opened) -> Result<(Vec<Opened>, usize), ToolError> {
        let Chosen { runs, mut left } = self.of_its_task(&run.run).await?;
        let mut siblings = Vec::with_capacity(runs.len());
        let wanted = runs.len();
        for sibling in runs {
            // One that was removed meanwhile, or cannot be read, is one less.
            match self.open(&sibling.row.id.to_string()).await {
                Ok(opened) => siblings.push(opened),
                Err(error) if error.error == "cancelled" => return Err(error),
                Err(_) => left += 1,
            }
            self.tell(siblings.len(), Some(wanted)).await;
        }
        Ok((siblings, left))
    }
}
