//! The known word nearest to one that is not known.

/// How many letters must be put in, taken out, exchanged or swapped with their neighbour.
pub(super) fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let width = right.len() + 1;
    // Row `i`, column `j`: the distance of the first `i` letters from the first `j`.
    let mut rows = vec![(0..width).collect::<Vec<usize>>()];
    for (i, from) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in right.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(from != to)).min(row[j] + 1);
            best = best.min(rows[i][j + 1] + 1);
            let swapped = i > 0 && j > 0 && left[i - 1] == *to && right[j - 1] == *from;
            if swapped {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

/// Whether one may have been meant by the other: two letters may be wrong, or a third of the
/// longer.
fn is_near(left: &str, right: &str) -> bool {
    distance(left, right) <= (left.chars().count().max(right.chars().count()) / 3).max(2)
}

/// The nearest of some words, the first of equals; `None` when none is near.
pub(super) fn nearest<'w>(word: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    words.filter(|known| is_near(word, known)).min_by_key(|known| distance(word, known))
}

/// The known key nearest to a path: in the same table by its last name, elsewhere by the whole
/// path or, for a key that only stands in the wrong table, by its last name; `None` when none is
/// near.
pub(super) fn nearest_key<'k>(path: &str, keys: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let (table, name) = path.rsplit_once('.').unwrap_or(("", path));
    let parts = |known: &'k str| known.rsplit_once('.').unwrap_or(("", known));
    keys.filter(|known| is_near(name, parts(known).1)).min_by_key(|known| {
        let (known_table, known_name) = parts(known);
        let moved = usize::from(known_table != table);
        2 * distance(name, known_name) + moved
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_one_apart() {
        for slip in ["min_dely", "min_delayy", "min_delay_", "min_dealy", "mon_delay"] {
            assert_eq!(distance(slip, "min_delay"), 1, "{slip}");
        }
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }

    #[test]
    fn keys_in_the_wrong_table_lead_to_the_right_one() {
        let keys = ["fetch", "fetch.workers", "parse.workers", "parse.max_time"];
        let nearest = |path| nearest_key(path, keys.into_iter());
        assert_eq!(nearest("parse.workrs"), Some("parse.workers"));
        assert_eq!(nearest("workers"), Some("fetch.workers"));
        assert_eq!(nearest("fetch.max_time"), Some("parse.max_time"));
        assert_eq!(nearest("fecht"), Some("fetch"));
        assert_eq!(nearest("colour"), None);
        assert_eq!(nearest("fetch.agent"), None);
    }
}
