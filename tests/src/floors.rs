//! The layering of the crates, checked against the table in `ARCHITECTURE.md`.
//!
//! A row of the table is `| floor | file | job |`; a file is named by its crate and its path below
//! `src` without `.rs`, as `burn-prefetch-engine/ring`. A file may use only files of lower floors,
//! and each of them by name.

use std::collections::BTreeMap;

/// A source file: its name in the table, and its text.
#[derive(Clone, Debug)]
pub struct Source {
    /// Crate and module, as `burn-prefetch/loader`.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// All that is wrong with the layering, in words; nothing where it holds.
#[must_use]
pub fn complaints(architecture: &str, sources: &[Source]) -> Vec<String> {
    let floors = rows(architecture);
    let mut found = Vec::new();
    if floors.is_empty() {
        found.push("there is no table of floors".to_owned());
    }
    for name in floors.keys() {
        if !sources.iter().any(|source| source.name == *name) {
            found.push(format!("{name} has a row and no file"));
        }
    }
    for source in sources {
        match floors.get(&source.name) {
            None => found.push(format!("{} has no row", source.name)),
            Some(&floor) => found.extend(upward(source, floor, &floors)),
        }
    }
    found
}

/// The rows of the table: the floor of every file.
fn rows(architecture: &str) -> BTreeMap<String, u32> {
    let mut floors = BTreeMap::new();
    for line in architecture.lines() {
        let mut cells = line.trim().trim_matches('|').split('|').map(str::trim);
        let (Some(floor), Some(file)) = (cells.next(), cells.next()) else {
            continue;
        };
        let file = file.trim_matches('`');
        if let (Ok(floor), true) = (floor.parse(), file.contains('/')) {
            floors.insert(file.to_owned(), floor);
        }
    }
    floors
}

fn upward(source: &Source, floor: u32, floors: &BTreeMap<String, u32>) -> Vec<String> {
    let (krate, own) = source.name.split_once('/').unwrap_or((&source.name, ""));
    let mut found = Vec::new();
    for module in imports(&source.text) {
        let named = |(name, floor): (&String, &u32)| {
            let path = name.strip_prefix(krate)?.strip_prefix('/')?;
            let head = path.split('/').next()?;
            (head == module && path != own).then_some(*floor)
        };
        if module == own {
            continue;
        }
        match floors.iter().filter_map(named).max() {
            None => found.push(format!("{} uses `{module}`, which is no file", source.name)),
            Some(other) if other >= floor => found.push(format!(
                "{} on floor {floor} uses `{module}` on floor {other}",
                source.name
            )),
            Some(_) => {}
        }
    }
    found
}

/// The modules of its own crate that a file names: after `crate::` anywhere, and after `super::`
/// outside of braces, where `super` is the crate.
fn imports(text: &str) -> Vec<String> {
    let code = without_comments(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            found.extend(heads(&code[at + "crate::".len()..]));
        }
    }
    for (at, _) in code.match_indices("super::") {
        let depth = |bracket| code[..at].matches(bracket).count();
        if depth('{') == depth('}') {
            found.extend(heads(&code[at + "super::".len()..]));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The first names of the paths that begin here: one, or those of a group in braces.
fn heads(code: &str) -> Vec<String> {
    let name = |path: &str| -> String {
        path.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let Some(group) = code.strip_prefix('{') else {
        return vec![name(code)];
    };
    let mut depth = 0_usize;
    let mut names = vec![name(group)];
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty() && name != "self");
    names
}

fn without_comments(text: &str) -> String {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
| floor | file | job in one line |
|---:|---|---|
| 0 | `one/door` | the door |
| 1 | `one/room` | a room |
| 1 | `one/chamber` | another |
| 2 | `one/hall` | a hall |
| 0 | `two/room` | the same name in another crate |
";

    fn source(name: &str, text: &str) -> Source {
        Source {
            name: name.to_owned(),
            text: text.to_owned(),
        }
    }

    /// The files of the table, `name` with this text and the others empty.
    fn house(name: &str, text: &str) -> Vec<Source> {
        [
            "one/door",
            "one/room",
            "one/chamber",
            "one/hall",
            "two/room",
        ]
        .map(|file| source(file, if file == name { text } else { "" }))
        .into()
    }

    #[test]
    fn imports_that_point_down_are_fine() {
        let text = "use crate::room::{Bed, crate_of};\nuse crate::{door, chamber::Chair};\n";
        assert!(complaints(TABLE, &house("one/hall", text)).is_empty());
        assert!(complaints(TABLE, &house("one/room", "use super::door::Key;")).is_empty());
    }

    #[test]
    fn imports_that_point_up_or_sideways_are_found() {
        for (file, text) in [
            ("one/door", "use crate::room::Bed;"),
            ("one/door", "use crate::{hall, room as r};"),
            ("one/room", "use crate::chamber;"),
            ("one/room", "pub(crate) use super::chamber::Chair;"),
            ("one/room", "fn f() { crate::hall::enter() }"),
            ("one/room", "use crate::{door::{Key, Lock}, hall::Table};"),
        ] {
            assert_ne!(
                complaints(TABLE, &house(file, text)),
                Vec::<String>::new(),
                "{text}"
            );
        }
        let both = complaints(TABLE, &house("one/door", "use crate::{hall, room};"));
        assert_eq!(
            both,
            [
                "one/door on floor 0 uses `hall` on floor 2",
                "one/door on floor 0 uses `room` on floor 1"
            ]
        );
    }

    #[test]
    fn an_import_around_the_floors_is_found() {
        let through_the_window = complaints(TABLE, &house("one/door", "use crate::Bed;"));
        assert_eq!(
            through_the_window,
            ["one/door uses `Bed`, which is no file"]
        );
    }

    #[test]
    fn comments_own_names_and_other_crates_do_not_count() {
        let text = "//! See [`crate::hall`].\n/// As crate::hall says.\nuse mycrate::hall;\n\
                    mod tests { use super::hall; use crate::room::Bed; }\n";
        assert!(complaints(TABLE, &house("one/room", text)).is_empty());
    }

    #[test]
    fn a_missing_row_and_a_stale_row_are_found() {
        let mut sources = house("", "");
        sources.push(source("one/attic", ""));
        assert_eq!(complaints(TABLE, &sources), ["one/attic has no row"]);
        sources.remove(0);
        assert!(complaints(TABLE, &sources).contains(&"one/door has a row and no file".to_owned()));
        assert_eq!(complaints("no table", &[]), ["there is no table of floors"]);
    }
}
