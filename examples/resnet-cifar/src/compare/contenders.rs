//! Who takes part: five contenders, or every combination of a sweep.

use std::ffi::OsString;

use anyhow::{bail, ensure};

use crate::cli::{Axis, LoaderArgs, LoaderKind, Setting, Size, Staging, StagingArgs, Value};
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

    fn with(&self, value: Value) -> Self {
        let mut changed = self.clone();
        let loader = &mut changed.loader;
        match value {
            Value::Workers(workers) => changed.workers = workers,
            Value::Prefetch(batches) => loader.prefetch = Some(batches),
            Value::PrefetchFactor(batches) => loader.prefetch_factor = Some(batches),
            Value::Budget(size) => loader.memory_budget = Some(size),
            Value::Staging(staging) => loader.staging = StagingArgs::plain(staging),
        }
        changed
    }

    /// Without workers nothing is made ahead, so a bound says nothing.
    fn simplified(mut self) -> Self {
        if self.workers == 0 {
            self.loader = LoaderArgs {
                staging: self.loader.staging,
                ..LoaderArgs::plain(self.loader.loader)
            };
        }
        let workers = match self.workers {
            1 => "1 worker".to_owned(),
            workers => format!("{workers} workers"),
        };
        self.name = format!("{}, {workers}", run::name(&self.loader));
        self
    }
}

/// What the command line says of all contenders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common {
    pub(super) workers: u16,
    /// Of ours.
    pub(super) memory_budget: Option<Size>,
}

impl Common {
    fn burns(self) -> Contender {
        Contender::new(self.workers, LoaderArgs::plain(LoaderKind::Burn))
    }

    fn ours(self) -> Contender {
        let loader = LoaderArgs {
            memory_budget: self.memory_budget,
            ..LoaderArgs::plain(LoaderKind::Prefetch)
        };
        Contender::new(self.workers, loader)
    }
}

/// Burn's loader as it is, then ours under three bounds, then the last of these staged.
pub(super) fn five(common: Common) -> Vec<Contender> {
    let bounded = [
        (Staging::Off, Value::PrefetchFactor(2)),
        (Staging::Off, Value::PrefetchFactor(1)),
        (Staging::Off, Value::Prefetch(2)),
        (Staging::On, Value::Prefetch(2)),
    ];
    let bounded = bounded.map(|(staging, bound)| {
        let bounded = common.ours().with(Value::Staging(staging)).with(bound);
        Contender::new(common.workers, bounded.loader)
    });
    std::iter::once(common.burns()).chain(bounded).collect()
}

/// Ours in every combination of the axes' values, and Burn's loader for each number of workers.
pub(super) fn sweep(axes: &[Axis], common: Common) -> anyhow::Result<Vec<Contender>> {
    let defaults = Axis::defaults();
    let axes = if axes.is_empty() { &defaults } else { axes };
    let named = settings(axes)?;
    ensure!(
        common.memory_budget.is_none() || !named.contains(&Setting::Budget),
        "--sweep has budgets of its own; leave --memory-budget out"
    );
    let of = |first: Contender, settings: &[Setting]| {
        let mut all = vec![first];
        for axis in axes.iter().filter(|axis| settings.contains(&axis.setting)) {
            let each = |one: &Contender| {
                let values = axis.values.iter();
                values.map(|&value| one.with(value)).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(each).collect();
        }
        all
    };
    let burns = of(common.burns(), &[Setting::Workers]);
    let ours = of(common.ours(), &named);
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

/// What is swept, each setting once.
fn settings(axes: &[Axis]) -> anyhow::Result<Vec<Setting>> {
    let mut named = Vec::new();
    for Axis { setting, .. } in axes {
        let name = setting.name();
        ensure!(
            !named.contains(setting),
            "--sweep names {name} twice; put all values into one list"
        );
        named.push(*setting);
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many workers and no budget.
    fn plain(workers: u16) -> Common {
        Common {
            workers,
            memory_budget: None,
        }
    }

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
            names(&five(plain(2))),
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
        let all = sweep(&axes(&["workers=1,4", "prefetch=1,2"]), plain(2)).unwrap();
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
        assert_eq!(sweep(&[], plain(2)).unwrap().len(), 3 + 3 * 4);
        let all = sweep(&axes(&["prefetch-factor=1"]), plain(3)).unwrap();
        assert_eq!(
            names(&all),
            ["Burn's loader, 3 workers", "prefetch_factor(1), 3 workers"]
        );
    }

    #[test]
    fn a_budget_and_staging_are_axes_and_a_budget_of_all_is_in_every_name() {
        let all = sweep(&axes(&["budget=512KiB,2MiB", "staging=off,on"]), plain(1)).unwrap();
        assert_eq!(
            names(&all),
            [
                "Burn's loader, 1 worker",
                "memory_budget(512KiB), 1 worker",
                "staged, memory_budget(512KiB), 1 worker",
                "memory_budget(2MiB), 1 worker",
                "staged, memory_budget(2MiB), 1 worker",
            ]
        );
        let budget = Common {
            memory_budget: Some(Size(8 << 20)),
            ..plain(2)
        };
        let five = five(budget);
        assert_eq!(five[0].name, "Burn's loader");
        let names = names(&five);
        let budgeted = names[1..].iter();
        assert_eq!(
            budgeted
                .filter(|name| name.ends_with(", memory_budget(8MiB)"))
                .count(),
            4
        );
        let twice = sweep(&axes(&["budget=1MiB"]), budget).unwrap_err();
        assert!(twice.to_string().contains("leave --memory-budget out"));
    }

    #[test]
    fn what_means_the_same_takes_part_once() {
        let all = sweep(&axes(&["workers=0,0", "prefetch=1,2"]), plain(2)).unwrap();
        assert_eq!(
            names(&all),
            ["Burn's loader, 0 workers", "burn-prefetch, 0 workers"]
        );
    }

    #[test]
    fn an_axis_named_twice_and_too_many_contenders_are_refused() {
        let twice = sweep(&axes(&["prefetch=1", "prefetch=2"]), plain(2));
        assert!(twice.unwrap_err().to_string().contains("prefetch twice"));
        let many: Vec<String> = (1..=300).map(|value| value.to_string()).collect();
        let many = sweep(&axes(&[&format!("prefetch={}", many.join(","))]), plain(2));
        assert!(many.unwrap_err().to_string().contains("301 contenders"));
    }
}
