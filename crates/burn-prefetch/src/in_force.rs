//! What of the settings is in force, and what has no effect and why.

use burn_prefetch_engine::{Delivery, Parts};

use crate::effective::{EffectiveConfig, Ignored, StagingConfig, WindowConfig};
use crate::settings::{Settings, Staging};
use crate::workers::SHUTDOWN_GRACE;

impl Settings {
    /// `can_pin`: whether the loader's device has page-locked memory and a stream of its own.
    pub(crate) fn effective(&self, can_pin: bool) -> EffectiveConfig {
        let num_workers = self.num_workers();
        let pool = self.workers.as_ref().map(|workers| workers.0.config());
        let reader = self.reader();
        let window = match (num_workers, self.bound()) {
            (0, _) => WindowConfig::Inline,
            (_, Some(batches)) => WindowConfig::Batches(batches),
            (workers, None) => WindowConfig::Learned { most: 2 * workers },
        };
        EffectiveConfig {
            batch_size: self.cut().batch_size,
            num_workers,
            shared_workers: self.workers.is_some(),
            window,
            order: self.order,
            shuffle: self.shuffle,
            seed: self.seed(),
            drop_last: self.drop_last,
            pad_last: self.pad_last,
            in_order: reader.delivery == Delivery::InOrder,
            timeout: self.timeout,
            stall_warning: reader.patience.stall_warning.filter(|_| num_workers > 0),
            persistent_workers: self.persistent_workers() && num_workers > 0,
            shutdown_grace: pool.map_or_else(
                || self.crew.shutdown_grace.unwrap_or(SHUTDOWN_GRACE),
                |pool| pool.shutdown_grace,
            ),
            warm_next_epoch: self.warm_next_epoch,
            parts_per_batch: match reader.limits.parts {
                Parts::Fixed(parts) => Some(parts.get()),
                Parts::Learned => None,
            },
            batched: self.fetches_together(),
            start_epoch: self.start_epoch,
            staging: self.staging_config(can_pin),
            memory_budget: None,
            auto_workers: self.auto.workers,
            cpu_share: self.auto.workers.then(|| self.auto.cpu_share()),
            auto_window: self.auto.window && self.bound().is_none(),
            ignored: [self.ignored(can_pin), self.not_automatic()].concat(),
        }
    }

    /// What of the automatic settings has no effect.
    fn not_automatic(&self) -> Vec<Ignored> {
        let window = self.auto.window && self.bound().is_some();
        let bounded = window.then(|| Ignored {
            setting: "prefetch",
            value: "Auto".to_owned(),
            why: "prefetch_factor says how many batches may be alive".to_owned(),
        });
        let share = self.auto.cpu_share.filter(|_| !self.auto.workers);
        let idle = share.map(|share| Ignored {
            setting: "cpu_share",
            value: share.to_string(),
            why: "the number of workers does not change by itself".to_owned(),
        });
        bounded.into_iter().chain(idle).collect()
    }

    fn staging_config(&self, can_pin: bool) -> Option<StagingConfig> {
        let stage = self.stage();
        self.staging.staged.then(|| StagingConfig {
            pin_memory: can_pin && stage.pin_memory,
            device_prefetch: Some(stage.device_prefetch).filter(|_| can_pin && stage.workers),
            pinned_budget: stage.pinned_budget.filter(|_| can_pin),
            device_budget: stage.device_budget.filter(|_| can_pin && stage.workers),
        })
    }

    /// What was set for a device of another kind.
    fn ignored_staging(&self, can_pin: bool) -> Vec<Ignored> {
        let Staging {
            pin_memory,
            device_prefetch,
            pinned_budget,
            device_budget,
            ..
        } = self.staging;
        let here = "the device uses the host's memory as it is";
        let inline = "with 0 workers a batch is uploaded when next() asks for it";
        let of_no_use = |setting, value: Option<String>, why: &str| {
            let why = why.to_owned();
            value.map(|value| Ignored {
                setting,
                value,
                why,
            })
        };
        let pin = pin_memory.filter(|pin| *pin && !can_pin);
        let budget = pinned_budget.filter(|_| !can_pin);
        let ahead = device_prefetch.filter(|_| !can_pin || self.num_workers() == 0);
        let bytes_ahead = device_budget.filter(|_| !can_pin || self.num_workers() == 0);
        let why_ahead = if can_pin { inline } else { here };
        let all = [
            of_no_use("pin_memory", pin.map(|pin| pin.to_string()), here),
            of_no_use("device_prefetch", ahead.map(|it| it.to_string()), why_ahead),
            of_no_use("pinned_budget", budget.map(|it| it.to_string()), here),
            of_no_use(
                "device_budget",
                bytes_ahead.map(|it| it.to_string()),
                why_ahead,
            ),
        ];
        all.into_iter().flatten().collect()
    }

    fn ignored(&self, can_pin: bool) -> Vec<Ignored> {
        let mut ignored = self.ignored_staging(can_pin);
        let mut note = |setting, value: Option<String>, why: String| {
            ignored.extend(value.map(|value| Ignored {
                setting,
                value,
                why,
            }));
        };
        let batched = Some(self.batched.to_string()).filter(|_| self.batched && self.written);
        let one_by_one = "FetchInto writes one sample at a time".to_owned();
        note("batched", batched, one_by_one);
        let factor = self.prefetch_factor.map(|factor| factor.to_string());
        let total = self.prefetch.map(|total| total.to_string());
        if self.num_workers() == 0 {
            let inline = "with 0 workers a batch is made when next() asks for it".to_owned();
            note("prefetch_factor", factor, inline.clone());
            note("prefetch", total, inline);
            let threadless = "with 0 workers there is no thread to keep".to_owned();
            let crew = &self.crew;
            let persistent = crew.persistent.map(|on| on.to_string());
            note("persistent_workers", persistent, threadless.clone());
            let grace = crew.shutdown_grace.map(|grace| format!("{grace:?}"));
            note("shutdown_grace", grace, threadless);
            let unwatched = "with 0 workers get runs inside next()".to_owned();
            let stall = self.stall_warning.map(|_| self.stall_warning());
            let stall = stall.map(|limit| limit.map_or("None".to_owned(), |it| format!("{it:?}")));
            note("stall_warning", stall, unwatched);
            let one_by_one = "with 0 workers batches are made one after the other".to_owned();
            let in_order = self.in_order.filter(|in_order| !in_order);
            note("in_order", in_order.map(|on| on.to_string()), one_by_one);
            return ignored;
        }
        if let (Some(by_factor), Some(given)) = (self.by_factor(), self.prefetch) {
            let workers = self.num_workers();
            if given < by_factor {
                let why = format!("prefetch({given}) is stricter than {by_factor} batches");
                note("prefetch_factor", factor, why);
            } else if given > by_factor {
                let why = format!(
                    "prefetch_factor for {workers} workers is stricter, with {by_factor} batches"
                );
                note("prefetch", total, why);
            }
        }
        ignored
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::AutoSettings;
    use crate::settings::doubles::with_workers;
    use crate::workers::Crew;

    fn bound(settings: &Settings) -> WindowConfig {
        settings.effective(false).window
    }

    #[test]
    fn the_strictest_bound_wins_and_the_other_is_named() {
        let mut settings = Settings {
            prefetch_factor: Some(2),
            prefetch: Some(3),
            ..with_workers(4)
        };
        assert_eq!(bound(&settings), WindowConfig::Batches(3));
        assert_eq!(
            settings.effective(false).ignored[0].setting,
            "prefetch_factor"
        );
        settings.prefetch = Some(9);
        assert_eq!(bound(&settings), WindowConfig::Batches(8));
        assert_eq!(settings.effective(false).ignored[0].setting, "prefetch");
        settings.prefetch = Some(8);
        assert!(settings.effective(false).ignored.is_empty());
        settings.prefetch_factor = Some(usize::MAX);
        assert_eq!(bound(&settings), WindowConfig::Batches(8));
    }

    #[test]
    fn without_workers_the_prefetch_settings_are_ignored() {
        let settings = Settings {
            prefetch_factor: Some(2),
            crew: Crew {
                persistent: Some(true),
                ..Crew::default()
            },
            ..Settings::default()
        };
        let effective = settings.effective(false);
        assert_eq!(effective.window, WindowConfig::Inline);
        let names: Vec<_> = effective
            .ignored
            .iter()
            .map(|ignored| ignored.setting)
            .collect();
        assert_eq!(names, ["prefetch_factor", "persistent_workers"]);
        assert!(Settings::default().effective(false).ignored.is_empty());
    }

    #[test]
    fn automatic_settings_without_effect_are_named() {
        let settings = Settings {
            prefetch_factor: Some(2),
            auto: AutoSettings {
                window: true,
                cpu_share: Some(0.5),
                ..AutoSettings::default()
            },
            ..with_workers(2)
        };
        let effective = settings.effective(false);
        assert_eq!(effective.window, WindowConfig::Batches(4));
        assert!(!effective.auto_window);
        let names = effective.ignored.iter().map(|ignored| ignored.setting);
        assert_eq!(names.collect::<Vec<_>>(), ["prefetch", "cpu_share"]);
    }
}
