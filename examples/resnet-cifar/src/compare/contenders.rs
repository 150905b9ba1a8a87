//! Who takes part: five contenders, or every combination of a sweep.

use std::ffi::OsString;

use anyhow::{bail, ensure};

use crate::cli::{Axis, LoaderArgs, LoaderKind, Setting, Staging, StagingArgs};
use crate::run;

/// A day of short runs.
const MOST: usize = 256;

/// A loader with its settings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contender {
    /// Unique within a comparison.
    pub(super) name: String,
    workers: u16,
    loader: LoaderArgs,
}

impl Contender {
    fn new(workers: u16, loader: LoaderArgs) -> Self {
        Self {
            name: run::name(&loader),
            workers,
            loader,
        }
    }

    pub(super) fn to_args(&self) -> Vec<OsString> {
        let mut args = self.loader.to_args();
        args.extend(["--workers".into(), self.workers.to_string().into()]);
        args
    }

    fn with(&self, setting: Setting, value: usize) -> Self {
        let mut changed = self.clone();
        match setting {
            Setting::Workers => changed.workers = u16::try_from(value).unwrap_or(u16::MAX),
            Setting::Prefetch => changed.loader.prefetch = Some(value),
            Setting::PrefetchFactor => changed.loader.prefetch_factor = Some(value),
        }
        changed
    }

    /// Without workers nothing is made ahead, so a bound says nothing.
    fn simplified(mut self) -> Self {
        if self.workers == 0 {
            self.loader = LoaderArgs::plain(self.loader.loader);
        }
        let workers = match self.workers {
            1 => "1 worker".to_owned(),
            workers => format!("{workers} workers"),
        };
        self.name = format!("{}, {workers}", run::name(&self.loader));
        self
    }
}

/// Burn's loader as it is, then ours under three bounds, then the last of these staged.
pub(super) fn five(workers: u16) -> Vec<Contender> {
    let ours = |staging| LoaderArgs {
        staging: StagingArgs::plain(staging),
        ..LoaderArgs::plain(LoaderKind::Prefetch)
    };
    let bounded = [
        (Staging::Off, Setting::PrefetchFactor, 2),
        (Staging::Off, Setting::PrefetchFactor, 1),
        (Staging::Off, Setting::Prefetch, 2),
        (Staging::On, Setting::Prefetch, 2),
    ];
    let bounded = bounded.map(|(staging, setting, value)| {
        let bounded = Contender::new(workers, ours(staging)).with(setting, value);
        Contender::new(workers, bounded.loader)
    });
    let burn = Contender::new(workers, LoaderArgs::plain(LoaderKind::Burn));
    std::iter::once(burn).chain(bounded).collect()
}

/// Ours in every combination of the axes' values, and Burn's loader for each number of workers.
pub(super) fn sweep(axes: &[Axis], workers: u16) -> anyhow::Result<Vec<Contender>> {
    let defaults = Axis::defaults();
    let axes = if axes.is_empty() { &defaults } else { axes };
    let mut named = Vec::new();
    for Axis { setting, .. } in axes {
        let name = setting.name();
        ensure!(
            !named.contains(setting),
            "--sweep names {name} twice; put all values into one list"
        );
        named.push(*setting);
    }
    let of = |kind, settings: &[Setting]| {
        let mut all = vec![Contender::new(workers, LoaderArgs::plain(kind))];
        for axis in axes.iter().filter(|axis| settings.contains(&axis.setting)) {
            let each = |one: &Contender| {
                let values = axis.values.iter();
                values
                    .map(|&value| one.with(axis.setting, value))
                    .collect::<Vec<_>>()
            };
            all = all.iter().flat_map(each).collect();
        }
        all
    };
    let burns = of(LoaderKind::Burn, &[Setting::Workers]);
    let ours = of(LoaderKind::Prefetch, &named);
    let mut all: Vec<Contender> = Vec::new();
    for contender in burns.into_iter().chain(ours).map(Contender::simplified) {
        if !all.contains(&contender) {
            all.push(contender);
        }
    }
    if all.len() > MOST {
        bail!(
            "--sweep makes {} contenders; choose values for at most {MOST}",
            all.len()
        );
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(contenders: &[Contender]) -> Vec<&str> {
        contenders
            .iter()
            .map(|contender| contender.name.as_str())
            .collect()
    }

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn the_contenders_are_burns_loader_and_three_bounds_and_one_staged() {
        assert_eq!(
            names(&five(2)),
            [
                "Burn's loader",
                "prefetch_factor(2)",
                "prefetch_factor(1)",
                "prefetch(2)",
                "staged, prefetch(2)"
            ]
        );
    }

    #[test]
    fn a_sweep_is_every_combination_beside_burn_for_each_number_of_workers() {
        let all = sweep(&axes(&["workers=1,4", "prefetch=1,2"]), 2).unwrap();
        assert_eq!(
            names(&all),
            [
                "Burn's loader, 1 worker",
                "Burn's loader, 4 workers",
                "prefetch(1), 1 worker",
                "prefetch(2), 1 worker",
                "prefetch(1), 4 workers",
                "prefetch(2), 4 workers",
            ]
        );
    }

    #[test]
    fn a_sweep_without_axes_has_some_and_without_workers_those_of_the_command_line() {
        assert_eq!(sweep(&[], 2).unwrap().len(), 3 + 3 * 4);
        let all = sweep(&axes(&["prefetch-factor=1"]), 3).unwrap();
        assert_eq!(
            names(&all),
            ["Burn's loader, 3 workers", "prefetch_factor(1), 3 workers"]
        );
    }

    #[test]
    fn what_means_the_same_takes_part_once() {
        let all = sweep(&axes(&["workers=0,0", "prefetch=1,2"]), 2).unwrap();
        assert_eq!(
            names(&all),
            ["Burn's loader, 0 workers", "burn-prefetch, 0 workers"]
        );
    }

    #[test]
    fn an_axis_named_twice_and_too_many_contenders_are_refused() {
        let twice = sweep(&axes(&["prefetch=1", "prefetch=2"]), 2);
        assert!(twice.unwrap_err().to_string().contains("prefetch twice"));
        let many: Vec<String> = (1..=300).map(|value| value.to_string()).collect();
        let many = sweep(&axes(&[&format!("prefetch={}", many.join(","))]), 2);
        assert!(many.unwrap_err().to_string().contains("301 contenders"));
    }
}
