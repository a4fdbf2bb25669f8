//! R4, R6: what a stored page asks for, as steps behind those of its way.
//!
//! They hold back no request: they say what was done with the links of the page, and which purposes
//! its record is closed to. What the page says comes from its stored response; what its host's
//! files say from the copies that are known now, so where those came after the page it is said
//! that they did: the page's record keeps what was in force then.

use super::steps::{passes, refuses};
use super::{Facts, Step};
use crate::policy::robots::RobotsState;
use crate::policy::wishes::{Cause, Purpose, Reservations, SiteWishes, Verdict, judge};
use crate::types::{
    ArchivePointer, CrawlUrl, ReservationsRecord, Timestamp, UsageWish, VisitRecord,
};

/// Uses that sites speak of.
const PURPOSES: [Purpose; 3] = [Purpose::Search, Purpose::AiTrain, Purpose::AiInput];

/// What a page itself asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageAsks {
    /// R4: its directives, as its page record has them.
    pub directives: Vec<String>,
    /// R6: what it says on its use.
    pub usage: Vec<UsageWish>,
}

/// What the files of a host say on the use of one of its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteUsage {
    /// The evidence.
    pub usage: Vec<UsageWish>,
    /// When the newest of the copies came, where that is known.
    pub said_at: Option<Timestamp>,
}

impl SiteUsage {
    /// Reads the copies that are known of a host's robots.txt and reservations.
    pub fn read(
        url: &CrawlUrl,
        robots: &RobotsState,
        reservations: Option<&ReservationsRecord>,
        product: &str,
    ) -> Self {
        let (path, said_at) = (url.path_and_query(), robots.said_at());
        let mut usage = Vec::new();
        if let Some(rules) = robots.rules() {
            usage = SiteWishes::read(rules.text(), product).of(path, said_at);
        }
        if let Some(kept) = reservations {
            let rules = Reservations::read(&kept.text, kept.is_cut);
            usage.extend(rules.of(path, Some(kept.fetched_at)));
        }
        Self { usage, said_at: said_at.max(reservations.map(|kept| kept.fetched_at)) }
    }
}

/// Where the last good response of a URL lies, and when it was fetched.
pub fn stored_page(facts: &Facts) -> Option<(&ArchivePointer, Timestamp)> {
    let visit = facts.view.as_ref()?.visit.as_ref()?;
    let VisitRecord { archive: Some(pointer), last_fetched_at: Some(at), .. } = visit else {
        return None;
    };
    Some((pointer, *at))
}

/// One step for its directives, and one for each purpose that sites speak of.
pub(super) fn steps(page: &Result<PageAsks, String>, facts: &Facts) -> Vec<Step> {
    let unread = PageAsks::default();
    let (asks, first) = match page {
        Ok(asks) => (asks, directives(&asks.directives)),
        Err(why) => {
            let told = format!("its stored response cannot be read, so this is not known: {why}");
            (&unread, passes("directives", None, None, Some(told)))
        }
    };
    let usage: Vec<UsageWish> = facts.site.usage.iter().chain(&asks.usage).cloned().collect();
    let fetched_at = stored_page(facts).map(|(_, at)| at);
    let late = facts.site.said_at.filter(|said| fetched_at.is_some_and(|at| *said > at));
    let uses = PURPOSES.into_iter().filter_map(|purpose| {
        let step = of_use(purpose, judge(purpose, &usage, &asks.directives), late);
        // Where the page cannot be read it may say more, which never allows anything (W-1).
        (page.is_ok() || step.result == super::StepResult::Refuse).then_some(step)
    });
    std::iter::once(first).chain(uses).collect()
}

/// R4: what the directives of a page change.
fn directives(found: &[String]) -> Step {
    let says = |word| found.iter().any(|one| one == word || one == "none");
    let mut told = Vec::new();
    if says("noindex") {
        told.push("outputs for search leave it out");
    }
    if says("nofollow") {
        told.push("none of its links are followed");
    }
    if told.is_empty() {
        told.push("nothing that changes what is done with it");
    }
    let value = (!found.is_empty()).then(|| found.join(", "));
    passes("directives", None, value, Some(told.join("; ")))
}

/// R6: whether outputs for a purpose may have the page, and who says so.
fn of_use(purpose: Purpose, verdict: Verdict<'_>, late: Option<Timestamp>) -> Step {
    let by = |cause: &Cause<'_>| format!("{} ({})", cause.scheme.as_str(), cause.source);
    let rule = |cause: Cause<'_>| Some(cause.text.replace('\n', "; "));
    let after = late.map(|at| {
        format!("; the files of its host are those of {at}, the record keeps those before")
    });
    let after = after.unwrap_or_default();
    let step = match verdict {
        Verdict::Refused(cause) => {
            let told = format!("outputs for {purpose} leave it out: {}{after}", by(&cause));
            refuses("use", rule(cause), told)
        }
        Verdict::Allowed(cause) => {
            let told = format!("outputs for {purpose} may have it: {}{after}", by(&cause));
            passes("use", rule(cause), None, Some(told))
        }
        Verdict::NoWish => {
            let told = format!("nobody keeps it from outputs for {purpose}{after}");
            passes("use", None, None, Some(told))
        }
    };
    Step { value: Some(purpose.as_str().to_owned()), ..step }
}

#[cfg(test)]
mod tests {
    use super::super::StepResult::{Pass, Refuse};
    use super::super::tests::{at, stored};
    use super::*;

    fn said(source: &str, text: &str) -> UsageWish {
        UsageWish { source: source.to_owned(), text: text.to_owned(), at: Some(at(-50)) }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Directives, wishes of the page, wishes of its host; what is told of the directives, and how
    /// it comes out for `search`, `ai-train` and `ai-input`.
    struct Case(
        &'static [&'static str],
        Option<(&'static str, &'static str)>,
        Option<(&'static str, &'static str)>,
        &'static str,
        [super::super::StepResult; 3],
    );

    #[test]
    fn a_stored_page_says_what_it_asks_for_and_which_purposes_it_closes() {
        let nothing = "nothing that changes what is done with it";
        let (hidden, bare) = ("outputs for search leave it out", "none of its links are followed");
        let both = "outputs for search leave it out; none of its links are followed";
        let signal = Some(("robots.txt", "Content-Signal: ai-train=no, search=yes"));
        let mining = Some(("header", "tdm-reservation: 1"));
        let agent = Some(("robots.txt", "User-agent: GPTBot\nDisallow: /x"));
        for Case(directives, page, site, told, uses) in [
            Case(&[], None, None, nothing, [Pass, Pass, Pass]),
            Case(&["max-snippet: 5"], None, None, nothing, [Pass, Pass, Pass]),
            Case(&["noindex"], None, None, hidden, [Refuse, Pass, Pass]),
            Case(&["nofollow"], None, None, bare, [Pass, Pass, Pass]),
            Case(&["none"], None, None, both, [Refuse, Pass, Pass]),
            Case(&["noindex", "nofollow"], mining, None, both, [Refuse, Refuse, Refuse]),
            Case(&[], None, signal, nothing, [Pass, Refuse, Pass]),
            Case(&[], None, agent, nothing, [Pass, Refuse, Pass]),
            Case(&[], mining, signal, nothing, [Pass, Refuse, Refuse]),
        ] {
            let mut facts = stored();
            facts.site.usage = site.iter().map(|(source, text)| said(source, text)).collect();
            let usage = page.iter().map(|(source, text)| said(source, text)).collect();
            let page = PageAsks { directives: words(directives), usage };
            let steps = steps(&Ok(page), &facts);
            let names: Vec<&str> = steps.iter().map(|step| step.step.as_str()).collect();
            assert_eq!(names, ["directives", "use", "use", "use"]);
            assert_eq!(steps[0].reason.as_deref(), Some(told), "{directives:?}");
            assert_eq!(steps[0].result, Pass);
            let of: Vec<&str> = steps[1..].iter().filter_map(|s| s.value.as_deref()).collect();
            assert_eq!(of, ["search", "ai-train", "ai-input"]);
            let results: Vec<_> = steps[1..].iter().map(|step| step.result).collect();
            assert_eq!(results, uses, "{steps:#?}");
        }
    }

    #[test]
    fn what_decides_is_told_as_it_was_found() {
        let mut facts = stored();
        facts.site.usage = vec![said("robots.txt", "User-agent: GPTBot\nDisallow: /x")];
        let page = PageAsks {
            directives: words(&["noindex"]),
            usage: vec![said("header", "content-usage: ai-use=y")],
        };
        let told = steps(&Ok(page), &facts);
        let of = |step: &Step| (step.rule.clone().unwrap(), step.reason.clone().unwrap());
        let wanted = [
            ("noindex", "outputs for search leave it out: noindex (page)"),
            (
                "User-agent: GPTBot; Disallow: /x",
                "outputs for ai-train leave it out: agent-group (robots.txt)",
            ),
            ("content-usage: ai-use=y", "outputs for ai-input may have it: content-usage (header)"),
        ];
        let wanted = wanted.map(|(rule, reason)| (rule.to_owned(), reason.to_owned()));
        assert_eq!(told[1..].iter().map(of).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn copies_that_came_after_the_page_are_told_as_that() {
        let mut facts = stored();
        let told = |facts: &Facts| steps(&Ok(PageAsks::default()), facts)[1].reason.clone();
        for (said_at, late) in [(None, false), (Some(at(-60)), false), (Some(at(-40)), true)] {
            facts.site.said_at = said_at;
            let reason = told(&facts).unwrap();
            assert_eq!(reason.contains("the record keeps those before"), late, "{reason}");
        }
    }

    #[test]
    fn of_a_page_that_cannot_be_read_only_what_its_host_refuses_is_told() {
        let mut facts = stored();
        facts.site.usage = vec![said("robots.txt", "Content-Signal: ai-train=no")];
        let told = steps(&Err("no such file".to_owned()), &facts);
        let shown: Vec<_> =
            told.iter().map(|step| (step.step.as_str(), step.value.as_deref())).collect();
        assert_eq!(shown, [("directives", None), ("use", Some("ai-train"))]);
        assert!(told[0].reason.as_ref().unwrap().contains("no such file"), "{told:#?}");
    }

    #[test]
    fn the_files_of_a_host_are_read_for_the_path() {
        let text = "User-agent: *\nContent-Usage: /x train-ai=n\nContent-Usage: /y search=n\n";
        let record = crate::types::RobotsRecord {
            fetched_at: at(-60),
            expires_at: at(60),
            answer: crate::types::RobotsKept::Rules(text.into()),
            reservations: None,
        };
        let reserved = ReservationsRecord {
            fetched_at: at(-40),
            expires_at: at(60),
            text: r#"[{"location": "/x", "tdm-reservation": 1}]"#.into(),
            is_cut: false,
        };
        let robots = RobotsState::from_record(&record, "mehman");
        let url = CrawlUrl::parse("https://a.test/x/1").unwrap();
        let read = SiteUsage::read(&url, &robots, Some(&reserved), "mehman");
        assert_eq!(read.said_at, Some(at(-40)));
        let sources: Vec<_> = read.usage.iter().map(|one| (one.source.as_str(), one.at)).collect();
        assert_eq!(sources, [("robots.txt", Some(at(-60))), ("tdmrep.json", Some(at(-40)))]);
        assert!(read.usage[0].text.contains("train-ai=n"), "{read:?}");
    }
}
