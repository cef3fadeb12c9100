"""Clean root file systems: Debian 12 and nothing else, in which the tests of this folder install polypath.

They take minutes and fetch packages, so `make test` does not run them: `make newcomer` and `make installations` do.
They need root, debootstrap, and the toolchain of this machine, which they show to the root file system read-only.
"""

import contextlib
import dataclasses
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import namespaces, program  # noqa: E402

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
MIRROR = "http://deb.debian.org/debian"
#: Files of this machine that a root file system needs to reach the network.
NETWORK_FILES = [Path("/etc/resolv.conf"), Path("/etc/hosts"), CERTIFICATES]


@dataclasses.dataclass
class Done:
    """A command that has ended, with its seconds on the clock and of processor time."""

    out: str
    seconds: float
    processor: float


class Root:
    """A root file system in a folder, with the user `newcomer`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.shown: list[tuple[Path, str]] = []
        self.environment: dict[str, str] = {}

    def show(self, path: Path, where: str) -> None:
        """Let commands read a folder or file of this machine."""
        target = self.folder / where.lstrip("/")
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        self.shown.append((path, where))

    def show_toolchain(self) -> None:
        """Rust of this machine, as if rustup had installed it."""
        sysroot = Path(subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True,
                                      check=True).stdout.strip()).resolve()
        self.show(sysroot, "/opt/rust")

    def words(self, command: str, *, user: str = "newcomer", network: bool = False,
              inside: list[str] = ()) -> list[str]:
        """The command line that runs a command of the shell in the root file system.

        It is alone in its process and mount namespaces. Without `network` it has a loopback interface only;
        `inside` is the prefix of a network namespace to run in.
        """
        setup = ["set -e", "mount --make-rprivate /", f"cd {shlex.quote(str(self.folder))}",
                 "mount -t proc proc proc", "mount --rbind /dev dev", "mount -t tmpfs tmpfs run"]
        if not network and not inside:
            setup.append("ip link set lo up")
        for path, where in self.shown:
            setup.append(f"mount --bind -o ro {shlex.quote(str(path))} .{shlex.quote(where)}")
        home = "/root" if user == "root" else f"/home/{user}"
        folders = [f"{home}/.cargo/bin", "/opt/rust/bin", "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin",
                   "/sbin", "/bin"]
        variables = {"HOME": home, "USER": user, "LANG": "C.UTF-8", "CARGO_TERM_COLOR": "never",
                     "PATH": ":".join(folders), **self.environment}
        if not network:
            variables |= {"CARGO_NET_OFFLINE": "true", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{home}/.downloads"}
        else:
            variables |= {"PIP_CERT": str(CERTIFICATES)}
        assignments = [f"{name}={value}" for name, value in variables.items()]
        setup.append(shlex.join(["exec", "chroot", f"--userspec={user}:{user}", ".", "env", "-i", *assignments,
                                 "bash", "-euc", f"cd && {command}"]))
        alone = [] if network or inside else ["--net"]
        return [*inside, "unshare", "--mount", "--pid", "--fork", "--kill-child", *alone, "sh", "-c", "\n".join(setup)]

    def run(self, command: str, *, timeout: float = 1800, **how) -> Done:
        """Run a command of the shell to its end; fail if it fails."""
        used, began = os.times(), time.monotonic()
        done = subprocess.run(self.words(command, **how), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=timeout)
        seconds, now = time.monotonic() - began, os.times()
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout[-6000:]}"
        processor = now.children_user + now.children_system - used.children_user - used.children_system
        return Done(done.stdout, seconds, processor)

    def install(self, *packages: str) -> Done:
        """Install packages of Debian. A mirror may be older than a suite such as sid allows."""
        return self.run("apt-get -qq -o Acquire::Check-Valid-Until=false update && "
                        "DEBIAN_FRONTEND=noninteractive apt-get -qq -y "
                        f"--no-install-recommends install {shlex.join(packages)}", user="root", network=True)

    def copy_sources(self, where: str) -> None:
        """The files that are committed here, in a folder of the newcomer."""
        folder = self.folder / where.lstrip("/")
        folder.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)
        self.run(f"chown -R newcomer:newcomer {shlex.quote(where)}", user="root")


def missing() -> str | None:
    """Why no root file system can be made here, if so."""
    if os.geteuid() != 0:
        return "not root"
    return next((f"no {name}" for name in ("debootstrap", "unshare", "chroot", "ip") if not shutil.which(name)), None)


def debian(suite: str) -> Path:
    """A folder with the smallest set of packages of a release of Debian, made once in target/clean."""
    if problem := missing():
        pytest.skip(problem)
    folder = program.target() / "clean" / suite
    if not (folder / "etc" / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, folder, MIRROR],
                       check=True, stdout=subprocess.DEVNULL)
        (folder / "etc" / "complete").touch()
    return folder


@contextlib.contextmanager
def clean_root(suite: str, folder: Path):
    """A copy of it in a folder, with the user `newcomer`."""
    folder = folder / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", debian(suite), folder], check=True)
    try:
        for file in NETWORK_FILES:
            if file.exists():
                shutil.copy(file, folder / file.relative_to("/"))
        made = Root(folder)
        made.run("useradd --create-home --shell /bin/bash newcomer", user="root")
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def root(tmp_path):
    """Debian 12."""
    with clean_root("bookworm", tmp_path) as made:
        yield made


@pytest.fixture
def repository(root) -> Root:
    """A root file system in which `git clone` of the project's address gives what is committed here."""
    subprocess.run(["git", "clone", "-q", "--bare", "--no-hardlinks", "--depth", "1", f"file://{ROOT}",
                    root.folder / "srv" / "polypath" / "polypath"], check=True)
    (root.folder / "etc" / "gitconfig").write_text(
        '[url "file:///srv/polypath/"]\n\tinsteadOf = https://github.com/polypath/\n[safe]\n\tdirectory = *\n')
    return root


@pytest.fixture
def hosts():
    """Two hosts (network namespaces) joined by two paths of 10 Mbit/s."""
    with namespaces.TwoHosts() as made:
        yield made


@pytest.fixture
def processes(tmp_path):
    """Starts processes and stops them at the end of the test."""
    with program.Processes(tmp_path) as started:
        yield started
