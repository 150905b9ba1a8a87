//! The learning rate of each step, as in He et al. 2015: a tenth from one half of all steps on, a
//! hundredth from three quarters on (32,000 and 48,000 of 64,000).

use burn::optim::lr_scheduler::{LrScheduler, LrSchedulerRecord};

/// Where the record keeps the step.
const STEP: &str = "step";

#[derive(Debug, Clone)]
pub(super) struct Schedule {
    base: f64,
    steps: usize,
    /// The next one.
    step: usize,
}

impl Schedule {
    /// `base` at first, over `steps` steps in all.
    pub(super) fn new(base: f64, steps: usize) -> Self {
        Self {
            base,
            steps,
            step: 0,
        }
    }
}

impl Schedule {
    /// After so many steps.
    pub(super) fn at(self, step: usize) -> Self {
        Self { step, ..self }
    }
}

impl LrScheduler for Schedule {
    fn step(&mut self) -> f64 {
        let rate = match 4 * self.step / self.steps.max(1) {
            0 | 1 => self.base,
            2 => self.base / 10.0,
            _ => self.base / 100.0,
        };
        self.step += 1;
        rate
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::new().with_scalar(STEP, self.step)
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        self.step = record.scalar(STEP).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_falls_at_one_half_and_at_three_quarters() {
        let mut schedule = Schedule::new(1.0, 8);
        let rates: Vec<f64> = (0..8).map(|_| schedule.step()).collect();
        assert_eq!(rates, [1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01]);
    }

    #[test]
    fn a_resumed_schedule_goes_on_where_it_was() {
        let mut schedule = Schedule::new(1.0, 8);
        for _ in 0..5 {
            schedule.step();
        }
        let mut resumed = Schedule::new(1.0, 8);
        resumed.load_record(schedule.to_record());
        assert!((resumed.step() - 0.1).abs() < 1e-12);
        assert!((resumed.step() - 0.01).abs() < 1e-12);
    }
}
