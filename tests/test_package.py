"""Packages: what the crates upload, the Debian package, and the versions that the documentation states."""

import gzip
import io
import os
import re
import shlex
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from support.program import ROOT, binary

MANIFEST = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
CRATES = re.search(r"^CRATES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()


@pytest.fixture
def crates(tmp_path) -> Path:
    """The packages of all published crates."""
    target = tmp_path
    which = [word for crate in CRATES for word in ("-p", crate)]
    done = subprocess.run(["cargo", "package", "--no-verify", "--allow-dirty", "--offline", *which], cwd=ROOT,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    assert done.returncode == 0, done.stderr
    assert "warning: manifest has no" not in done.stderr
    return target / "package"


def test_the_crates_have_what_a_registry_shows(crates):
    for crate in CRATES:
        check_package(crates, crate)


def check_package(crates: Path, crate: str) -> None:
    with tarfile.open(crates / f"{crate}-{MANIFEST['version']}.crate") as package:
        files = {member.name.partition("/")[2]: member for member in package.getmembers()}
        manifest = tomllib.loads(package.extractfile(files["Cargo.toml"]).read().decode())
        licence = package.extractfile(files["LICENSE-MIT"]).read()
    assert licence == (ROOT / "LICENSE-MIT").read_bytes() and files["LICENSE-APACHE"].size > 10_000
    about = manifest["package"]
    assert about["license"] == "MIT OR Apache-2.0" and about["rust-version"] == MANIFEST["rust-version"]
    assert about["description"] and about["repository"] and about["keywords"] and about["categories"]
    assert about["readme"] in files
    # Dependencies of the workspace by version: a path means nothing to others.
    for name, wanted in manifest["dependencies"].items():
        assert "path" not in wanted, name
        assert not name.startswith("polypath") or wanted["version"] == MANIFEST["version"], name
    assert max(member.size for member in files.values()) < 1_000_000


def test_sources_read_no_file_outside_of_their_crate():
    """Such a file is not in the package, which would not compile."""
    for crate in CRATES:
        folder = ROOT / "crates" / crate
        for source in (folder / "src").rglob("*.rs"):
            for name in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', source.read_text()):
                assert (source.parent / name).resolve().is_relative_to(folder), f"{source}: {name}"


def test_the_oldest_rust_is_the_same_everywhere():
    version = MANIFEST["rust-version"]
    for page, pattern in (("README.md", r"Rust (\d\.\d+) or later"), ("docs/install.md", r"`rust-version`, (\d\.\d+)"),
                          ("python/README.md", r"toolchain \((\d\.\d+) or later"), ("Dockerfile", r"rust:(\d\.\d+)-")):
        assert re.findall(pattern, (ROOT / page).read_text()) == [version], page


@pytest.fixture
def package(tmp_path) -> Path:
    """The files of the Debian package, with the program under test."""
    folder = tmp_path
    made = subprocess.run([ROOT / "packaging" / "deb.sh", "--program", binary(), "--out", folder,
                           "--compress", "gzip"],
                          capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    file = made.stdout.strip()
    subprocess.run(["dpkg-deb", "--extract", file, folder / "root"], check=True)
    subprocess.run(["dpkg-deb", "--control", file, folder / "control"], check=True)
    # Owners and modes are in the archive.
    archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        assert all(member.uid == member.gid == 0 and not member.mode & 0o022 for member in files)
    return folder


@pytest.mark.needs("dpkg-deb", "strip", "readelf")
def test_the_debian_package(package):
    root = package / "root"
    ran = subprocess.run([root / "usr/bin/polypath", "--version"], capture_output=True, text=True, check=True)
    control = dict(line.split(": ", 1) for line in (package / "control" / "control").read_text().splitlines()
                   if ": " in line)
    assert ran.stdout == f"polypath {control['Version']}\n" == f"polypath {MANIFEST['version']}\n"
    assert re.fullmatch(r"libc6 \(>= 2\.\d+\), libgcc-s1", control["Depends"])
    # The library that `polypath run` preloads is found: without it the exit code is 1.
    preloaded = subprocess.run([root / "usr/bin/polypath", "run", "--", "true"], capture_output=True, text=True,
                               check=False)
    assert preloaded.returncode == 0, preloaded.stderr
    pages = {page.name for page in (root / "usr/share/man/man1").iterdir()}
    assert {"polypath.1.gz", "polypath-send.1.gz", "polypath-top.1.gz"} <= pages
    assert b"polypath" in gzip.decompress((root / "usr/share/man/man1/polypath.1.gz").read_bytes())
    for shell in ("bash-completion/completions/polypath", "zsh/vendor-completions/_polypath",
                  "fish/vendor_completions.d/polypath.fish"):
        assert "doctor" in (root / "usr/share" / shell).read_text()
    copyright_file = (root / "usr/share/doc/polypath/copyright").read_text()
    assert "Permission is hereby granted" in copyright_file and "Apache-2.0" in copyright_file
    # The units start what the program takes.
    units = sorted((root / "usr/lib/systemd/system").iterdir())
    assert len(units) == 3
    for unit in units:
        (command,) = re.findall(r"^ExecStart=/usr/bin/polypath (.*)$", unit.read_text(), re.MULTILINE)
        words = shlex.split(command.replace("%d", "/credentials").replace("$OPTIONS", "192.0.2.10 -D 1080"))
        done = subprocess.run([root / "usr/bin/polypath", *words, "--help"], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr
        assert "AF_UNIX" in unit.read_text() and "RuntimeDirectory=polypath" in unit.read_text()
