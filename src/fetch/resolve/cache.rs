//! Answers by name, with a bound, and who is being asked for at the moment.

use std::collections::{BTreeSet, HashMap};

use crate::types::{Reason, Timestamp};
use crate::world::Resolved;

/// An answer and until when it is used; a negative one too.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) answer: Result<Resolved, Reason>,
    pub(super) until: Timestamp,
}

/// `A` is what waits for a look-up under way.
pub(super) struct Cache<A> {
    names_max: usize,
    answers: HashMap<String, Answered>,
    /// By the time they run out, then by name, so that eviction repeats from run to run.
    ends: BTreeSet<(Timestamp, String)>,
    asking: HashMap<String, A>,
}

impl<A: Clone> Cache<A> {
    pub(super) fn new(names_max: usize) -> Self {
        let (answers, asking) = (HashMap::new(), HashMap::new());
        Self { names_max, answers, ends: BTreeSet::new(), asking }
    }

    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    /// An answer that may still be used.
    pub(super) fn fresh(&self, name: &str, now: Timestamp) -> Option<&Result<Resolved, Reason>> {
        self.answers.get(name).filter(|found| now < found.until).map(|found| &found.answer)
    }

    /// The look-up under way for a name, or a new one.
    pub(super) fn join(&mut self, name: &str, start: impl FnOnce() -> A) -> A {
        self.asking.entry(name.to_owned()).or_insert_with(start).clone()
    }

    /// A look-up has ended.
    pub(super) fn settle(&mut self, name: String, answered: Answered) {
        self.asking.remove(&name);
        self.ends.insert((answered.until, name.clone()));
        if let Some(old) = self.answers.insert(name.clone(), answered.clone())
            && old.until != answered.until
        {
            self.ends.remove(&(old.until, name));
        }
        while self.answers.len() > self.names_max {
            let Some((_, first)) = self.ends.pop_first() else { return };
            self.answers.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(seconds: i64) -> Answered {
        let until = Timestamp::from_secs(seconds);
        Answered { answer: Err(Reason::Dns { why: seconds.to_string() }), until }
    }

    #[test]
    fn what_runs_out_first_goes_first() {
        let mut cache = Cache::<()>::new(2);
        cache.settle("a".to_owned(), answered(30));
        cache.settle("b".to_owned(), answered(20));
        cache.settle("a".to_owned(), answered(10));
        cache.settle("c".to_owned(), answered(15));
        assert_eq!(cache.len(), 2);
        let now = Timestamp::from_secs(1);
        assert!(cache.fresh("a", now).is_none());
        assert!(cache.fresh("b", now).is_some());
        assert!(cache.fresh("c", now).is_some());
        assert!(cache.fresh("c", Timestamp::from_secs(15)).is_none());
        assert_eq!(cache.ends.len(), 2);
    }

    #[test]
    fn a_look_up_is_joined_until_it_settles() {
        let mut cache = Cache::new(2);
        assert_eq!(cache.join("a", || 1), 1);
        assert_eq!(cache.join("a", || 2), 1);
        cache.settle("a".to_owned(), answered(1));
        assert_eq!(cache.join("a", || 3), 3);
    }
}
