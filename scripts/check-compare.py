#!/usr/bin/env python3
"""Checks what `resnet-cifar compare --json` wrote: the promises, never the times.

    check-compare.py [--drawn] [--same-checksums N] FILE...

Every file is one comparison: for each number of workers Burn's loader once, ours at least once. With `--drawn` the data must
be named as drawn. With `--same-checksums N` the files together must hold ours' checksums for at
least N different worker counts.
"""

import argparse
import json
import math
import sys
from collections import defaultdict
from pathlib import Path


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_hex(value):
    return isinstance(value, str) and value != "" and all(c in "0123456789abcdef" for c in value)


def is_share(value):
    return is_number(value) and 0 <= value <= 1


def is_wait(value):
    return is_number(value) and value >= 0


def list_of(check):
    return lambda value: isinstance(value, list) and value != [] and all(map(check, value))


def or_null(check):
    return lambda value: value is None or check(value)


# Field: what it must be, in words, and the check.
FIELDS = {
    "name": ("a text", lambda v: isinstance(v, str) and v != ""),
    "loader": ("a text", lambda v: isinstance(v, str) and v != ""),
    "workers": ("a count", is_count),
    "images_per_second": ("a number above 0", lambda v: is_number(v) and v > 0),
    "images_per_second_of_runs": ("a list of numbers above 0", list_of(lambda v: is_number(v) and v > 0)),
    "wait_share": ("a share from 0 to 1", is_share),
    "wait_p50_seconds": ("seconds", is_wait),
    "wait_p95_seconds": ("seconds", is_wait),
    "wait_p99_seconds": ("seconds", is_wait),
    "cpu_seconds_per_1000_batches": ("seconds above 0", lambda v: is_number(v) and v > 0),
    "allocator": ("system or mimalloc", lambda v: v in ("system", "mimalloc")),
    "on_frontier": ("true or false", lambda v: isinstance(v, bool)),
    "timeline": ("a list of looks at memory", list_of(lambda v: isinstance(v, dict) and is_count(v.get("batch_bytes")))),
    "peak_batches_alive": ("a count", is_count),
    "peak_batch_bytes": ("bytes", is_count),
    "peak_rss_above_baseline": ("bytes, or null where unknown", or_null(is_count)),
    "final_loss": ("a finite number, or null", or_null(is_number)),
    "batch_size": ("a count above 0", lambda v: is_count(v) and v > 0),
    "bound": ("a count above 0, or null", or_null(lambda v: is_count(v) and v > 0)),
    "memory_budget": ("bytes above 0, or null", or_null(lambda v: is_count(v) and v > 0)),
    "reserved_bytes": ("bytes, null for Burn", or_null(is_count)),
    "steps": ("a count above 0", lambda v: is_count(v) and v > 0),
    "data": ("a text", lambda v: isinstance(v, str) and v != ""),
    "step_ms": ("a number from 0, null where it trained", or_null(lambda v: is_number(v) and v >= 0)),
    "checksum": ("lower-case hex digits", is_hex),
}


def field_faults(run):
    """What is missing or out of range in one contender."""
    if not isinstance(run, dict):
        return ["a contender is no object"]
    faults = []
    for field, (wanted, check) in FIELDS.items():
        if field not in run:
            faults.append(f"`{field}` is missing")
        elif not check(run[field]):
            faults.append(f"`{field}` is {run[field]!r}, wanted {wanted}")
    if not faults and run["step_ms"] is None and run["final_loss"] is None:
        faults.append("`final_loss` is null although the run trained")
    if not faults:
        waits = [run[f"wait_p{share}_seconds"] for share in (50, 95, 99)]
        if waits != sorted(waits):
            faults.append(f"waits do not rise: {waits}")
        rates = run["images_per_second_of_runs"]
        if not min(rates) <= run["images_per_second"] <= max(rates):
            faults.append(f"`images_per_second` {run['images_per_second']} is no median of {rates}")
    # Without workers a batch is begun when it is asked for, so none need be alive before that.
    if not faults and run["workers"] > 0:
        empty = [field for field in ("peak_batches_alive", "peak_batch_bytes") if run[field] == 0]
        faults += [f"`{field}` is 0 although workers ran ahead" for field in empty]
    return faults


def is_burn(run):
    return run["loader"] == "burn"


def bound_faults(runs):
    """The faults of each number of workers by itself."""
    counts = sorted({run["workers"] for run in runs})
    return [fault for count in counts for fault in faults_of([run for run in runs if run["workers"] == count])]


def faults_of(runs):
    """Ours against its bound, and against what Burn's loader held with as many workers."""
    burns = [run for run in runs if is_burn(run)]
    ours = [run for run in runs if not is_burn(run)]
    if len(burns) != 1 or not ours:
        return [f"holds Burn's loader {len(burns)} times and ours {len(ours)} times, wanted 1 and 1 or more"]
    burn, faults = burns[0], []
    for run in ours:
        if run["bound"] is not None and run["peak_batches_alive"] > run["bound"]:
            faults.append(f"{run['name']}: {run['peak_batches_alive']} batches alive, bound {run['bound']}")
        faults += budget_faults(run)
        # Without workers both loaders make a batch when it is asked for: "below" cannot be asked there. A class
        # has a few bytes more in a row of a staged batch than in an item.
        above = run["peak_batch_bytes"] - burn["peak_batch_bytes"]
        if run.get("staged") and run["workers"] == 0:
            above -= burn["peak_batch_bytes"] // 100
        if above > 0 or (above == 0 and run["workers"] > 0):
            faults.append(
                f"{run['name']}: {run['peak_batch_bytes']} batch bytes alive,"
                f" not below Burn's {burn['peak_batch_bytes']}"
            )
    return faults


def budget_faults(run):
    """A budget holds by the count of the guards and by the loader's own, unless one batch is larger."""
    budget, alive = run["memory_budget"], run["peak_batches_alive"]
    if budget is None or alive <= 1:
        return []
    counts = {field: run[field] for field in ("peak_batch_bytes", "reserved_bytes")}
    return [
        f"{run['name']}: `{field}` is {count} with {alive} batches alive, budget {budget}"
        for field, count in counts.items()
        if count is None or count > budget
    ]


def checksum_faults(runs, wanted):
    """Ours must deliver the same bytes in the same order, whatever the workers and the window."""
    groups = defaultdict(list)
    for run in runs:
        if not is_burn(run):
            key = tuple(run.get(field) for field in ("data", "batch_size", "steps", "seed"))
            groups[key].append(run)
    faults, most = [], 0
    for key, group in groups.items():
        most = max(most, len({run["workers"] for run in group}))
        if len({run["checksum"] for run in group}) > 1:
            seen = ", ".join(f"{r['name']} with {r['workers']} workers {r['checksum']}" for r in group)
            faults.append(f"checksums of ours differ on {key[0]}: {seen}")
    if most < wanted:
        faults.append(f"checksums of ours for {most} worker counts, wanted {wanted}")
    return faults


def drawn_faults(runs):
    return [f"{run['name']}: data {run['data']!r} is not named as drawn" for run in runs if "drawn" not in run["data"]]


def check(files, same_checksums=0, drawn=False):
    """All faults of these files (name to content), one line each."""
    faults, sound = [], []
    for name, runs in files.items():
        if not isinstance(runs, list) or not runs:
            faults.append(f"{name}: not a list of contenders")
            continue
        found = [f"contender {i}: {fault}" for i, run in enumerate(runs) for fault in field_faults(run)]
        if not found:
            found = bound_faults(runs) + (drawn_faults(runs) if drawn else [])
            sound += runs
        faults += [f"{name}: {fault}" for fault in found]
    return faults + checksum_faults(sound, same_checksums)


def times(files):
    """The figures that are shown and not judged."""
    for name, runs in files.items():
        for run in runs:
            yield (
                f"{name:24} {run['name']:28} {run['workers']} workers {run['images_per_second']:10.1f} images/s"
                f"  wait {run['wait_share']:6.1%}  alive {run['peak_batches_alive']:4}"
                f"  {run['peak_batch_bytes'] / 2**20:8.2f} MiB"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--drawn", action="store_true")
    parser.add_argument("--same-checksums", type=int, default=0, metavar="N")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    files = {path.name: json.loads(path.read_text()) for path in arguments.files}
    faults = check(files, arguments.same_checksums, arguments.drawn)
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    print("\n".join(times(files)))
    print(f"{len(files)} comparisons hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
