//! One axis of a sweep: which setting, and the values it takes.

use std::str::FromStr;

/// A setting and its values, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) setting: Setting,
    pub(crate) values: Vec<usize>,
}

/// What can be swept. A further one is a name here and an arm in `compare::contenders`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Workers,
    /// Batches alive in all.
    Prefetch,
    /// Batches alive for each worker.
    PrefetchFactor,
}

impl Setting {
    const ALL: [Self; 3] = [Self::Workers, Self::Prefetch, Self::PrefetchFactor];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::Prefetch => "prefetch",
            Self::PrefetchFactor => "prefetch-factor",
        }
    }

    /// The most that the loader takes.
    fn most(self) -> usize {
        match self {
            Self::Workers => 1_024,
            Self::Prefetch | Self::PrefetchFactor => 65_536,
        }
    }
}

impl Axis {
    /// What a sweep is made of where none is named.
    pub(crate) fn defaults() -> Vec<Self> {
        let axis = |setting, values: &[usize]| Self {
            setting,
            values: values.to_vec(),
        };
        vec![
            axis(Setting::Workers, &[1, 2, 4]),
            axis(Setting::Prefetch, &[1, 2, 4, 8]),
        ]
    }
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        let mut known = Setting::ALL.into_iter();
        let setting = known.find(|setting| setting.name() == name).ok_or(
            "choose workers=…, prefetch=… or prefetch-factor=…, such as workers=1,2,4".to_owned(),
        )?;
        let range = 0..=setting.most();
        let read = |value: &str| value.parse().ok().filter(|value| range.contains(value));
        let values: Option<Vec<usize>> = values.split(',').map(read).collect();
        let values = values.ok_or_else(|| {
            let most = setting.most();
            format!("choose whole numbers from 0 to {most}, such as {name}=1,2,4")
        })?;
        Ok(Self { setting, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_a_setting_and_its_values_in_order() {
        let axis: Axis = "prefetch=4,1,2".parse().unwrap();
        assert_eq!(axis.setting, Setting::Prefetch);
        assert_eq!(axis.values, [4, 1, 2]);
    }

    #[test]
    fn what_is_no_axis_is_refused_with_an_example() {
        for (text, word) in [
            ("threads=1", "workers=1,2,4"),
            ("workers", "0 to 1024"),
            ("workers=", "0 to 1024"),
            ("workers=1,,2", "0 to 1024"),
            ("workers=-1", "0 to 1024"),
            ("workers=1025", "0 to 1024"),
            ("prefetch=65537", "0 to 65536"),
            ("prefetch-factor=many", "prefetch-factor=1,2,4"),
        ] {
            let said = text.parse::<Axis>().unwrap_err();
            assert!(said.contains(word), "{text}: {said}");
        }
    }
}
