#!/bin/bash
# Makes a machine ready: system packages where it may install them (apt, as root), components of the
# Rust toolchain, virtual environments for the Python tests. Only what is missing; at once if nothing is.
#
#   scripts/setup.sh build|check|test|bench|package|site|programs
#
# Says in one line each what is missing and what is skipped because of it. With CI=true a skip is a
# failure.
set -eu
cd "$(dirname "$0")/.."
purpose=${1:-test}
PATH=$PATH:/usr/sbin:/sbin
skips=0

case $purpose in
build | check | test | bench | package | site | programs) ;;
*)
    echo "usage: $0 build|check|test|bench|package|site|programs" >&2
    exit 2
    ;;
esac

say() { echo "setup: $*" >&2; }
skip() { say "$1; skipped: $2"; skips=$((skips + 1)); }
has() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ]; }

# What a purpose needs: a line each of "package|how to see that it is there|what is skipped without".
needs() {
    echo "gcc|has cc|everything (Rust needs a linker)"
    echo "libc6-dev|has_header stdlib.h|everything (Rust needs a linker)"
    if [ "$purpose" = test ] || [ "$purpose" = programs ]; then
        echo "iproute2|has ip && has tc|tests in network namespaces"
        echo "ethtool|has ethtool|tests in network namespaces"
        echo "tshark|has tshark|tests of captures"
        echo "ns2|has ns|tests next to ns-2"
        echo "python3-venv|has_venv|end-to-end tests"
        echo "nftables|has nft|tests with other SCTP stacks"
        echo "libusrsctp-dev|has_header usrsctp.h|tests with usrsctp"
        echo "libsctp-dev|has_header netinet/sctp.h|tests with the Linux kernel's SCTP"
        echo "user-mode-linux|has linux.uml|tests with the Linux kernel's SCTP"
        echo "kmod|has insmod|tests with the Linux kernel's SCTP"
        echo "procps|has sysctl|tests with the Linux kernel's SCTP"
        echo "golang-go|has go|tests with pion"
        echo "g++|has_cxx|fuzz targets and tests of the C library"
        echo "binutils|has objcopy|tests of the C library"
        echo "make|has make|tests of the C library"
        echo "pkg-config|has pkg-config|tests of the C library"
        echo "openssl|has openssl|tests with OpenSSL"
        echo "openssh-client|has ssh|tests of forwarding with ssh"
        echo "openssh-server|has sshd|tests of forwarding with ssh"
        echo "rsync|has rsync|tests of forwarding with rsync"
        echo "curl|has curl|tests of forwarding with curl"
        echo "iperf3|has iperf3|tests of polypath run with iperf3"
        echo "ncat|has ncat|tests of polypath run with ncat"
        echo "socat|has socat|tests of polypath run with socat"
        echo "lksctp-tools|has sctp_test|tests of polypath run with sctp_test and sctp_darn"
        echo "groff-base|has groff|tests of man pages"
    fi
    if [ "$purpose" = programs ]; then
        echo "netperfmeter|has netperfmeter|tests of polypath run with netperfmeter"
        echo "erlang-base|has erl|tests of polypath run with Erlang"
        echo "openjdk-17-jdk-headless|has javac|tests of polypath run with Java"
        echo "freediameterd|has freeDiameterd|tests of polypath run with freeDiameter"
        echo "freediameter-extensions|has_freediameter_extensions|tests of polypath run with freeDiameter"
        echo "kamailio|has kamailio|tests of polypath run with kamailio"
        echo "kamailio-sctp-modules|has_kamailio_sctp|tests of polypath run with kamailio"
        echo "osmo-stp|has osmo-stp|tests of polypath run with osmo-stp"
        echo "nextepc-mme|has nextepc-mmed|tests of polypath run with nextepc-mme"
    fi
    if [ "$purpose" = package ]; then
        echo "debootstrap|has debootstrap|clean root file systems"
        echo "iproute2|has ip|clean root file systems"
        echo "musl-tools|has musl-gcc|the static program"
        echo "buildah|has buildah|the container"
    fi
    if [ "$purpose" = site ]; then
        echo "chromium|has chromium|the site in a browser"
    fi
    if [ "$purpose" = bench ]; then
        echo "ns2|has ns|the simulator next to ns-2"
        echo "libusrsctp-dev|has_header usrsctp.h|loopback next to usrsctp"
    fi
}
has_header() { has cc && echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1; }
has_cxx() { echo "#include <string>" | c++ -fsyntax-only -x c++ - 2>/dev/null; }
has_freediameter_extensions() { [ -e /usr/lib/freeDiameter/dbg_msg_dumps.fdx ]; }
has_kamailio_sctp() { ls /usr/lib/*/kamailio/modules/sctp.so >/dev/null 2>&1; }
has_venv() { [ -x .venv/bin/python ] || python3 -c 'import ensurepip, venv' >/dev/null 2>&1; }

# The packages of servers must not start them: apt-get asks this program, until setup.sh ends.
no_services() {
    local policy=/usr/sbin/policy-rc.d
    [ ! -e $policy ] || return 0
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
}

packages() {
    local missing=() package there
    while IFS='|' read -r package there _; do
        eval "$there" || missing+=("$package")
    done < <(needs)
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! is_root; then
        say "not root, so nothing is installed; by hand: apt-get install ${missing[*]}"
    elif ! has apt-get; then
        say "no apt-get here, so nothing is installed; missing: ${missing[*]}"
    else
        say "installing ${missing[*]}"
        local log
        log=$(mktemp)
        [ "$purpose" != programs ] || no_services
        apt-get update >"$log" 2>&1 </dev/null || true
        # One that is not to be had does not keep the others away.
        for package in "${missing[@]}"; do
            DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" \
                >>"$log" 2>&1 </dev/null || say "apt-get: $(grep '^E:' "$log" | tail -n 1 || true)"
        done
        rm -f "$log"
    fi
    while IFS='|' read -r package there without; do
        eval "$there" || skip "$package is missing" "$without"
    done < <(needs)
}

rust() {
    if ! has cargo; then
        say "cargo is missing: see https://rustup.rs"
        exit 1
    fi
    # Debian's is older; cargo would only say that it does not know the edition.
    local has wanted
    has=$(cargo --version | cut -d ' ' -f 2)
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    if [ "$(printf '%s\n' "$wanted" "$has" | sort -V | head -n 1)" != "$wanted" ]; then
        say "cargo is too old ($has, not $wanted or later): see https://rustup.rs, or rustup update"
        exit 1
    fi
    [ "$purpose" = check ] || [ "$purpose" = test ] || return 0
    local component
    for component in fmt clippy; do
        cargo $component --version >/dev/null 2>&1 && continue
        has rustup && rustup component add ${component/fmt/rustfmt} >/dev/null 2>&1 && continue
        say "cargo $component is missing: rustup component add ${component/fmt/rustfmt}"
        exit 1
    done
}

# environment FOLDER WITHOUT REQUIREMENTS...: a virtual environment that holds a copy of the
# requirements it was made from.
environment() {
    local folder=$1 without=$2
    shift 2
    cat "$@" | cmp -s - "$folder/requirements.txt" && "$folder/bin/python" -c 'import pytest' 2>/dev/null && return 0
    has_venv || return 0 # reported above
    say "making $folder for $without"
    local log
    log=$(mktemp)
    if python3 -m venv "$folder" >"$log" 2>&1 &&
        "$folder/bin/python" -m pip install -q --disable-pip-version-check "${@/#/-r}" >"$log" 2>&1; then
        cat "$@" >"$folder/requirements.txt"
    else
        # Half an environment would be taken for a whole one.
        rm -rf "$folder"
        skip "the packages of $* cannot be installed ($(tail -n 1 "$log"))" "$without"
    fi
    rm -f "$log"
}

environments() {
    [ "$purpose" = test ] || [ "$purpose" = package ] || [ "$purpose" = programs ] || return 0
    environment .venv "end-to-end tests" tests/requirements.txt
    [ "$purpose" != programs ] || return 0
    environment .venv-lab "tests of the Python package" python/requirements-build.txt python/requirements-test.txt
}

# The packages in Go of the peer on pion; `go` fetches them once and checks them against go.sum.
modules() {
    [ "$purpose" = test ] && has go || return 0
    local log
    log=$(mktemp)
    (cd tests/interop/pion && go mod download) >"$log" 2>&1 ||
        skip "pion cannot be fetched ($(tail -n 1 "$log"))" "tests with pion"
    rm -f "$log"
}

# Whether the tests that need privileges can run.
privileges() {
    [ "$purpose" = test ] || [ "$purpose" = programs ] || return 0
    if ! is_root; then
        skip "not root" "tests in network namespaces, tests that capture on loopback"
        return 0
    fi
    has ip || return 0 # reported above
    local probe=polypath-probe-$$
    if ip netns add $probe 2>/dev/null; then
        ip netns del $probe
    else
        skip "network namespaces are not allowed here" "tests in network namespaces"
    fi
    [ -c /dev/net/tun ] || skip "no /dev/net/tun" "tests with the Linux kernel's SCTP"
}

packages
rust
environments
modules
privileges
if [ $skips -gt 0 ] && [ "${CI:-}" = true ]; then
    say "with CI=true a skip is a failure"
    exit 1
fi
