"""Every way to install polypath, from what is committed to a transfer or a figure in a clean root file system.

The programs are built here with few optimizations, because nothing is measured; `make newcomer` builds as users do.
With POLYPATH=FILE the Debian package has this program and the library next to it.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from conftest import CERTIFICATES, ROOT, Root, clean_root
from support import namespaces
from support.program import make_file, sha256, target

LAB = ROOT / ".venv-lab" / "bin"
BUILT = target().resolve() / "installations"
#: Cargo's release profile, quickly.
QUICK = {"CARGO_TARGET_DIR": str(BUILT), "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1", "CARGO_PROFILE_RELEASE_DEBUG": "0"}
MUSL = "x86_64-unknown-linux-musl"
#: The smallest figure of the lab.
FIGURE = "polypath-lab reproduce caro2006-retransmission 6 --quiet --out figure"


def build(*words: object, where: Path = ROOT) -> str:
    """Run a command on this machine that builds something; return its output."""
    done = subprocess.run([str(word) for word in words], cwd=where, env={**os.environ, **QUICK},
                          stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, words
    return done.stdout


def transfers(root: Root, processes, program: str, folder: str, **how) -> None:
    """A file from one process to another in the root file system, encrypted, over two loopback addresses."""
    place = root.folder / folder.lstrip("/")
    sent = make_file(place / "file", 3_000_000)
    with namespaces.Namespace() as host:
        receiver = processes.start(*root.words(
            f"cd {folder} && mkdir -p got && {program} recv --bind 127.0.0.1,127.0.0.2 -o got",
            inside=host.inside, **how))
        receiver.said("code phrase ")
        (phrase,) = re.findall(r"code phrase (\S+)", receiver.err)
        sender = processes.start(*root.words(
            f"cd {folder} && {program} send file 127.0.0.1 --via 127.0.0.2 --code {phrase} --json",
            inside=host.inside, **how))
        summary = sender.wait().json
        assert receiver.wait().code == 0, receiver.err
    assert summary["sha256"] == sent == sha256(place / "got" / "file")
    assert len(summary["paths"]) == 2


def test_the_debian_package(root, processes):
    given = [word for word in ("--program", os.environ.get("POLYPATH")) if os.environ.get("POLYPATH")]
    file = Path(build("packaging/deb.sh", *given, "--out", BUILT, "--compress", "gzip").split()[-1])
    shutil.copy(file, root.folder / "tmp")
    root.install(f"/tmp/{file.name}", "man-db", "bash", "systemd")
    assert root.run("polypath --version").out == f"polypath {file.name.split('_')[1]}\n"
    assert root.run("man -w polypath-send").out.strip() == "/usr/share/man/man1/polypath-send.1.gz"
    completed = root.run("source /usr/share/bash-completion/completions/polypath; complete -p polypath").out
    assert "polypath" in completed
    root.run("polypath run -- true")
    # The units are valid, are not enabled, and start a program that is there.
    checked = root.run("systemd-analyze verify /usr/lib/systemd/system/polypath-*.service || true", user="root").out
    assert [line for line in checked.splitlines() if "polypath" in line] == []
    assert root.run("find /etc/systemd -name 'polypath*'").out == ""
    transfers(root, processes, "polypath", "/home/newcomer")
    root.run("apt-get -qq -y purge polypath", user="root")
    assert root.run("find /etc /usr /opt /run /srv /var -name '*polypath*' -not -path '/var/lib/dpkg/*' "
                    "2>/dev/null || true").out == ""


def test_the_static_program(tmp_path, processes):
    """It runs where nothing else is."""
    build("cargo", "build", "--release", "--locked", "--target", MUSL, "-p", "polypath-cli")
    empty = tmp_path / "empty"
    for name in ("proc", "dev", "files"):
        (empty / name).mkdir(parents=True)
    shutil.copy(BUILT / MUSL / "release" / "polypath", empty / "polypath")
    alone(empty, processes)


def alone(folder: Path, processes) -> None:
    """/polypath transfers a file in a root file system that has nothing else."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert files == [folder / "polypath"], files
    sent = make_file(folder / "files" / "file", 3_000_000)
    with namespaces.Namespace() as host:
        def start(*words: str):
            bound = ["unshare", "--mount", "sh", "-c", 'mount --rbind /dev dev && exec "$@"', "sh"]
            return processes.start(*bound, "chroot", ".", "/polypath", *words, inside=host.inside, cwd=folder,
                                   env={"XDG_CONFIG_HOME": "/files/config"})

        receiver = start("recv", "--bind", "127.0.0.1,127.0.0.2", "-o", "/files/got").said("code phrase ")
        (phrase,) = re.findall(r"code phrase (\S+)", receiver.err)
        sender = start("send", "/files/file", "127.0.0.1", "--via", "127.0.0.2", "--code", phrase)
        assert sender.wait().code == 0, sender.err
        assert receiver.wait().code == 0, receiver.err
    assert sha256(folder / "files" / "got") == sent


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_the_wheel(suite, tmp_path_factory):
    """One abi3 wheel for Python 3.11 and later: here with those of Debian 12 and 13."""
    shutil.rmtree(BUILT / "wheels", ignore_errors=True)
    build(LAB / "maturin", "build", "--release", "--locked", "--out", BUILT / "wheels", where=ROOT / "python")
    (wheel,) = (BUILT / "wheels").glob("*.whl")
    assert "-cp311-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("_core.abi3.so") for name in names) and any(name.endswith("py.typed") for name in names)
    with clean_root(suite, tmp_path_factory.mktemp(suite)) as root:
        root.install("python3-venv")
        shutil.copy(wheel, root.folder / "tmp")
        root.run(f"python3 -m venv lab && lab/bin/pip install -q /tmp/{wheel.name}", network=True)
        draws(root)


def draws(root: Root) -> None:
    """The lab in ~/lab draws a figure, without a network."""
    root.run(f". lab/bin/activate && {FIGURE}")
    assert list(root.folder.glob("home/newcomer/figure/**/*.svg"))
    root.run("lab/bin/python -c 'import polypath.aio'")


def test_the_source_distribution(root):
    """It has all sources and the lock file: pip builds it offline, from crates and packages fetched before."""
    shutil.rmtree(BUILT / "sdist", ignore_errors=True)
    build(LAB / "maturin", "sdist", "--out", BUILT / "sdist", where=ROOT / "python")
    (file,) = (BUILT / "sdist").glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = archive.getnames()
    top = file.name.removesuffix(".tar.gz")
    assert {f"{top}/Cargo.lock", f"{top}/pyproject.toml", f"{top}/PKG-INFO"} <= set(names)
    root.install("python3-venv", "gcc", "libc6-dev")
    root.show_toolchain()
    shutil.copy(file, root.folder / "tmp")
    root.environment = {name: value for name, value in QUICK.items() if "PROFILE" in name}
    root.run(f"tar xf /tmp/{file.name} && cargo fetch -q --manifest-path {top}/Cargo.toml", network=True)
    # The workspace in it has fewer crates, so cargo shortens the lock file; the versions that are left are the same.
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    fetched = tomllib.loads((root.folder / "home" / "newcomer" / top / "Cargo.lock").read_text())["package"]
    versions = {(package["name"], package["version"], package.get("checksum")) for package in locked}
    assert {(package["name"], package["version"], package.get("checksum")) for package in fetched} <= versions
    root.run(f"rm -r {top}")
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    root.run(f"python3 -m venv lab && lab/bin/pip download -q -d ~/.downloads {shlex.join(wanted)}", network=True)
    root.run(f"lab/bin/pip install -q /tmp/{file.name}")
    draws(root)


def test_the_container(root, tmp_path, processes):
    """Builds Dockerfile as it is. A clean root file system with this machine's toolchain takes the place of its first
    image, and the musl target is there before `rustup target add`."""
    if not shutil.which("buildah"):
        pytest.skip("no buildah")
    sysroot = Path(subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True,
                                  check=True).stdout.strip()).resolve()
    assert (sysroot / "lib" / "rustlib" / MUSL).exists(), f"rustup target add {MUSL}"
    (base,) = re.findall(r"^FROM (rust:\S+) AS build$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    root.install("gcc", "libc6-dev")
    shutil.copytree(sysroot, root.folder / "usr" / "local", dirs_exist_ok=True, symlinks=True,
                    ignore=shutil.ignore_patterns("share", "doc", "html"))
    rustup = root.folder / "usr" / "local" / "bin" / "rustup"
    rustup.write_text(f'#!/bin/sh\ntest "$*" = "target add {MUSL}" && test -d /usr/local/lib/rustlib/{MUSL}\n')
    rustup.chmod(0o755)
    store = ["buildah", "--root", tmp_path / "store", "--runroot", tmp_path / "run", "--storage-driver", "vfs"]

    def buildah(*words: object) -> str:
        done = subprocess.run([*map(str, store), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, cwd=ROOT, env={**os.environ, "BUILDAH_ISOLATION": "chroot"})
        assert done.returncode == 0, done.stdout[-4000:]
        return done.stdout

    container = buildah("from", "scratch").split()[-1]
    buildah("add", "-q", container, root.folder, "/")
    buildah("commit", "-q", "--rm", container, f"docker.io/library/{base}")
    variables = [word for name, value in QUICK.items() if "PROFILE" in name for word in ("--env", f"{name}={value}")]
    buildah("bud", "--pull-never", "--network", "host", "--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro", *variables,
            "-t", "polypath", ".")
    about = json.loads(buildah("inspect", "--type", "image", "polypath"))["OCIv1"]["config"]
    assert about["Entrypoint"] == ["/polypath"] and about["WorkingDir"] == "/files"
    assert set(about["Volumes"]) == {"/config", "/files"} and set(about["ExposedPorts"]) == {"9899/udp"}
    container = buildah("from", "--pull-never", "polypath").split()[-1]
    image = tmp_path / "image"
    shutil.copytree(buildah("mount", container).split()[-1], image)
    for name in ("proc", "dev", "files"):
        (image / name).mkdir(exist_ok=True)
    alone(image, processes)
