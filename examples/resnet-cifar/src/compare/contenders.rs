//! Who takes part: five contenders, or every combination of a sweep.

use super::contender::{Contender, Idle};
use crate::cli::{Axis, LoaderArgs, LoaderKind, Setting, Size, Staging, Value};
use crate::misuse::misuse;

/// A day of short runs.
const MOST: usize = 256;

/// Who takes part, and what was left out.
#[derive(Debug)]
pub(super) struct Contenders {
    pub(super) all: Vec<Contender>,
    /// Each once, in words.
    pub(super) notes: Vec<&'static str>,
}

impl Contenders {
    /// Each once, without what has no effect.
    fn of(all: impl Iterator<Item = Contender>) -> Self {
        let mut found = Self {
            all: Vec::new(),
            notes: Vec::new(),
        };
        for (contender, idle) in all.map(Contender::effective) {
            if !found.all.contains(&contender) {
                found.all.push(contender);
            }
            let note = idle.map(Idle::words);
            found
                .notes
                .extend(note.filter(|note| !found.notes.contains(note)));
        }
        found
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

/// Burn's loader as it is, then ours under three bounds, then the last of these staged; without
/// workers ours and ours staged.
pub(super) fn five(common: Common) -> Contenders {
    let bounded = [
        (Staging::Off, Value::PrefetchFactor(2)),
        (Staging::Off, Value::PrefetchFactor(1)),
        (Staging::Off, Value::Prefetch(2)),
        (Staging::On, Value::Prefetch(2)),
    ];
    let bounded = bounded.map(|(staging, bound)| {
        let ours = common.ours();
        ours.with(Value::Staging(staging)).with(bound)
    });
    Contenders::of(std::iter::once(common.burns()).chain(bounded))
}

/// Ours in every combination of the axes' values, and Burn's loader for each number of workers.
pub(super) fn sweep(axes: &[Axis], common: Common) -> anyhow::Result<Contenders> {
    let defaults = Axis::defaults();
    let axes = if axes.is_empty() { &defaults } else { axes };
    let named = settings(axes)?;
    if common.memory_budget.is_some() && named.contains(&Setting::Budget) {
        misuse!("--sweep has budgets of its own; leave --memory-budget out");
    }
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
    let mut found = Contenders::of(burns.into_iter().chain(ours));
    let all = found.all.into_iter();
    found.all = all.map(Contender::named_with_workers).collect();
    let count = found.all.len();
    if count > MOST {
        misuse!("--sweep makes {count} contenders; choose values for at most {MOST}");
    }
    Ok(found)
}

/// What is swept, each setting once.
fn settings(axes: &[Axis]) -> anyhow::Result<Vec<Setting>> {
    let mut named = Vec::new();
    for Axis { setting, .. } in axes {
        let name = setting.name();
        if named.contains(setting) {
            misuse!("--sweep names {name} twice; put all values into one list");
        }
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
            names(&five(plain(2)).all),
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
            names(&all.all),
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
        assert_eq!(sweep(&[], plain(2)).unwrap().all.len(), 3 + 3 * 4);
        let all = sweep(&axes(&["prefetch-factor=1"]), plain(3)).unwrap();
        assert_eq!(
            names(&all.all),
            ["Burn's loader, 3 workers", "prefetch_factor(1), 3 workers"]
        );
    }

    #[test]
    fn a_budget_and_staging_are_axes_and_a_budget_of_all_is_in_every_name() {
        let all = sweep(&axes(&["budget=512KiB,2MiB", "staging=off,on"]), plain(1)).unwrap();
        assert_eq!(
            names(&all.all),
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
        let five = five(budget).all;
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
            names(&all.all),
            ["Burn's loader, 0 workers", "burn-prefetch, 0 workers"]
        );
        let five = five(plain(0));
        let wanted = ["Burn's loader", "burn-prefetch", "staged"];
        assert_eq!(names(&five.all), wanted);
        assert_eq!((all.notes.len(), five.notes.len()), (1, 1));
    }

    #[test]
    fn of_two_bounds_the_laxer_is_left_out_and_said_once() {
        let both = ["workers=2", "prefetch=1,3,4,9", "prefetch-factor=1,2"];
        let all = sweep(&axes(&both), plain(2)).unwrap();
        assert_eq!(
            names(&all.all),
            [
                "Burn's loader, 2 workers",
                "prefetch(1), 2 workers",
                "prefetch_factor(1), 2 workers",
                "prefetch(3), 2 workers",
                "prefetch_factor(2), 2 workers",
            ]
        );
        assert_eq!(all.notes.len(), 1);
        assert!(five(plain(2)).notes.is_empty());
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
