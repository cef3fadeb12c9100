#!/usr/bin/env python3
"""Checks the layers of the workspace: cli, py -> apps -> polypath, sim -> proto; virtual -> polypath, sim;
fleet -> sim; preload, supervise, c -> sockets -> ports -> polypath; cli -> ports.

Reads `cargo tree` and fails if a crate of the workspace depends on one that it must not depend on, if
polypath-proto links crates other than those listed here (no sockets, no clock, no async
runtime), if polypath-sim without its emulator depends on a crate with sockets, if ns-2's sender is part of a
build for sockets or mentioned outside of its folder and the file that registers it, or if a procedure of an
association's owner names the association itself.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Crates of the workspace that each may depend on, directly or indirectly.
WORKSPACE = {
    "polypath-proto": set(),
    "polypath-sim": {"polypath-proto"},
    "polypath-fleet": {"polypath-proto", "polypath-sim"},
    "polypath-dtls": {"polypath-proto"},
    "polypath": {"polypath-proto", "polypath-dtls"},
    "polypath-apps": {"polypath-proto", "polypath-dtls", "polypath"},
    "polypath-ports": {"polypath-proto", "polypath-dtls", "polypath"},
    "polypath-sockets": {"polypath-proto", "polypath-dtls", "polypath", "polypath-ports"},
    "polypath-preload": {"polypath-proto", "polypath-dtls", "polypath", "polypath-ports",
                 "polypath-sockets"},
    "polypath-c": {"polypath-proto", "polypath-dtls", "polypath", "polypath-ports",
                 "polypath-sockets"},
    "polypath-supervise": {"polypath-proto", "polypath-dtls", "polypath", "polypath-ports",
                 "polypath-sockets"},
    "polypath-virtual": {"polypath-proto", "polypath-dtls", "polypath-sim", "polypath"},
    "polypath-cli": {"polypath-proto", "polypath-dtls", "polypath-sim", "polypath", "polypath-ports",
                     "polypath-apps"},
    "polypath-py": {"polypath-proto", "polypath-dtls", "polypath-sim", "polypath", "polypath-apps"},
    # Tests.
    "polypath-proto-tests": {"polypath-proto"},
    # An example.
    "own-policy": {"polypath-proto", "polypath-dtls", "polypath-sim", "polypath", "polypath-ports",
                   "polypath-apps", "polypath-cli"},
}

# All crates that the core may link, including indirect dependencies: bytes, checksums, cookies, random
# numbers.
PROTO = {
    "bytes",
    "crc-fast", "spin", "generic-array",
    "hmac", "sha1", "sha2", "digest", "block-buffer", "crypto-common", "ctutils", "cmov", "cfg-if",
    "const-oid", "cpufeatures", "hybrid-array", "typenum", "libc",
    "rand_core", "rand_pcg",
    "thiserror",
}

# Crates that provide sockets, clocks, threads or randomness.
IO = {
    "tokio", "mio", "async-std", "smol", "async-io", "futures", "quinn-udp", "socket2", "rustix",
    "nix", "polling", "rayon", "crossbeam", "rand", "getrandom", "chrono", "time", "jiff",
    "instant", "web-time",
}


def dependencies(*arguments: str) -> set[str]:
    """Names of the crates that `cargo tree` lists, procedural macros left out."""
    tree = cargo("tree", "-e", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}",
                 *arguments)
    return set(re.findall(r"^(\S+) v", tree, re.MULTILINE))


def members() -> set[str]:
    """Names of the crates of the workspace."""
    return {package["name"] for package in
            json.loads(cargo("metadata", "--no-deps", "--format-version", "1"))["packages"]}


def features(crate: str, of: str) -> set[str]:
    """The features of a crate that a build of `crate` alone enables."""
    tree = cargo("tree", "-p", crate, "-e", "normal", "--prefix", "none", "--format", "{p}|{f}")
    return set(",".join(re.findall(rf"^{of} v[^|]*\|([\w,-]*)", tree, re.MULTILINE)).split(","))


def mentions() -> list[Path]:
    """Files of the core that mention ns-2, besides those of its sender and the file that registers it."""
    core = ROOT / "crates/polypath-proto/src"
    procedures = core / "association/procedures"
    return [path.relative_to(ROOT) for path in sorted(core.rglob("*.rs"))
            if procedures / "ns2" not in path.parents and path != procedures / "mod.rs"
            and re.search(r"ns.?2", path.read_text(), re.IGNORECASE)]


# Files in which the association dispatches: packets, timers and calls, and the transitions of its state.
DISPATCH = {"mod.rs", "adjust.rs", "calls.rs", "received.rs", "transmit.rs", "timers.rs", "icmp.rs", "invariants.rs",
            "state.rs", "connect.rs", "collision.rs", "shutdown.rs", "undelivered.rs"}


def reaching_back() -> list[Path]:
    """Files of the association's owners that name `Association`."""
    folder = ROOT / "crates/polypath-proto/src/association"
    found = []
    for path in sorted(folder.rglob("*.rs")):
        code = re.sub(r"//.*", "", path.read_text())
        if path.relative_to(folder).as_posix() not in DISPATCH and re.search(r"\bAssociation\b", code):
            found.append(path.relative_to(ROOT))
    return found


def cargo(*words: str) -> str:
    """Output of cargo."""
    command = [os.environ.get("CARGO", "cargo"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"check-layers: {' '.join(command)} failed:\n{done.stderr.rstrip()}")
    return done.stdout


# Crates of the workspace that each may name in its own manifest, where not all of the above are allowed:
# the applications and C's sockets use the public interface of the crate for tokio alone, and the two libraries and the
# program with these sockets have nothing but functions of C.
DIRECT = {"polypath-apps": {"polypath"}, "polypath-ports": {"polypath"},
          "polypath-sockets": {"polypath", "polypath-ports"}, "polypath-preload": {"polypath-sockets"},
          "polypath-c": {"polypath-sockets"}, "polypath-supervise": {"polypath-sockets"}}


def direct(crate: str) -> set[str]:
    """Crates of the workspace that the manifest of `crate` names, for other uses than its tests."""
    packages = json.loads(cargo("metadata", "--no-deps", "--format-version", "1"))["packages"]
    (package,) = (package for package in packages if package["name"] == crate)
    return {found["name"] for found in package["dependencies"] if found["kind"] != "dev"} & set(WORKSPACE)


def main() -> None:
    wrong = []
    for crate, known in DIRECT.items():
        for other in sorted(direct(crate) - known):
            wrong.append(f"{crate} must not name {other} in its manifest")
    for crate in sorted(members()):
        if crate not in WORKSPACE:
            wrong.append(f"{crate} has no place in the list of scripts/check-layers.py")
            continue
        known = WORKSPACE[crate]
        found = dependencies("-p", crate) - {crate}
        for other in sorted(found & set(WORKSPACE) - known):
            wrong.append(f"{crate} must not depend on {other}")
        if crate == "polypath-proto":
            for other in sorted(found - PROTO - set(WORKSPACE)):
                wrong.append(f"{crate} depends on {other}, which is not on the list in scripts/check-layers.py")
    # Only the simulator, and what is built on it, has ns-2's sender.
    for crate, has in (("polypath", False), ("polypath-apps", False), ("polypath-sim", True)):
        if ("ns2" in features(crate, "polypath-proto")) != has:
            wrong.append(f"{crate} must {'' if has else 'not '}enable the feature ns2 of polypath-proto")
    wrong += [f"{path} mentions ns-2: it belongs to the folder procedures/ns2" for path in mentions()]
    wrong += [f"{path} names Association: an owner receives what it needs as arguments" for path in reaching_back()]
    pure = dependencies("-p", "polypath-sim", "--no-default-features")
    for other in sorted(pure & IO):
        wrong.append(f"polypath-sim without its emulator depends on {other}")
    for line in wrong:
        print(f"check-layers: {line}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    print("check-layers: arrows only point down")


if __name__ == "__main__":
    main()
