//! What of the machine's memory this process may use.

use std::fs;
use std::path::{Path, PathBuf};

/// The smallest of the machine's memory, the limits of the control groups that the process is in, and
/// its own limits on address space and data; with where it stands. `None` where nothing of this can
/// be read.
pub(crate) fn usable_memory() -> Option<(u64, &'static str)> {
    usable_under(Path::new("/"))
}

fn usable_under(root: &Path) -> Option<(u64, &'static str)> {
    let limits = [
        (machine_memory(root), "the machine's memory"),
        (group_limit(root), "the memory limit of its control group"),
        (own_limit(root), "its own limit (ulimit)"),
    ];
    let known = limits
        .iter()
        .filter_map(|(bytes, at)| Some(((*bytes)?, *at)));
    known.min_by_key(|(bytes, _)| *bytes)
}

fn machine_memory(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

/// `RLIMIT_AS` and `RLIMIT_DATA`, the soft ones.
fn own_limit(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/self/limits")).ok()?;
    let soft = |name| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let limits = [soft("Max address space"), soft("Max data size")];
    limits.into_iter().flatten().min()
}

/// The smallest limit of the process's group and of all above it.
fn group_limit(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = text.lines().filter_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, group) = line.split_once(':')?;
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        smallest(&root.join(mount), group, file)
    });
    limits.min()
}

/// The smallest number in `file` of the group and of those above it, up to where groups are mounted:
/// in a container that is often the group itself.
fn smallest(mount: &Path, group: &str, file: &str) -> Option<u64> {
    let names = group
        .split('/')
        .filter(|name| !name.is_empty() && *name != "..");
    let mut folder: PathBuf = names.fold(mount.to_owned(), |folder, name| folder.join(name));
    let mut least = None;
    loop {
        let number = fs::read_to_string(folder.join(file)).ok();
        // "max" and, in the older kind, a number that no machine has, are no limit.
        let number = number.and_then(|text| text.trim().parse::<u64>().ok());
        least = least.into_iter().chain(number).min();
        if folder == mount || !folder.pop() {
            return least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with these files.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:  2048 kB\nMemFree: 1 kB\n");
    const LIMITS: &str = "Limit   Soft Limit  Hard Limit  Units\n\
        Max data size             unlimited            unlimited            bytes\n\
        Max address space         1000000              unlimited            bytes\n";

    #[test]
    fn the_smallest_limit_is_found_and_named() {
        let none = root(&[]);
        assert_eq!(usable_under(none.path()), None);
        let memory = root(&[MEMINFO]);
        let found = usable_under(memory.path());
        assert_eq!(found, Some((2 << 20, "the machine's memory")));
        let limited = root(&[MEMINFO, ("proc/self/limits", LIMITS)]);
        let found = usable_under(limited.path());
        assert_eq!(found, Some((1_000_000, "its own limit (ulimit)")));
    }

    #[test]
    fn a_group_keeps_to_the_limits_of_those_above_it() {
        let new = root(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ("sys/fs/cgroup/outer/memory.max", "5000\n"),
        ]);
        let at = "the memory limit of its control group";
        assert_eq!(usable_under(new.path()), Some((5_000, at)));
        let old = root(&[
            MEMINFO,
            ("proc/self/cgroup", "4:memory:/job\n3:cpu:/\n0::/\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "7000\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ]);
        assert_eq!(usable_under(old.path()), Some((7_000, at)));
        // In a container the folder of the group is where groups are mounted.
        let inside = root(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/../job\n"),
            ("sys/fs/cgroup/memory.max", "6000\n"),
        ]);
        assert_eq!(usable_under(inside.path()), Some((6_000, at)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory() {
        assert!(usable_memory().is_some_and(|(bytes, _)| bytes > 1 << 20));
    }

    /// The same, in a process that has set itself a limit.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_limit_of_its_own_is_respected() {
        const NAME: &str = "machine::tests::a_limit_of_its_own_is_respected";
        let bytes = 4_000_000 * 1024;
        if std::env::var_os("BURN_PREFETCH_LIMITED").is_some() {
            assert_eq!(usable_memory().map(|(bytes, _)| bytes), Some(bytes));
            return;
        }
        if machine_memory(Path::new("/")).is_some_and(|all| all < bytes) {
            return;
        }
        let own = std::env::current_exe().expect("a test is a program");
        let script = format!("ulimit -d 4000000 && exec \"$0\" --exact {NAME}");
        let child = std::process::Command::new("sh")
            .args(["-c", &script])
            .arg(own)
            .env("BURN_PREFETCH_LIMITED", "1")
            .output()
            .expect("a shell");
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && text.contains("1 passed"),
            "{text}"
        );
    }
}
