#!/usr/bin/env bash
# Holds the promises on Burn's CUDA backend over the stand-in driver of tests/cuda-driver; no GPU is needed.
# The first run builds that backend, which takes about 15 minutes of CPU time. Clippy looks at the tests on
# the way, since `cargo clippy --workspace` does not see them. Further arguments go to the test binaries.
#
# CubeCL compiles kernels with an LLVM that its build downloads, unless it is there already. This script
# starts no download unasked: without that LLVM, and without ../shared/tools/llvm-prefix.sh to provide
# another, it says so and ends with status 77. LLVM=download lets CubeCL download it.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/burn-prefetch/target}"

version="$(sed -n '/^name = "tracel-llvm-bundler"$/{n;s/^version = "\(.*\)"$/\1/p}' Cargo.lock)"
installed="${XDG_DATA_HOME:-$HOME/.local/share}/tracel/tracel-llvm-$version/.tracel-llvm-installed"
provider=../shared/tools/llvm-prefix.sh
if [[ ! -e "$installed" && "${LLVM:-}" != download ]]; then
    if [[ ! -x "$provider" ]]; then
        echo "skipped: CubeCL's LLVM $version is not installed; LLVM=download $0 lets its build download it"
        exit 77
    fi
    if ! "$provider" shared || [[ ! -e "$installed" ]]; then
        echo "skipped: CubeCL's LLVM $version is not installed, and $provider could not provide another"
        exit 77
    fi
fi

# Members are compiled through clippy, all else as ever.
if command -v clippy-driver > /dev/null; then
    RUSTC_WORKSPACE_WRAPPER="$(command -v clippy-driver)"
    export RUSTC_WORKSPACE_WRAPPER
fi
selected=(
    -p burn-prefetch-cuda-driver -p burn-prefetch-cuda-tests -p resnet-cifar
    --features burn-prefetch-cuda-tests/cuda,resnet-cifar/cuda
)
said="$(mktemp)"
trap 'rm -f "$said"' EXIT
cargo build "${selected[@]}" --bins 2>&1 | tee "$said"
# The trainer has been built; its own tests are those of the workspace.
tests=(--lib)
for file in tests/cuda/tests/*.rs; do
    tests+=(--test "$(basename "$file" .rs)")
done
cargo test "${selected[@]}" "${tests[@]}" --no-run 2>&1 | tee -a "$said"
if grep -q '^warning' "$said"; then
    echo "the CUDA tests must compile without warnings" >&2
    exit 1
fi
cargo test -q "${selected[@]}" "${tests[@]}" -- "$@"
