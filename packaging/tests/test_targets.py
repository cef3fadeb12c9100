"""What compiles for other systems, in a clean root file system of Debian unstable, which has a current Rust.

`cargo check` reads all Rust and links nothing. It takes the standard library from its sources (-Zbuild-std). The C
files of ring are compiled for Windows; for macOS they are not, because the SDK of Apple is missing. docs/install.md
has the results.
"""

import re
import tomllib

import pytest

from conftest import ROOT, clean_root

#: Crates that compile for a target.
TARGETS = {
    "x86_64-pc-windows-gnu": ["polypath-proto", "polypath-dtls", "polypath-sim"],
    "aarch64-apple-darwin": ["polypath-proto", "polypath-dtls", "polypath-sim", "polypath", "polypath-apps",
                             "polypath-cli"],
}


@pytest.mark.parametrize("target", TARGETS)
def test_the_crates_compile(target, tmp_path):
    page = (ROOT / "docs" / "install.md").read_text()
    with clean_root("sid", tmp_path) as root:
        windows = target.endswith("windows-gnu")
        root.install("cargo", "rustc", "rust-src", "gcc", "libc6-dev", *["gcc-mingw-w64-x86-64"] * windows)
        root.copy_sources("/home/newcomer/polypath")
        wanted = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
        (found,) = re.findall(r"rustc (\d+\.\d+)", root.run("rustc --version").out)
        assert [*map(int, found.split("."))] >= [*map(int, wanted.split("."))]
        root.environment = {"CARGO_PROFILE_DEV_OPT_LEVEL": "0", "RUSTC_BOOTSTRAP": "1"}
        if not windows:
            # The build script of ring gets a compiler and an archiver that do nothing.
            root.environment |= {"CC_aarch64_apple_darwin": "true", "AR_aarch64_apple_darwin": "true", "SDKROOT": "/"}
        for crate in TARGETS[target]:
            features = " --no-default-features" if crate == "polypath-sim" and windows else ""
            root.run(f"cd polypath && cargo check -q --locked -Zbuild-std --target {target} -p {crate}{features}",
                     network=True)
            assert f"`{crate}`" in page
