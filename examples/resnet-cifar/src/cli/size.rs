//! An amount of memory, as it is written on the command line.

use std::fmt;
use std::str::FromStr;

/// What is allowed, and how it is written.
const LEAST: Size = Size(1 << 10);
const MOST: Size = Size(1 << 40);
/// Each with its power of two; the first that divides is shown.
const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];

/// So many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    /// A whole number with its unit; without one it is in MiB.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = match &text[number.len()..] {
            "" => "MiB",
            unit => unit,
        };
        let mut known = UNITS
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(unit));
        let bytes = known.next().and_then(|(_, power)| {
            let number: u64 = number.parse().ok()?;
            number.checked_mul(1 << power)
        });
        let allowed = LEAST.0..=MOST.0;
        let size = bytes.filter(|bytes| allowed.contains(bytes)).map(Self);
        size.ok_or_else(|| format!("choose a size from {LEAST} to {MOST}, such as 8MiB"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, power): &&(&str, u32)| self.0.is_multiple_of(1 << power);
        match UNITS.iter().find(whole) {
            Some((unit, power)) => write!(f, "{}{unit}", self.0 >> power),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_with_its_unit_or_in_mebibytes_and_written_so_that_it_can_be_read() {
        for (text, bytes, shown) in [
            ("8", 8 << 20, "8MiB"),
            ("8MiB", 8 << 20, "8MiB"),
            ("1536kib", 1536 << 10, "1536KiB"),
            ("2048MiB", 2 << 30, "2GiB"),
            ("1024GiB", 1 << 40, "1024GiB"),
            ("1KiB", 1 << 10, "1KiB"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!(size, Size(bytes), "{text}");
            assert_eq!(size.to_string(), shown);
            assert_eq!(shown.parse(), Ok(size));
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_the_range() {
        for text in [
            "",
            "0",
            "0MiB",
            "MiB",
            "-1",
            "1.5MiB",
            "8MB",
            "8 MiB",
            "1025GiB",
            "99999999999999GiB",
        ] {
            let said = text.parse::<Size>().unwrap_err();
            assert!(said.contains("from 1KiB to 1024GiB"), "{text}: {said}");
        }
    }
}
