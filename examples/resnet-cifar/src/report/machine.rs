//! The machine that figures come from, and the versions of what made them.

use std::thread;

use indicatif::HumanBytes;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// What to know of a machine and a build to read its figures: a name and a value each.
pub(super) fn facts() -> Vec<(&'static str, String)> {
    let what = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what);
    let cpu = system
        .cpus()
        .first()
        .map(|cpu| cpu.brand().trim().to_owned());
    let cpu = cpu.filter(|brand| !brand.is_empty());
    let unknown = || "unknown".to_owned();
    let cores = thread::available_parallelism();
    let cores = cores.map_or_else(|_| unknown(), |cores| cores.to_string());
    let (os, kernel) = (System::long_os_version(), System::kernel_version());
    vec![
        ("processor", cpu.unwrap_or_else(unknown)),
        ("cores for this process", cores),
        ("memory", HumanBytes(system.total_memory()).to_string()),
        ("system", os.unwrap_or_else(unknown)),
        ("kernel", kernel.unwrap_or_else(unknown)),
        ("burn-prefetch", env!("CARGO_PKG_VERSION").to_owned()),
        ("Burn", env!("BURN_VERSION").to_owned()),
        ("compiler", env!("RUSTC_VERSION").to_owned()),
        ("build", build().to_owned()),
    ]
}

fn build() -> &'static str {
    if cfg!(debug_assertions) {
        "debug: figures of a release build differ"
    } else {
        "release"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_a_value_and_the_versions_are_known() {
        let facts = facts();
        assert!(
            facts.iter().all(|(_, value)| !value.is_empty()),
            "{facts:?}"
        );
        let value = |name| &facts.iter().find(|(fact, _)| *fact == name).unwrap().1;
        assert!(value("Burn").starts_with("0.22."), "{facts:?}");
        assert!(value("compiler").starts_with("rustc 1."), "{facts:?}");
    }
}
