//! The cache machine, answer by answer.

use proptest::prelude::*;

use super::*;

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);

fn start() -> Timestamp {
    Timestamp::from_secs(1_800_000_000)
}

fn at(after: Duration) -> Moment {
    Moment::new(start() + after, 0)
}

fn status(code: u16, body: &'static str) -> RobotsAnswer {
    let body = Some(Bytes::from_static(body.as_bytes()));
    RobotsAnswer::Status { code, body, max_age: None }
}

fn failed() -> RobotsAnswer {
    RobotsAnswer::Failed { why: "connection refused".to_owned() }
}

const REFUSES_A: &str = "User-agent: *\nDisallow: /a\nCrawl-delay: 7";

fn after(answers: &[(Duration, RobotsAnswer)]) -> RobotsState {
    let mut state = RobotsState::default();
    for (when, answer) in answers {
        state.answer(at(*when), answer.clone(), &RobotsSettings::default());
    }
    state
}

fn decide(state: &RobotsState, when: Duration, path: &str) -> Decision {
    state.decide(start() + when, path, &RobotsSettings::default())
}

fn waits(decision: &Decision) -> bool {
    matches!(decision, Decision::Wait { reason: Reason::RobotsUnreachable { .. }, .. })
}

const ALLOW: Decision = Decision::Allow { line: None };

#[test]
fn nothing_is_decided_before_the_first_answer() {
    let state = RobotsState::default();
    assert!(state.is_due(start()));
    assert_eq!(decide(&state, Duration::ZERO, "/"), Decision::NeedsFetch);
}

#[test]
fn what_each_status_means() {
    for (code, body, expected) in [
        (200, "", ALLOW),
        (204, "", ALLOW),
        (200, "<html>not found</html>", ALLOW),
        (400, "", ALLOW),
        (401, "", ALLOW),
        (403, REFUSES_A, ALLOW),
        (404, "", ALLOW),
        (410, "", ALLOW),
        (451, "", ALLOW),
        (302, "", ALLOW),
    ] {
        let state = after(&[(Duration::ZERO, status(code, body))]);
        assert_eq!(decide(&state, Duration::ZERO, "/a"), expected, "{code}");
    }
    for code in [429, 500, 502, 503, 504, 599, 304, 100, 999] {
        let state = after(&[(Duration::ZERO, status(code, REFUSES_A))]);
        assert!(waits(&decide(&state, Duration::ZERO, "/b")), "{code}");
    }
    let state = after(&[(Duration::ZERO, RobotsAnswer::TooManyRedirects)]);
    assert_eq!(decide(&state, Duration::ZERO, "/a"), ALLOW);
    let state = after(&[(Duration::ZERO, failed())]);
    assert!(waits(&decide(&state, Duration::ZERO, "/a")));
}

#[test]
fn rules_decide_for_a_day_and_no_longer() {
    let state = after(&[(Duration::ZERO, status(200, REFUSES_A))]);
    let refused = Reason::RobotsDisallow { line: 2, rule: "Disallow: /a".to_owned() };
    let last = DAY - Duration::from_millis(1);
    assert_eq!(decide(&state, last, "/a/b"), Decision::Refuse(refused));
    assert_eq!(decide(&state, last, "/b"), ALLOW);
    assert_eq!(decide(&state, DAY, "/a/b"), Decision::NeedsFetch);
    assert_eq!(decide(&state, DAY, "/b"), Decision::NeedsFetch);
    assert_eq!(state.crawl_delay(), Some(Duration::from_secs(7)));
}

#[test]
fn the_life_of_an_answer_is_bounded_on_both_sides() {
    let settings = RobotsSettings { cache: 30 * DAY, ..RobotsSettings::default() };
    for (max_age, life) in [
        (None, DAY),
        (Some(3 * DAY), DAY),
        (Some(30 * MINUTE), 30 * MINUTE),
        (Some(Duration::ZERO), 5 * MINUTE),
    ] {
        let mut state = RobotsState::default();
        state.answer(
            at(Duration::ZERO),
            RobotsAnswer::Status { code: 200, body: None, max_age },
            &settings,
        );
        assert_eq!(state.due_at(), Some(start() + life), "{max_age:?}");
    }
}

#[test]
fn the_last_good_copy_serves_on_while_unreachable() {
    let mut state = after(&[(Duration::ZERO, status(200, REFUSES_A)), (DAY, status(503, ""))]);
    assert_eq!(decide(&state, DAY, "/b"), ALLOW);
    assert!(matches!(decide(&state, DAY, "/a"), Decision::Refuse(_)));
    assert_eq!(state.crawl_delay(), Some(Duration::from_secs(7)), "the wish outlives the outage");
    for day in 2..60 {
        assert!(state.is_due(start() + day * DAY));
        state.answer(at(day * DAY), failed(), &RobotsSettings::default());
        assert!(matches!(decide(&state, day * DAY, "/a"), Decision::Refuse(_)), "{day}");
    }
}

#[test]
fn an_absent_file_is_no_copy_that_could_serve_on() {
    let state = after(&[(Duration::ZERO, status(404, "")), (DAY, status(500, ""))]);
    assert!(waits(&decide(&state, DAY, "/")));
}

#[test]
fn long_unreachable_never_allows_unless_configured() {
    let mut state = RobotsState::default();
    let patient = RobotsSettings {
        long_unreachable: LongUnreachable::AllowAfter(30 * DAY),
        ..RobotsSettings::default()
    };
    for hour in 0..24 * 40 {
        let now = at(hour * Duration::from_secs(3600));
        state.answer(now, failed(), &RobotsSettings::default());
        assert!(waits(&state.decide(now.at, "/", &RobotsSettings::default())), "{hour}");
        let allowed = state.decide(now.at, "/", &patient) == ALLOW;
        assert_eq!(allowed, hour >= 24 * 30, "{hour}");
    }
}

#[test]
fn retries_grow_and_stay_within_the_hour() {
    for dice in [0, u64::MAX / 2, u64::MAX] {
        let mut state = RobotsState::default();
        let mut now = Moment::new(start(), dice);
        let mut last = Duration::ZERO;
        for _ in 0..40 {
            state.answer(now, failed(), &RobotsSettings::default());
            let due = state.due_at().unwrap();
            let delay = due.since(now.at);
            assert!(delay >= last && delay <= RETRY_MAX, "{delay:?} after {last:?}");
            assert!(!state.is_due(due - Duration::from_millis(1)) && state.is_due(due));
            (last, now.at) = (delay, due);
        }
        assert!(last >= Duration::from_secs(2_800));
    }
}

#[test]
fn sleepers_are_judged_again_only_when_what_decides_changes() {
    let mut state = RobotsState::default();
    let mut changed =
        |answer| state.answer(at(Duration::ZERO), answer, &RobotsSettings::default()).rules_changed;
    assert!(changed(status(200, REFUSES_A)));
    assert!(!changed(status(200, REFUSES_A)));
    assert!(!changed(status(503, "")), "the same copy serves on");
    assert!(!changed(status(200, REFUSES_A)));
    assert!(changed(status(200, "User-agent: *\nDisallow: /b")));
    assert!(changed(status(404, "")));
    assert!(!changed(failed()), "nothing may be fetched, so there is nothing to judge");
    assert!(changed(status(404, "")));
}

#[test]
fn a_304_renews_the_copy() {
    let state = after(&[(Duration::ZERO, status(200, REFUSES_A)), (DAY, status(304, ""))]);
    assert!(matches!(decide(&state, DAY + MINUTE, "/a"), Decision::Refuse(_)));
    assert_eq!(state.due_at(), Some(start() + 2 * DAY));
}

#[test]
fn what_lies_beyond_the_size_is_not_read_and_no_line_is_halved() {
    let settings = RobotsSettings { max_size: 40, ..RobotsSettings::default() };
    let mut state = RobotsState::default();
    let text = "User-agent: *\nDisallow: /a\nDisallow: /b/c\nDisallow: /d";
    state.answer(at(Duration::ZERO), status(200, text), &settings);
    assert!(matches!(decide(&state, Duration::ZERO, "/a"), Decision::Refuse(_)));
    assert_eq!(decide(&state, Duration::ZERO, "/b/x"), ALLOW);
    assert_eq!(decide(&state, Duration::ZERO, "/d"), ALLOW);
}

fn answers() -> impl Strategy<Value = RobotsAnswer> {
    prop_oneof![
        prop::sample::select(vec![200, 204, 301, 304, 404, 429, 500])
            .prop_map(|code| status(code, REFUSES_A)),
        Just(failed()),
        Just(RobotsAnswer::TooManyRedirects),
    ]
}

proptest! {
    #[test]
    fn records_and_snapshots_bring_the_state_back(
        steps in prop::collection::vec((0_u64..200_000, any::<u64>(), answers()), 1..8),
    ) {
        let settings = RobotsSettings::default();
        let mut state = RobotsState::default();
        let mut now = start();
        for (seconds, dice, answer) in steps {
            now = now + Duration::from_secs(seconds);
            state.answer(Moment::new(now, dice), answer, &settings);
            prop_assert_eq!(&RobotsState::from_record(&state.to_record().unwrap(), "mehman"), &state);
            let bytes = postcard::to_stdvec(&state).unwrap();
            prop_assert_eq!(&postcard::from_bytes::<RobotsState>(&bytes).unwrap(), &state);
            let due = state.due_at().unwrap();
            prop_assert!(due <= now + DAY, "I2: no decision is used longer than a day");
            prop_assert_eq!(state.decide(due, "/b", &settings), Decision::NeedsFetch);
        }
    }
}

#[test]
fn an_answer_lasts_beyond_the_next_request_within_its_day() {
    let settings = RobotsSettings::default();
    let short = RobotsAnswer::Status { code: 404, body: None, max_age: Some(MINUTE) };
    for (next, due) in [
        (MINUTE, 6 * MINUTE),
        (60 * MINUTE, 65 * MINUTE),
        (DAY - MINUTE, DAY),
        (3 * DAY, DAY),
        (Duration::ZERO, 5 * MINUTE),
    ] {
        let mut state = after(&[(Duration::ZERO, short.clone())]);
        state.hold_for(start() + next, &settings);
        assert_eq!(state.due_at(), Some(start() + due), "{next:?}");
    }
    // A copy that serves on while the file is unreachable has no day of its own.
    let mut state = after(&[(Duration::ZERO, status(200, REFUSES_A)), (DAY, failed())]);
    state.hold_for(start() + 3 * DAY, &settings);
    assert_eq!(state.due_at(), Some(start() + 3 * DAY + settings.retry_base));
    assert_eq!(decide(&state, 3 * DAY, "/b"), ALLOW);
    // Where none is left, the next try is not put off.
    let mut state = after(&[(Duration::ZERO, failed())]);
    state.hold_for(start() + 3 * DAY, &settings);
    assert_eq!(state.due_at(), Some(start() + settings.retry_base));
}

#[test]
fn an_answer_from_the_future_is_asked_for_again() {
    for answer in [status(200, REFUSES_A), failed()] {
        let state = after(&[(DAY, answer)]);
        // The clock was set back after it came: nobody knows how old it is.
        assert!(state.is_due(start() + DAY - MINUTE));
        assert_eq!(decide(&state, DAY - MINUTE, "/b"), Decision::NeedsFetch);
        assert!(!state.is_due(start() + DAY));
    }
}
