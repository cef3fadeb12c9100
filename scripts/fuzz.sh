#!/bin/bash
# Runs the fuzz targets at once for this number of seconds, each from its seeds and from what it has found before, with libFuzzer
# on the stable toolchain. Fails if one of them finds something, and says how to replay it.
#   scripts/fuzz.sh [SECONDS [TARGET...]]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-30}
[ $# -eq 0 ] || shift
targets=$*
[ -n "$targets" ] || targets=$(basename -s .rs fuzz/fuzz_targets/*.rs)

# Megabytes, of which each takes about forty; seconds for one input, on a machine that has other things to do.
limits="-rss_limit_mb=512 -timeout=300"

if ! command -v c++ >/dev/null; then
    echo "skipped: fuzz targets (no c++, with which libFuzzer is compiled: scripts/setup.sh test)"
    [ "${CI:-}" != true ]
    exit
fi
# The compiler counts which edges are taken and shows libFuzzer what is compared. With a target of its own,
# build scripts and procedural macros are left as they are.
host=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing -Cpasses=sancov-module"
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags="$flags -Cllvm-args=-sanitizer-coverage-$option"
done
directory=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
locked=
[ "${CI:-}" != true ] || locked=--locked
RUSTFLAGS=$flags cargo build --release $locked --manifest-path fuzz/Cargo.toml --target "$host" --target-dir "$directory"

logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$logs"' EXIT
mkdir -p fuzz/artifacts
declare -A running
for target in $targets; do
    mkdir -p "fuzz/corpus/$target"
    # shellcheck disable=SC2086
    "$directory/$host/release/$target" "fuzz/corpus/$target" "fuzz/seeds/$target" $limits \
        -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$target-" \
        >"$logs/$target" 2>&1 &
    running[$target]=$!
done

failed=0
for target in $targets; do
    if wait "${running[$target]}"; then
        echo "fuzz: $target: $(sed -n 's/^Done //p' "$logs/$target")," \
            "$(grep -o 'cov: .* corp: [^ ]*' "$logs/$target" | tail -n 1)"
    else
        failed=1
        sed '/^#[0-9]/d; /NEW_FUNC/d; /^WARNING: Failed to find/d' "$logs/$target" | tail -n 60
        input=$(sed -n 's/.*Test unit written to //p' "$logs/$target" | tail -n 1)
        echo "fuzz: $target has found something; once more: $directory/$host/release/$target $input" >&2
    fi
done
exit $failed
