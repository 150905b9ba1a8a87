#!/usr/bin/env python3
"""Shows that `check-compare.py` passes sound comparisons and catches each fault."""

import importlib.util
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
SPEC = importlib.util.spec_from_file_location("check_compare", Path(__file__).with_name("check-compare.py"))
check_compare = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_compare)


def contender(**changes):
    run = {
        "name": "ours", "loader": "burn-prefetch", "workers": 2, "images_per_second": 900.0,
        "wait_share": 0.1, "peak_batches_alive": 4, "peak_batch_bytes": 4000,
        "peak_rss_above_baseline": 0, "final_loss": None, "batch_size": 16, "bound": 4, "steps": 40,
        "memory_budget": None, "reserved_bytes": 4000,
        "data": "drawn shapes", "step_ms": 20, "checksum": "0f3a",
        "images_per_second_of_runs": [880.0, 900.0, 910.0], "cpu_seconds_per_1000_batches": 3.5,
        "wait_p50_seconds": 0.001, "wait_p95_seconds": 0.002, "wait_p99_seconds": 0.002,
        "allocator": "system", "on_frontier": True, "timeline": [{"seconds": 0.0, "batch_bytes": 0}],
    }
    return run | changes


def burn(**changes):
    return contender(
        name="Burn", loader="burn", bound=None, reserved_bytes=None, peak_batches_alive=40, peak_batch_bytes=40000, checksum="77"
    ) | changes


class CheckCompare(unittest.TestCase):
    def faults(self, *runs, **settings):
        return check_compare.check({"a.json": list(runs)}, **settings)

    def catches(self, text, *runs, **settings):
        found = self.faults(*runs, **settings)
        self.assertTrue(any(text in fault for fault in found), f"{text!r} not in {found}")

    def test_sound(self):
        self.assertEqual([], self.faults(burn(), contender()))

    def test_every_field_is_needed(self):
        for field in check_compare.FIELDS:
            run = contender()
            del run[field]
            self.catches(f"`{field}` is missing", burn(), run)

    def test_values_out_of_range(self):
        for field, value in [
            ("workers", -1), ("images_per_second", 0), ("images_per_second", float("nan")), ("wait_share", 1.5),
            ("peak_batches_alive", -1), ("peak_batch_bytes", 1.5), ("peak_rss_above_baseline", -1),
            ("final_loss", float("inf")), ("bound", 0), ("memory_budget", 0), ("reserved_bytes", -1), ("checksum", "xyz"), ("checksum", ""), ("name", ""),
            ("images_per_second_of_runs", []), ("images_per_second_of_runs", [1, 0]), ("allocator", "other"),
            ("wait_p50_seconds", -1), ("cpu_seconds_per_1000_batches", 0), ("on_frontier", None), ("timeline", []),
        ]:
            self.catches(f"`{field}` is", burn(), contender(**{field: value}))

    def test_waits_rise(self):
        self.catches("waits do not rise", burn(), contender(wait_p99_seconds=0.0015))

    def test_a_median_lies_between_its_runs(self):
        self.catches("is no median", burn(), contender(images_per_second=911.0))

    def test_each_number_of_workers_is_beside_a_burn_of_its_own(self):
        both = [burn(), contender(), burn(workers=4), contender(workers=4)]
        self.assertEqual([], self.faults(*both))
        self.catches("0 times", burn(), contender(), contender(workers=4))

    def test_training_has_a_loss(self):
        self.catches("although the run trained", burn(), contender(step_ms=None))

    def test_more_alive_than_the_bound(self):
        self.catches("5 batches alive, bound 4", burn(), contender(peak_batches_alive=5))

    def test_more_bytes_than_the_budget_unless_one_batch_has_them(self):
        budget = {"memory_budget": 4096, "bound": None}
        self.assertEqual([], self.faults(burn(), contender(**budget)))
        self.catches("`peak_batch_bytes` is 4097", burn(), contender(**budget, peak_batch_bytes=4097))
        self.catches("`reserved_bytes` is 5000", burn(), contender(**budget, reserved_bytes=5000))
        self.catches("`reserved_bytes` is None", burn(), contender(**budget, reserved_bytes=None))
        one = {"peak_batches_alive": 1, "peak_batch_bytes": 5000, "reserved_bytes": 5000}
        self.assertEqual([], self.faults(burn(), contender(**budget, **one)))

    def test_bytes_not_below_burns(self):
        self.catches("not below Burn's", burn(), contender(peak_batch_bytes=40000))

    def test_without_workers_as_many_bytes_are_allowed_and_a_hundredth_more(self):
        runs = {"workers": 0, "peak_batch_bytes": 1000}
        self.assertEqual([], self.faults(burn(**runs), contender(**runs)))
        self.catches("not below", burn(**runs), contender(**runs | {"peak_batch_bytes": 1011}))

    def test_workers_that_held_nothing_were_not_measured(self):
        self.catches("`peak_batches_alive` is 0", burn(), contender(peak_batches_alive=0))
        runs = {"workers": 0, "peak_batches_alive": 0, "peak_batch_bytes": 0}
        self.assertEqual([], self.faults(burn(**runs), contender(**runs)))

    def test_both_loaders_are_there(self):
        self.catches("0 times", contender())
        self.catches("ours 0 times", burn())

    def test_checksums_differ_between_worker_counts(self):
        self.catches("differ", burn(), contender(), contender(workers=4, checksum="0f3b"))

    def test_checksums_of_other_data_may_differ(self):
        self.assertEqual([], self.faults(burn(), contender(), contender(steps=10, checksum="0f3b")))

    def test_too_few_worker_counts(self):
        self.catches("1 worker counts, wanted 2", burn(), contender(), same_checksums=2)

    def test_drawn_data_is_named(self):
        self.assertEqual([], self.faults(burn(), contender(), drawn=True))
        self.catches("not named as drawn", burn(data="shapes"), contender(), drawn=True)

    def test_no_list(self):
        self.assertEqual(["a.json: not a list of contenders"], check_compare.check({"a.json": {}}))


if __name__ == "__main__":
    unittest.main()
