#!/usr/bin/env python3
"""Shows that each scenario of the model checker catches a bug planted for it.

For every row below the engine is copied, one piece of text is replaced, and the scenario is run: it
must fail, while it passes on an unbroken copy. A row whose text is no longer in the source is an error
too. As many rows run at a time as there are processors, each with a build folder of its own. Prints a
line a row. With arguments only the rows whose scenario or bug contains one of them.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINE = pathlib.Path("crates/burn-prefetch-engine")

# (scenario, what is broken, file, text, replacement)
BUGS = [
    (
        "one_reader_gets_every_batch_in_order",
        "a batch counts as complete while parts of it are unclaimed",
        "assembly.rs",
        "self.out == 0 && !self.has_unclaimed()",
        "self.out == 0",
    ),
    (
        "one_reader_gets_every_batch_in_order",
        "the reader goes to sleep without a last look",
        "feed.rs",
        "if !desk.is_ready() && !has_own && !come() {",
        "if !has_own && !come() {",
    ),
    (
        "a_window_of_none_hands_over_one_by_one",
        "the oldest batch is not allowed when the window is closed",
        "window.rs",
        "self.limit.max(usize::from(asking))",
        "self.limit.max(usize::from(asking && returned == 0))",
    ),
    (
        "two_readers_on_one_pool",
        "a worker goes to sleep without a last look",
        "staff.rs",
        "if shared.serve_one(me, &mut line) {\n            shared.recant();",
        "if line.len() > 9 {\n            shared.recant();",
    ),
    (
        "a_window_of_none_hands_over_one_by_one",
        "a reader that asks wakes nobody",
        "waiting.rs",
        "            woke = true;\n            self.pool.wake_one();\n",
        "            woke = true;\n",
    ),
    (
        "two_readers_on_one_thread_in_step",
        "a worker looks at the last in line only",
        "staff.rs",
        "line.iter().any(|reader| reader.serve(&hand))",
        "line.last().is_some_and(|reader| reader.serve(&hand))",
    ),
    (
        "a_reader_dropped_early_leaves_the_next_pass_whole",
        "a part that comes back after the end is not expected",
        "desk.rs",
        "return Returned::Unwanted(piece, last.map(|open| open.ticket));",
        'unreachable!("every part has its batch");',
    ),
    (
        "a_reader_that_stops_finds_its_window_full",
        "a hand leaves without a look at what was freed meanwhile",
        "carry.rs",
        "if served || self.returned.load(SeqCst) == returned {",
        "if served || self.returned.load(SeqCst) >= returned {",
    ),
    (
        "a_panic_stands_at_its_place_and_the_pool_lives_on",
        "the first failure of a batch wins, not the lowest",
        "assembly.rs",
        "failure.offset < known.offset",
        "failure.offset > usize::MAX - known.offset",
    ),
    (
        "a_reader_inside_a_fetch_on_the_same_pool",
        "a worker waits for a reader instead of helping",
        "waiting.rs",
        "self.pool.live() == 0 || current_worker().is_some()",
        "self.pool.live() == 0",
    ),
    (
        "the_last_handle_dropped_on_a_worker",
        "a worker joins itself",
        "pool.rs",
        "        self.shared.work.notify_all();\n        if self.own_badge().is_some() {\n            return;\n",
        "        self.shared.work.notify_all();\n        if self.own_badge().is_some() {\n            for thread in state.crew.take_threads() {\n"
        "                let _ = thread.join();\n            }\n            return;\n",
    ),
    (
        "workers_that_end_with_the_last_reader_start_again",
        "a worker that has ended is taken for running",
        "crew.rs",
        "position(|post| !post.running)?",
        "position(|post| post.thread.is_none())?",
    ),
    (
        "a_pool_dropped_while_its_workers_are_busy_ends_them",
        "sleeping workers are not told of the end",
        "pool.rs",
        "        self.shared.work.notify_all();\n        if self.own",
        "        if self.own",
    ),
    (
        "others_are_served_by_who_takes_the_place_of_a_stuck_worker",
        "nobody takes the place of a worker that was given up",
        "pool.rs",
        "            start_missing(&self.shared, &mut state);\n        }\n        self.shared.count(&state);",
        "        }\n        self.shared.count(&state);",
    ),
    (
        "workers_come_and_go_while_a_pass_runs",
        "a worker that is not wanted any more goes to sleep",
        "staff.rs",
        "state.tokens == 0 && state.crew.wants(badge) && !self",
        "state.tokens == 0 && !self",
    ),
    (
        "a_stuck_worker_is_replaced_and_ends_when_it_comes_back",
        "a thread that was given up works on when it comes back",
        "staff.rs",
        "if state.crew.wants(badge) && !self.is_over(&state) {\n            return false;",
        "if !self.is_over(&state) {\n            return false;",
    ),
    (
        "no_more_threads_are_given_up_than_there_are_workers",
        "threads are given up without end",
        "crew.rs",
        "if !self.has(badge) || self.disowned == self.posts.len() {",
        "if !self.has(badge) {",
    ),
    (
        "no_more_threads_are_given_up_than_there_are_workers",
        "who waits is not told that nobody can be served",
        "pool.rs",
        "        alarm(alarmed);\n        given_up",
        "        drop(alarmed);\n        given_up",
    ),
    (
        "loaders_three_deep_on_one_worker_under_a_lock",
        "a worker waits for a reader instead of helping",
        "waiting.rs",
        "self.pool.live() == 0 || current_worker().is_some()",
        "self.pool.live() == 0",
    ),
    (
        "a_reader_that_asks_comes_before_the_queue_of_another",
        "who came first is served first",
        "staff.rs",
        "state.line.in_turn(line);",
        "line.extend(state.line.all());",
    ),
    (
        "batches_as_they_finish_are_the_same_batches",
        "a batch that finishes takes the place of one that was not taken yet",
        "ring.rs",
        "self.cells.push_back(Some((number, value)));",
        "self.cells = VecDeque::from([Some((number, value))]);",
    ),
    (
        "a_warm_epoch_is_whole_and_within_the_window",
        "the last batches of the epoch before are not counted",
        "desk.rs",
        "        self.look_before();\n        self.issuer\n",
        "        self.issuer\n",
    ),
    (
        "a_warm_epoch_is_whole_and_within_the_window",
        "the last place of an epoch is told to nobody",
        "reader.rs",
        "if !is_last || self.next.is_some() {",
        "if !is_last {",
    ),
    (
        "a_warm_epoch_is_whole_and_within_the_window",
        "an epoch that was begun and is not read stays with the workers",
        "reader.rs",
        "        if !self.over {\n            self.end();",
        "        if !self.over && self.turn > 0 {\n            self.end();",
    ),
    (
        "a_resumed_pass_returns_what_was_missing_and_then_the_rest",
        "what was missing is left out",
        "issuer.rs",
        "self.begins.nth(self.window.issued())",
        "self.window.issued() + self.begins.next()",
    ),
    (
        "a_thread_that_cannot_be_prepared_is_told_of_and_tried_again",
        "who waits is not told that a worker is missing",
        "staff.rs",
        "        alarm(alarmed);\n        false",
        "        drop(alarmed);\n        false",
    ),
    (
        "an_iterator_run_ahead_is_whole_and_ends_early",
        "a thread that waits for room is not told when there is some",
        "background.rs",
        "        self.belt.room.notify_one();\n        match item",
        "        match item",
    ),
    (
        "an_iterator_run_ahead_is_whole_and_ends_early",
        "a thread that waits for room is not told of the end",
        "background.rs",
        "        let items = std::mem::take(&mut state.items);\n        drop(state);\n        self.belt.room.notify_one();",
        "        let items = std::mem::take(&mut state.items);\n        drop(state);",
    ),
    (
        "batches_uploaded_by_another_thread_come_in_order",
        "an assembled batch wakes no uploader",
        "carry.rs",
        "            self.wake_uploader();\n",
        "            self.uploader();\n",
    ),
    (
        "batches_uploaded_by_another_thread_come_in_order",
        "a reader that asks wakes no uploader",
        "waiting.rs",
        "            self.pool.wake_one();\n            self.feed.wake_uploader();\n",
        "            self.pool.wake_one();\n",
    ),
    (
        "a_batch_returned_lets_the_next_be_uploaded",
        "a batch that is returned wakes no uploader",
        "reader.rs",
        "        self.feed.wake_uploader();\n        self.tune();",
        "        self.tune();",
    ),
    (
        "a_batch_returned_lets_the_next_be_uploaded",
        "one more is uploaded than is allowed",
        "dock.rs",
        "window: Window::new(room.batches)",
        "window: Window::new(room.batches + 1)",
    ),
    (
        "a_reader_inside_an_upload_uploads_itself",
        "the reader sleeps although there is something to upload",
        "feed.rs",
        "if !desk.is_ready() && !has_own && !come() {",
        "if !desk.is_ready() && !come() {",
    ),
    (
        "a_reader_inside_an_upload_uploads_itself",
        "an assembled batch does not wake the reader that uploads itself",
        "desk.rs",
        "let wake = self.parked && self.uploads_itself;",
        "let wake = false;",
    ),
    (
        "two_readers_on_one_thread_with_room_for_one_batch",
        "the oldest batch of a reader has to wait for room",
        "ledger.rs",
        "turn == Turn::Oldest || bytes",
        "turn == Turn::Oldest && self.used.now == 0 || bytes",
    ),
    (
        "two_readers_share_a_budget_of_one_batch",
        "every batch is allowed that a window has room for",
        "window.rs",
        "            _ => Turn::Further,",
        "            _ => Turn::Oldest,",
    ),
    (
        "a_budget_of_one_batch_is_one_batch_at_every_moment",
        "a place is free before its bytes are",
        "reader.rs",
        "        drop(ticket);\n        let batch",
        "        let _late = ticket;\n        let batch",
    ),
    (
        "readers_that_look_at_once_do_not_both_take_what_is_left",
        "what a look has found is taken without another look",
        "budget.rs",
        "        if !self.admitted(&mut book, bytes, turn) {\n            return None;\n        }\n",
        "",
    ),
    (
        "who_was_refused_is_told_of_the_bytes_of_another",
        "nobody is told of bytes that have come back",
        "budget.rs",
        "        self.bytes.fetch_sub(bytes, Relaxed);\n        let refused = std::mem::take(&mut book.refused);\n        drop(book);\n        tell(&refused);",
        "        self.bytes.fetch_sub(bytes, Relaxed);",
    ),
    (
        "who_was_refused_is_told_of_the_bytes_of_another",
        "who was refused at a first look is not noted",
        "budget.rs",
        "        self.admitted(&mut book, bytes, turn)\n    }",
        "        book.ledger.admits(bytes, turn)\n    }",
    ),
    (
        "a_batch_has_its_bytes_until_its_last_part_is_back",
        "the end of a pass gives back the bytes of parts that are out",
        "desk.rs",
        "partition(|open| open.assembly.is_home())",
        "partition(|open| open.assembly.number() < usize::MAX)",
    ),
    (
        "a_wider_window_is_filled_unasked",
        "nobody is told that the window has become wider",
        "dial.rs",
        "            bell.ring();",
        "            drop(bell);",
    ),
    (
        "workers_come_and_go_while_a_pass_runs",
        "a worker that leaves keeps what it was woken for",
        "staff.rs",
        "        self.ended.notify_all();\n        // The pool may serve again; or who leaves was woken for work that is another's now.\n        self.wake_one();",
        "        self.ended.notify_all();\n        if came_back {\n            self.wake_one();\n        }",
    ),
    (
        "workers_come_and_go_while_a_pass_runs",
        "sleeping workers are not told that they are not wanted any more",
        "pool.rs",
        "        // Who is not wanted any more may be asleep.\n        self.shared.work.notify_all();",
        "",
    ),
    (
        "an_uploader_that_has_settled_holds_nothing",
        "who settles does not wait for a worker in its round",
        "pool.rs",
        "while !holding.is_empty() && begun.elapsed() < grace {",
        "while holding.len() > 9 && begun.elapsed() < grace {",
    ),
]


def copy_engine(into):
    """A workspace of the engine alone, under the same lock file."""
    manifest = (ROOT / "Cargo.toml").read_text()
    start, end = manifest.index("members = ["), manifest.index("]\n", manifest.index("members = ["))
    manifest = manifest[:start] + f'members = ["{ENGINE.as_posix()}"' + manifest[end:]
    (into / "Cargo.toml").write_text(manifest)
    shutil.copy(ROOT / "Cargo.lock", into)
    # With new times: cargo takes a copy that looks as old as its build products for built.
    shutil.copytree(ROOT / ENGINE, into / ENGINE, copy_function=shutil.copy)


def run(folder, scenarios, target, efforts=(1,)):
    """Whether all of these scenarios pass, with so many times the usual number of schedules."""
    env = dict(os.environ, CARGO_TARGET_DIR=target, RUST_BACKTRACE="0")
    env["RUSTFLAGS"] = (env.get("RUSTFLAGS", "") + " --cfg shuttle").strip()
    command = ["cargo", "test", "-q", "-p", "burn-prefetch-engine", "--test", "model"]
    build = subprocess.run(command + ["--no-run"], cwd=folder, env=env, capture_output=True, text=True)
    if build.returncode != 0:
        sys.exit(f"the planted bug does not compile:\n{build.stderr}")
    schedules = int(env.get("MODEL_ITERATIONS", "2000"))
    for effort in efforts:
        env["MODEL_ITERATIONS"] = str(schedules * effort)
        test = subprocess.run(
            command + ["--", "--exact", *scenarios], cwd=folder, env=env, capture_output=True, text=True
        )
        tests = f"running {len(scenarios)} test"
        if tests not in test.stdout:
            sys.exit(f"not every one of {scenarios} is there:\n{test.stdout}{test.stderr}")
        if test.returncode != 0:
            return False
    return True


def passes(bug, scenarios, target):
    """Whether they pass on a copy with the bug (file, text, replacement), or without one."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        copy_engine(folder)
        if bug:
            file, old, new = bug
            path = folder / ENGINE / "src" / file
            text = path.read_text()
            if text.count(old) != 1:
                sys.exit(f"{file}: the text to break is there {text.count(old)} times: {old!r}")
            path.write_text(text.replace(old, new))
            # A bug that shows in few schedules is looked for longer.
            return run(folder, scenarios, target, (1, 10, 50))
        return run(folder, scenarios, target)


def caught_of(bugs, target):
    """Whether each bug is caught, in the order of the rows."""
    jobs = os.cpu_count() or 1
    targets = SimpleQueue()
    for job in range(jobs):
        # The first goes on where the unbroken copy was built.
        targets.put(f"{target}-{job}" if job else target)

    def is_caught(row):
        scenario, _, *bug = row
        own = targets.get()
        try:
            return not passes(bug, [scenario], own)
        finally:
            targets.put(own)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(is_caught, bugs)


def main():
    target = os.environ.get("CARGO_TARGET_DIR", str(pathlib.Path.home() / ".cache/burn-prefetch/target"))
    target += "/planted"
    wanted = sys.argv[1:] or [""]
    bugs = [row for row in BUGS if any(word in row[0] or word in row[1] for word in wanted)]
    if not passes(None, sorted({scenario for scenario, *_ in bugs}), target):
        sys.exit("a scenario fails without any bug planted")
    missed = 0
    for (scenario, what, *_), caught in zip(bugs, caught_of(bugs, target)):
        missed += not caught
        print(f"{'caught' if caught else 'MISSED'}  {scenario}: {what}", flush=True)
    print(f"{len(bugs) - missed} passed, {missed} failed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
