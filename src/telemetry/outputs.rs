//! How many pages each output has got, and how many its purpose left out and why (R6).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::metrics::{Family, as_float};
use crate::policy::wishes::{Purpose, Scheme};

/// What one output has got since the node started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFigures {
    /// Its name: `pages`, `pages1`, …, as its files begin.
    pub name: String,
    /// Its `purpose`.
    pub purpose: String,
    /// Page records written.
    pub documents: u64,
    /// Pages left out, by the scheme that decided.
    pub left_out: BTreeMap<String, u64>,
}

/// The figures of all outputs, over all shards.
#[derive(Debug, Default)]
pub(super) struct OutputTally(Mutex<BTreeMap<String, OutputFigures>>);

impl OutputTally {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, OutputFigures>> {
        // A count is whole at any time, whoever died beside it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self, name: &str, purpose: Purpose) {
        let (name, purpose) = (name.to_owned(), purpose.as_str().to_owned());
        let figures = OutputFigures { name: name.clone(), purpose, ..OutputFigures::default() };
        self.lock().entry(name).or_insert(figures);
    }

    pub(super) fn count(&self, name: &str, left_out: Option<Scheme>) {
        let mut outputs = self.lock();
        let Some(figures) = outputs.get_mut(name) else { return };
        match left_out {
            None => figures.documents += 1,
            Some(why) => *figures.left_out.entry(why.as_str().to_owned()).or_default() += 1,
        }
    }

    pub(super) fn figures(&self) -> Vec<OutputFigures> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn families(&self) -> [Family; 2] {
        let mut documents =
            Family::counter("mehman_output_documents_total", "Page records written, by output.");
        let mut left_out = Family::counter(
            "mehman_output_left_out_pages_total",
            "Pages that the purpose of an output may not have, by what says so.",
        );
        for one in self.figures() {
            let labels = [("output", one.name.as_str()), ("purpose", one.purpose.as_str())];
            documents = documents.with(&labels, as_float(one.documents));
            for (why, pages) in &one.left_out {
                let labels = [labels[0], labels[1], ("why", why.as_str())];
                left_out = left_out.with(&labels, as_float(*pages));
            }
        }
        [documents, left_out]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{Metrics, render};

    #[test]
    fn what_is_left_out_is_told_by_output_purpose_and_cause() {
        let metrics = Metrics::new();
        metrics.output_opened("pages", Purpose::AiTrain);
        metrics.output_counted("pages", None);
        metrics.output_counted("pages", Some(Scheme::NoAi));
        metrics.output_counted("pages", Some(Scheme::NoAi));
        metrics.output_opened("pages", Purpose::AiTrain);
        let figures = &metrics.outputs()[0];
        assert_eq!((figures.documents, figures.left_out["noai"]), (1, 2));
        let text = render(&metrics.families());
        let line = "mehman_output_left_out_pages_total\
                    {output=\"pages\",purpose=\"ai-train\",why=\"noai\"} 2\n";
        assert!(text.contains(line), "{text}");
    }
}
