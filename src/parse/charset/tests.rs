//! The order of evidence for an encoding.

use encoding_rs::{ISO_8859_2, KOI8_R, SHIFT_JIS, WINDOWS_1251};

use super::*;

fn found(body: &[u8], header: Option<&str>) -> (&'static str, CharsetSource) {
    let text = to_text(body, header, true, usize::MAX);
    (text.encoding.name(), text.source)
}

#[test]
fn evidence_is_taken_in_the_standards_order() {
    use CharsetSource::{Declared, Detected, Header, Mark, ValidUtf8};
    let meta = b"<meta charset=koi8-r>\xc1";
    for (body, header, expected) in [
        (&b"\xef\xbb\xbf<meta charset=koi8-r>"[..], Some("big5"), ("UTF-8", Mark)),
        (b"\xff\xfea\0", Some("utf-8"), ("UTF-16LE", Mark)),
        (meta, Some("latin1"), ("windows-1252", Header)),
        (meta, Some("no such thing"), ("KOI8-R", Declared)),
        (meta, None, ("KOI8-R", Declared)),
        (b"<meta charset=utf-16le>", None, ("UTF-8", Declared)),
        (b"<meta charset=x-user-defined>", None, ("windows-1252", Declared)),
        (b"<meta charset=nonsense>", None, ("UTF-8", ValidUtf8)),
        (b"<?xml version='1.0' encoding='iso-8859-2'?>", None, ("ISO-8859-2", Declared)),
        (b"plain", None, ("UTF-8", ValidUtf8)),
        (b"", None, ("UTF-8", ValidUtf8)),
        (b"caf\xe9 cr\xe8me", None, ("windows-1252", Detected)),
    ] {
        assert_eq!(found(body, header), expected, "{:?}", String::from_utf8_lossy(body));
    }
}

#[test]
fn text_that_is_utf8_already_is_not_copied() {
    for header in [None, Some("utf-8")] {
        assert!(matches!(
            to_text("é".as_bytes(), header, true, usize::MAX).text,
            Cow::Borrowed("é")
        ));
    }
}

#[test]
fn plain_text_declares_nothing() {
    let text = to_text(b"<meta charset=koi8-r>", None, false, usize::MAX);
    assert_eq!(text.encoding, UTF_8);
}

#[test]
fn detection_works_behind_a_long_head_and_on_cut_bodies() {
    let russian = "Съешь же ещё этих мягких булок";
    let russian = WINDOWS_1251.encode(russian).0.into_owned();
    let body = [vec![b' '; 100_000], russian].concat();
    assert_eq!(to_text(&body, None, true, usize::MAX).encoding, WINDOWS_1251);
    let cut = "это страница, которая оборвалась".as_bytes();
    assert_eq!(to_text(cut.get(..cut.len() - 1).unwrap(), None, true, usize::MAX).encoding, UTF_8);
}

/// Browsers read the page anew, whatever they took it for before; we do where it is no UTF-8.
#[test]
fn declarations_beyond_the_prescan_count_where_nothing_else_is_certain() {
    let far = |length: usize, rest: &[u8]| {
        let body = [&vec![b' '; length][..], b"<meta charset=koi8-r>", rest].concat();
        to_text(&body, None, true, usize::MAX).encoding
    };
    assert_eq!(prescan(&[&[b' '; 1024][..], b"<meta charset=koi8-r>"].concat()), None);
    assert_eq!((far(1024, b"\xc1"), far(1024, b"")), (KOI8_R, KOI8_R));
    assert_eq!(far(1024, "é".as_bytes()), UTF_8);
    assert_ne!(far(64 << 10, b"\xc1"), KOI8_R);
    let escapes = [&[b' '; 1024][..], b"<meta charset=iso-2022-jp>\x1b$B%F%9%H\x1b(B"].concat();
    assert!(to_text(&escapes, None, true, usize::MAX).text.ends_with("テスト"));
    let japanese = b"<meta http-equiv=Content-Type content='text/html; charset=Shift_JIS'>";
    assert_eq!(prescan(japanese), Some(SHIFT_JIS));
    let second = b"<meta content='charset=big5'><meta charset=iso-8859-2>";
    assert_eq!(prescan(second), Some(ISO_8859_2));
}
