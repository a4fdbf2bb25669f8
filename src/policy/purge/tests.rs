//! The order of the steps, and lives that end amid them.

use std::collections::BTreeMap;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn of(records: u64) -> Removed {
    Removed { records, bytes: records * 10, ..Removed::default() }
}

fn order() -> PurgeRecord {
    PurgeRecord::new("1f".to_owned(), "host:a.test".to_owned(), at(1))
}

/// Files with what has to go, and what was written down of the order.
struct Disk {
    files: BTreeMap<String, u64>,
    noted: PurgeRecord,
}

/// Carries an order out until it is done, or until this many steps were done.
fn live(disk: &mut Disk, steps_max: usize) -> Vec<PurgeStep> {
    let mut run = PurgeRun::new(disk.noted.clone());
    let mut done = Vec::new();
    while done.len() < steps_max {
        let step = run.step().clone();
        done.push(step.clone());
        match step {
            PurgeStep::Settle => run.settled(),
            PurgeStep::Forget => run.forgotten(4),
            PurgeStep::Close => run.closed(),
            PurgeStep::List => run.listed(disk.files.keys().cloned().collect(), at(9)),
            PurgeStep::Look(file) => run.looked(of(disk.files[&file]), file == "torn", at(9)),
            PurgeStep::Note => {
                disk.noted = run.record().clone();
                run.noted();
            }
            PurgeStep::Rewrite(file) => {
                disk.files.insert(file, 0);
                run.rewritten(at(9));
            }
            PurgeStep::Finish => {
                disk.noted = run.record().clone();
                break;
            }
        }
    }
    done
}

fn disk() -> Disk {
    let files = [("a", 3), ("b", 0), ("c", 2), ("torn", 1)];
    Disk { files: files.map(|(name, bad)| (name.to_owned(), bad)).into(), noted: order() }
}

#[test]
fn what_goes_is_written_down_before_its_file_is_touched() {
    use PurgeStep::{Close, Finish, Forget, List, Look, Note, Rewrite, Settle};
    let mut disk = disk();
    let file = |name: &str| name.to_owned();
    assert_eq!(
        live(&mut disk, 99),
        [
            Settle,
            Forget,
            Close,
            List,
            Look(file("a")),
            Note,
            Rewrite(file("a")),
            Look(file("b")),
            Look(file("c")),
            Note,
            Rewrite(file("c")),
            Look(file("torn")),
            Note,
            Rewrite(file("torn")),
            Finish,
        ]
    );
    let PurgeRecord { done_at, removed, rewriting, urls, unreadable, .. } = disk.noted;
    assert_eq!((done_at, removed, rewriting), (Some(at(9)), of(6), None));
    assert_eq!((urls, unreadable), (4, 1));
}

#[test]
fn a_purge_without_files_is_done_too() {
    let mut disk = Disk { files: BTreeMap::new(), noted: order() };
    assert_eq!(live(&mut disk, 99).len(), 5);
    assert_eq!((disk.noted.done_at, disk.noted.removed), (Some(at(9)), Removed::default()));
}

/// Every place to die at, and every second one after that: the numbers are those of a whole life.
#[test]
fn whenever_lives_end_every_file_is_done_and_counted_once() {
    for first in 0..15 {
        for second in 0..15 {
            let mut disk = disk();
            live(&mut disk, first);
            live(&mut disk, second);
            live(&mut disk, 99);
            assert!(disk.files.values().all(|bad| *bad == 0), "{first} {second}");
            assert_eq!(disk.noted.removed, of(6), "after {first} and {second} steps");
            assert_eq!((disk.noted.urls, disk.noted.unreadable), (4, 1), "{first} {second}");
        }
    }
}

/// P-5: whatever a rewriting did before it failed, the file is looked through again, and each
/// record is counted once.
#[test]
fn a_file_whose_rewriting_failed_is_looked_through_again() {
    for done in [false, true] {
        let mut disk = disk();
        let mut run = PurgeRun::new(order());
        let mut failures = 2;
        let mut looks = Vec::new();
        while run.record().done_at.is_none() {
            match run.step().clone() {
                PurgeStep::Settle => run.settled(),
                PurgeStep::Forget => run.forgotten(4),
                PurgeStep::Close => run.closed(),
                PurgeStep::List => run.listed(disk.files.keys().cloned().collect(), at(9)),
                PurgeStep::Look(file) => {
                    run.looked(of(disk.files[&file]), file == "torn", at(9));
                    looks.push(file);
                }
                PurgeStep::Note => run.noted(),
                PurgeStep::Rewrite(file) if failures > 0 && (file == "c" || file == "torn") => {
                    failures -= 1;
                    if done {
                        disk.files.insert(file.clone(), 0);
                    }
                    run.failed(at(9));
                    assert_eq!(*run.step(), PurgeStep::Look(file));
                }
                PurgeStep::Rewrite(file) => {
                    disk.files.insert(file, 0);
                    run.rewritten(at(9));
                }
                PurgeStep::Finish => break,
            }
        }
        assert!(disk.files.values().all(|bad| *bad == 0), "{done}");
        assert_eq!((run.record().removed, run.record().unreadable), (of(6), 1), "{done}");
        assert_eq!(looks.iter().filter(|file| *file == "a").count(), 1);
        assert_eq!(looks.iter().filter(|file| *file == "c").count(), if done { 2 } else { 3 });
    }
}

/// P-4: a file that its disk gives no more is told of; what was written down of it is not counted.
#[test]
fn a_file_that_cannot_be_looked_through_holds_up_no_other() {
    let mut run =
        PurgeRun::new(PurgeRecord { rewriting: Some(("b".to_owned(), of(9))), ..order() });
    run.settled();
    run.forgotten(0);
    run.closed();
    run.listed(["a", "b", "c"].map(str::to_owned).into(), at(9));
    for _ in 0..LOOKS_MAX {
        assert_eq!(*run.step(), PurgeStep::Look("b".to_owned()));
        run.failed(at(9));
    }
    for file in ["a", "c"] {
        assert_eq!(*run.step(), PurgeStep::Look(file.to_owned()));
        run.failed(at(9));
        run.looked(of(1), false, at(9));
        run.noted();
        run.rewritten(at(9));
    }
    assert_eq!(*run.step(), PurgeStep::Finish);
    assert_eq!((run.record().removed, run.record().unreadable), (of(2), 1));
}
