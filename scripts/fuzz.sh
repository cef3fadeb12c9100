#!/bin/bash
# Runs each fuzz target for so many seconds from its seeds.
#   scripts/fuzz.sh [SECONDS]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-30}

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: no nightly toolchain: rustup toolchain install nightly" >&2
    exit 1
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzz: no cargo-fuzz: cargo install cargo-fuzz" >&2
    exit 1
fi
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    mkdir -p "fuzz/corpus/$target" "fuzz/seeds/$target"
    echo "fuzz: $target for $seconds s"
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -print_final_stats=1
done
