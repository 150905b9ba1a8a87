//! Whether batches go through host memory as bytes, and how.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::Size;
use super::setup::flag_of;
use crate::device::Device;
use crate::misuse::misuse;
use crate::number::within;

const MOST_ON_DEVICE: usize = 1_024;

/// How the batches of burn-prefetch get to the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args)]
pub(crate) struct StagingArgs {
    /// Keep pictures as bytes until they are on the device, which normalises them (burn-prefetch
    /// only).
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Staging::Auto)]
    pub(crate) staging: Staging,
    /// Stage in page-locked memory, from which a card copies by itself (on cards only)
    /// [default: on].
    #[arg(long, value_enum, value_name = "SWITCH")]
    pub(crate) pin_memory: Option<Switch>,
    /// Staged batches on the device ahead of the training, 0 to 1,024 (on cards only); 0 uploads
    /// each when it is asked for [default: 1].
    #[arg(long, value_name = "N", value_parser = within(0..=MOST_ON_DEVICE))]
    pub(crate) device_prefetch: Option<usize>,
    /// Page-lock at most so much, 1KiB to 1024GiB or a number of MiB (on cards only); what
    /// does not fit goes through other memory [default: as much as the batches alive need].
    #[arg(long, value_name = "SIZE")]
    pub(crate) pinned_budget: Option<Size>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Staging {
    /// Where the device has memory of its own: on a card
    #[default]
    Auto,
    /// On any device; on the CPU it saves memory
    On,
    /// Pictures are normalised on the host, in the batcher
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

impl StagingArgs {
    /// Nothing but whether.
    pub(crate) fn plain(staging: Staging) -> Self {
        Self {
            staging,
            ..Self::default()
        }
    }

    /// Whether batches for this device are staged.
    pub(crate) fn is_on(self, device: Device) -> bool {
        match self.staging {
            Staging::Auto => device.is_a_card(),
            Staging::On => true,
            Staging::Off => false,
        }
    }

    /// Whether these settings go together, or why they do not.
    pub(super) fn check(self) -> anyhow::Result<()> {
        if self.staging == Staging::Off
            && let Some((flag, _)) = self.given().next()
        {
            misuse!("{flag} is about staged batches; leave it out, or leave --staging off out");
        }
        Ok(())
    }

    /// As [`check`](Self::check), for a loader that stages nothing.
    pub(super) fn check_unused(self) -> anyhow::Result<()> {
        let on = (self.staging == Staging::On).then_some("--staging");
        let first = on.or_else(|| self.given().next().map(|(flag, _)| flag));
        if let Some(flag) = first {
            misuse!("--loader burn stages nothing; leave {flag} out");
        }
        Ok(())
    }

    /// What was given besides whether, each with its flag.
    pub(crate) fn given(self) -> impl Iterator<Item = (&'static str, String)> {
        let pin = self.pin_memory.map(|switch| flag_of(&switch));
        let ahead = self.device_prefetch.map(|batches| batches.to_string());
        let budget = self.pinned_budget.map(|size| size.to_string());
        let all = [
            ("--pin-memory", pin),
            ("--device-prefetch", ahead),
            ("--pinned-budget", budget),
        ];
        all.into_iter()
            .filter_map(|(flag, value)| Some((flag, value?)))
    }

    /// The same settings as command-line arguments, for a child process.
    pub(super) fn to_args(self) -> impl Iterator<Item = OsString> {
        let whether = [("--staging", flag_of(&self.staging))];
        let all = whether.into_iter().chain(self.given());
        all.flat_map(|(flag, value)| [flag.into(), value.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_the_cpu_it_is_off_unless_it_is_asked_for() {
        let on = |staging| StagingArgs::plain(staging).is_on(Device::Flex);
        let all = [Staging::Auto, Staging::On, Staging::Off].map(on);
        assert_eq!(all, [false, true, false]);
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn on_a_card_it_is_on_unless_it_is_refused() {
        let on = |staging| StagingArgs::plain(staging).is_on(Device::Cuda(1));
        let all = [Staging::Auto, Staging::On, Staging::Off].map(on);
        assert_eq!(all, [true, true, false]);
    }

    #[test]
    fn what_has_no_meaning_without_staging_is_refused_by_name() {
        let args = StagingArgs {
            device_prefetch: Some(2),
            ..StagingArgs::plain(Staging::Off)
        };
        for said in [args.check(), args.check_unused()] {
            let said = said.unwrap_err().to_string();
            assert!(said.contains("--device-prefetch"), "{said}");
        }
        let on = StagingArgs::plain(Staging::On).check_unused();
        assert!(on.unwrap_err().to_string().contains("--staging"));
        assert!(StagingArgs::default().check_unused().is_ok());
    }
}
