//! Numbers of the command line: what is allowed, and the sentence for what is not.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::Arg;

/// Takes what begins with a minus for a value, so that whoever reads it says what is allowed.
pub(crate) fn signed(arg: Arg) -> Arg {
    if arg.get_action().takes_values() {
        arg.allow_negative_numbers(true)
    } else {
        arg
    }
}

/// Reads a whole number of this range.
pub(crate) fn within<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let (least, most) = (range.start(), range.end());
        number.ok_or_else(|| format!("choose a whole number from {least} to {most}"))
    }
}

/// Reads a number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    number
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
        .ok_or_else(|| "choose a number above 0, such as 0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_both_its_ends_and_nothing_beyond() {
        let read = within(2..=9_u16);
        assert_eq!(read("2"), Ok(2));
        assert_eq!(read("9"), Ok(9));
        for text in ["1", "10", "-3", "99999999999999999999", "2.5", "two", ""] {
            let said = read(text).unwrap_err();
            assert_eq!(said, "choose a whole number from 2 to 9", "{text}");
        }
    }

    #[test]
    fn a_rate_is_finite_and_above_0() {
        assert_eq!(positive("0.125"), Ok(0.125));
        for text in ["0", "-1", "inf", "NaN", "1e999", "fast", ""] {
            assert!(positive(text).is_err(), "{text}");
        }
    }
}
