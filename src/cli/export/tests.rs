//! What is left out, what a line that is none says, and what happens to the file that is written.

use super::*;
use crate::cli::output::{Form, capture};

fn record(name: &str, rest: &str) -> String {
    format!("{{\"url\":\"http://a.test/{name}\",{rest}}}\n")
}

async fn exported(
    files: &[(&str, &str)],
    args: &ExportArgs,
) -> (anyhow::Result<Exit>, String, String) {
    let home = tempfile::tempdir().unwrap();
    let pages = home.path().join("pages");
    std::fs::create_dir(&pages).unwrap();
    std::fs::write(home.path().join("VERSION"), "1\n").unwrap();
    for (name, text) in files {
        std::fs::write(pages.join(name), text).unwrap();
    }
    let data = home.path().to_str().unwrap().to_owned();
    let common = Common { data: Some(data.clone()), ..Common::default() };
    let (output, results, notes) = capture::output(Form::Text);
    let exit = run(args, &common, &output).await;
    let exit = exit.map_err(|failure| anyhow!(format!("{failure:#}").replace(&data, "DATA")));
    (exit, results.text(), notes.text())
}

fn args(purpose: Purpose) -> ExportArgs {
    ExportArgs { purpose, kind: "jsonl".into(), from: None, out: None }
}

#[tokio::test]
async fn records_are_judged_and_copied_as_they_are() {
    let free = record("free", "\"usage\":[],\"robots\":[],\"odd\": 1.50");
    let noai = "\"usage\":[{\"source\":\"meta\",\"text\":\"robots: noai\"}],\"robots\":[\"noai\"]";
    let noai = record("noai", noai);
    let hidden = record("hidden", "\"usage\":[],\"robots\":[\"noindex\"]");
    let files = [
        ("pages-0-10.jsonl", free.as_str()),
        ("pages-0-9.jsonl", &format!("{noai}{hidden}")),
        ("pages1-0-0.jsonl", "not ours\n"),
        ("other.txt", "neither\n"),
    ];
    let (exit, results, notes) = exported(&files, &args(Purpose::AiTrain)).await;
    assert_eq!((exit.unwrap(), results), (Exit::Done, format!("{hidden}{free}")));
    assert_eq!(notes, "2 of 3 page records for ai-train\nleft out by noai: 1\n");
    let (_, results, notes) = exported(&files, &args(Purpose::Search)).await;
    assert_eq!(results, format!("{noai}{free}"));
    assert!(notes.ends_with("left out by noindex: 1\n"), "{notes}");
    let (_, results, _) = exported(&files, &args(Purpose::Archive)).await;
    assert_eq!(results, format!("{noai}{hidden}{free}"));
}

#[tokio::test]
async fn a_bad_line_is_named_and_an_unfinished_one_is_left() {
    let good = record("good", "\"usage\":[],\"robots\":[]");
    let torn = format!("{good}{{\"url\":\"http");
    let files = [("pages-2-0.jsonl", torn.as_str())];
    let (exit, results, notes) = exported(&files, &args(Purpose::Search)).await;
    assert_eq!((exit.unwrap(), results), (Exit::Done, good.clone()));
    assert!(notes.contains("not read: 1 unfinished line"), "{notes}");
    let bad = format!("{good}{}", record("old", "\"robots\":[]"));
    let (exit, ..) = exported(&[("pages-2-0.jsonl", &bad)], &args(Purpose::Search)).await;
    let told = exit.unwrap_err().to_string();
    let expected = "DATA/pages/pages-2-0.jsonl:2: not a page record: missing field `usage`";
    assert!(told.starts_with(expected), "{told}");
    let (exit, ..) = exported(&[], &args(Purpose::Search)).await;
    let told = exit.unwrap_err().to_string();
    assert_eq!(told, "there is nothing to export: no file of pages in DATA/pages");
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_there_is_written_and_not_replaced() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let line = record("free", "\"usage\":[],\"robots\":[]");
    let files = [("pages-0-0.jsonl", line.as_str())];
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    std::fs::write(&target, "before").unwrap();
    std::fs::set_permissions(&target, PermissionsExt::from_mode(0o600)).unwrap();
    symlink(&target, &link).unwrap();
    let to = |out: &Path| ExportArgs { out: Some(out.to_owned()), ..args(Purpose::Search) };
    exported(&files, &to(&link)).await.0.unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), line);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let read = tokio::task::spawn_blocking({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    exported(&files, &to(&pipe)).await.0.unwrap();
    assert_eq!(read.await.unwrap(), line);
    let bad = [("pages-0-0.jsonl", "no record\n")];
    exported(&bad, &to(&target)).await.0.unwrap_err();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), line, "a failed export changes nothing");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "and leaves nothing");
    std::fs::set_permissions(&target, PermissionsExt::from_mode(0o444)).unwrap();
    exported(&files, &to(&target)).await.0.unwrap_err();
}

#[tokio::test]
async fn a_directory_of_another_version_is_not_read() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("pages")).unwrap();
    std::fs::write(home.path().join("VERSION"), "99\n").unwrap();
    let data = home.path().to_str().unwrap().to_owned();
    let common = Common { data: Some(data), ..Common::default() };
    let (output, ..) = capture::output(Form::Text);
    let told = run(&args(Purpose::Search), &common, &output).await.unwrap_err().to_string();
    assert!(told.contains("version 99"), "{told}");
}
