//! One axis of a sweep: which setting, and the values it takes.

use std::str::FromStr;

use super::setup::MOST_WORKERS;
use super::train::MOST_AHEAD;
use super::{Size, Staging};

/// A setting and its values, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) setting: Setting,
    pub(crate) values: Vec<Value>,
}

/// What can be swept. A further one is a name here, a value, and an arm in `compare::contenders`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Workers,
    Prefetch,
    PrefetchFactor,
    Budget,
    Staging,
}

/// A setting as it is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Workers(u16),
    /// Batches alive in all.
    Prefetch(usize),
    /// Batches alive for each worker.
    PrefetchFactor(usize),
    /// Bytes of batches alive.
    Budget(Size),
    Staging(Staging),
}

impl Setting {
    pub(super) const ALL: [Self; 5] = [
        Self::Workers,
        Self::Prefetch,
        Self::PrefetchFactor,
        Self::Budget,
        Self::Staging,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::Prefetch => "prefetch",
            Self::PrefetchFactor => "prefetch-factor",
            Self::Budget => "budget",
            Self::Staging => "staging",
        }
    }

    fn value(self, text: &str) -> Option<Value> {
        let ahead = || text.parse().ok().filter(|batches| *batches <= MOST_AHEAD);
        match self {
            Self::Workers => {
                let workers = text.parse().ok().filter(|count| *count <= MOST_WORKERS);
                workers.map(Value::Workers)
            }
            Self::Prefetch => ahead().map(Value::Prefetch),
            Self::PrefetchFactor => ahead().map(Value::PrefetchFactor),
            Self::Budget => text.parse().ok().map(Value::Budget),
            Self::Staging => match text {
                "on" => Some(Value::Staging(Staging::On)),
                "off" => Some(Value::Staging(Staging::Off)),
                _ => None,
            },
        }
    }

    /// What may be written behind the name.
    fn choice(self) -> String {
        match self {
            Self::Workers => {
                format!("whole numbers from 0 to {MOST_WORKERS}, such as workers=1,2,4")
            }
            Self::Prefetch | Self::PrefetchFactor => {
                let name = self.name();
                format!("whole numbers from 0 to {MOST_AHEAD}, such as {name}=1,2,4")
            }
            Self::Budget => "sizes from 1KiB to 1024GiB, such as budget=2MiB,8MiB".to_owned(),
            Self::Staging => "on or off, such as staging=on,off".to_owned(),
        }
    }
}

impl Axis {
    /// What a sweep is made of where none is named.
    pub(crate) fn defaults() -> Vec<Self> {
        vec![
            Self {
                setting: Setting::Workers,
                values: [1, 2, 4].map(Value::Workers).to_vec(),
            },
            Self {
                setting: Setting::Prefetch,
                values: [1, 2, 4, 8].map(Value::Prefetch).to_vec(),
            },
        ]
    }
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        let mut known = Setting::ALL.into_iter();
        let setting = known
            .find(|setting| setting.name() == name)
            .ok_or_else(|| {
                let names = Setting::ALL.map(|setting| format!("{}=…", setting.name()));
                format!("choose {}, such as workers=1,2,4", names.join(", "))
            })?;
        let values: Option<_> = values
            .split(',')
            .map(|value| setting.value(value))
            .collect();
        let values = values.ok_or_else(|| format!("choose {}", setting.choice()))?;
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
        assert_eq!(axis.values, [4, 1, 2].map(Value::Prefetch));
        let axis: Axis = "budget=2MiB,512KiB,3".parse().unwrap();
        let sizes = [2 << 20, 512 << 10, 3 << 20];
        assert_eq!(axis.values, sizes.map(|bytes| Value::Budget(Size(bytes))));
        let axis: Axis = "staging=on,off".parse().unwrap();
        let both = [Staging::On, Staging::Off];
        assert_eq!(axis.values, both.map(Value::Staging));
    }

    #[test]
    fn what_is_no_axis_is_refused_with_an_example() {
        for (text, word) in [
            ("threads=1", "workers=1,2,4"),
            ("threads=1", "budget=…"),
            ("workers", "0 to 1024"),
            ("workers=", "0 to 1024"),
            ("workers=1,,2", "0 to 1024"),
            ("workers=-1", "0 to 1024"),
            ("workers=1025", "0 to 1024"),
            ("prefetch=65537", "0 to 65536"),
            ("prefetch-factor=many", "prefetch-factor=1,2,4"),
            ("budget=0", "1KiB to 1024GiB"),
            ("budget=2MB", "budget=2MiB,8MiB"),
            ("staging=auto", "on or off"),
        ] {
            let said = text.parse::<Axis>().unwrap_err();
            assert!(said.contains(word), "{text}: {said}");
        }
    }
}
