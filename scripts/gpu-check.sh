#!/usr/bin/env bash
# What can be shown on an NVIDIA card alone, as one table.
#
#   gpu-check.sh build    builds target/gpu-check/resnet-cifar.xz: a stripped release binary with Burn's CUDA
#                         backend that needs no LLVM where it runs (about 30 MB); needs no card
#   gpu-check.sh run      unpacks it and checks one point after the other, in under 6 minutes; needs no cargo
#   gpu-check.sh          both
#
# The table goes to standard output and into $OUT (by default benches/results), with the date and the card.
# CARD=N checks another card than the first; CIFAR10_DIR trains on those pictures instead of drawn ones.
# BINARY=FILE checks with that program instead, STAND_IN=DIR over the stand-in driver in DIR (see
# tests/cuda-driver), which moves bytes and computes nothing.
#
# CubeCL's build downloads an LLVM unless it is there already. Where it is not, ../shared/tools/llvm-prefix.sh provides
# another, linked statically; without that script LLVM=download lets the build download it.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=target/gpu-check
binary="${BINARY:-$folder/resnet-cifar}"

build() {
    local target="${CARGO_TARGET_DIR:-$HOME/.cache/burn-prefetch/target}/gpu-check"
    local version provider=../shared/tools/llvm-prefix.sh
    version="$(sed -n '/^name = "tracel-llvm-bundler"$/{n;s/^version = "\(.*\)"$/\1/p}' Cargo.lock)"
    local prefix="${XDG_DATA_HOME:-$HOME/.local/share}/tracel/tracel-llvm-$version"
    # Another that the provider laid links LLVM's shared library, which no other machine has.
    if [[ "${LLVM:-}" != download && (! -e "$prefix/.tracel-llvm-installed" || -e "$prefix/.from-debian") ]]; then
        if [[ ! -x "$provider" ]]; then
            echo "CubeCL's LLVM $version is not installed; LLVM=download $0 lets its build download it" >&2
            exit 1
        fi
        # In a place of its own: cargo builds anew whatever uses one that has changed.
        export XDG_DATA_HOME="$target/data"
        if [[ ! -e "$XDG_DATA_HOME/tracel/tracel-llvm-$version/.tracel-llvm-installed" ]]; then
            "$provider" static
        fi
    fi
    CARGO_TARGET_DIR="$target" CARGO_PROFILE_RELEASE_STRIP=symbols \
        cargo build --release -p resnet-cifar --features cuda,fusion,autotune
    mkdir -p "$folder"
    cp "$target/release/resnet-cifar" "$folder/resnet-cifar"
    xz -T0 -6 --keep --force "$folder/resnet-cifar"
    ls -l "$folder"
}

# point NAME SECONDS: its rows, or one that says why there are none.
point() {
    local rc=0
    local more=()
    if [[ -n "${CIFAR10_DIR:-}" ]]; then more=(--data "$CIFAR10_DIR"); fi
    timeout "$2" "$binary" gpu-check "$1" --device "cuda:${CARD:-0}" "${more[@]}" || rc=$?
    case $rc in
        0) ;;
        124) echo "| $1 | not done in $2 s | | **missed** |" ;;
        *) echo "| $1 | ended with exit status $rc | | **BROKEN** |" ;;
    esac
    return 0
}

# The card's name, driver and memory; a stand-in has none of them.
card() {
    if [[ -n "${STAND_IN:-}" ]]; then
        echo "stand-in driver, no card"
    else
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader -i "${CARD:-0}" 2> /dev/null ||
            echo "unknown card"
    fi
}

table() {
    local from=$SECONDS
    echo "# What a card shows"
    echo
    echo "- date: $(date -u +%F)"
    echo "- card: $(card)"
    echo "- host: $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
    echo "- version: $("$binary" --version), $(sha256sum < "$binary" | cut -c 1-12)"
    echo
    echo "| what | found | goal | |"
    echo "|---|---|---|---|"
    point content 75
    point speed 50
    point training 170
    point growth 30
    point streams 30
    echo
    echo "In $((SECONDS - from)) s."
}

run() {
    if [[ -z "${BINARY:-}" && ! -x "$binary" ]]; then
        xz --decompress --keep "$binary.xz"
        chmod +x "$binary"
    fi
    if [[ -n "${STAND_IN:-}" ]]; then
        export LD_LIBRARY_PATH="$STAND_IN"
    fi
    local out="${OUT:-benches/results}" name file
    name="$(card | head -n 1 | cut -d , -f 1 | tr -cs '[:alnum:]\n' '-')"
    mkdir -p "$out"
    file="$out/gpu-check-$(date -u +%F)-${name%-}.md"
    # Whole or not there.
    table | tee "$file.part"
    mv "$file.part" "$file"
    # Goals of speed are shown; what is promised must hold.
    if grep -q 'BROKEN' "$file"; then
        echo "a promise does not hold: see $file" >&2
        exit 1
    fi
}

case "${1:-both}" in
    build) build ;;
    run) run ;;
    both) build && run ;;
    *)
        echo "usage: gpu-check.sh [build|run]" >&2
        exit 2
        ;;
esac
