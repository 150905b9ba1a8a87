#!/usr/bin/env bash
# Runs the engine's scenarios under shuttle, which tries many thread schedules instead of one.
# MODEL_ITERATIONS sets how many schedules each scenario gets (the scenarios choose a short run
# without it); further arguments go to the test binary, e.g. a scenario's name.
set -euo pipefail
cd "$(dirname "$0")/.."

# Another cfg means other build products: they live in a folder of their own. No Burn is built here.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/burn-prefetch/target}/model"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg shuttle"

exec cargo test -p burn-prefetch-engine --test model -- "$@"
