"""Runs the `polypath` program as a process: starting, waiting, ending, output."""

import contextlib
import dataclasses
import hashlib
import json
import os
import random
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIOS = ROOT / "scenarios"
# The code phrase that senders and receivers of the tests share.
CODE = Path(__file__).parent / "code-phrase"


def target() -> Path:
    """Cargo's target directory."""
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target")


def binary() -> str:
    """The program under test: $POLYPATH, or the one that `cargo build` has built."""
    path = Path(os.environ.get("POLYPATH", target() / "debug" / "polypath"))
    assert path.exists(), f"{path} is not there: cargo build"
    return str(path)


def tuning(**constants: object) -> list[str]:
    """--config for each of these constants."""
    return [word for key, value in constants.items() for word in ("--config", f"{key}={value}")]


# Failed and restored paths are detected within a second.
BRISK = tuning(rto_initial="400ms", rto_min="200ms", rto_max="1s", path_max_retrans=1,
               heartbeat_interval="500ms")


# Everything takes longer on a busy machine. Timeouts are for an idle one, times this: a wait that succeeds is
# not delayed by it.
BUSY = 4


def consent(command: object) -> list[str]:
    """Options of `polypath send` and `recv` where no person takes part."""
    patience = {"send": "--retry", "recv": "--resume-wait"}.get(command)
    return ["--code-file", str(CODE), patience, "0"] if patience else []


# Lines on stderr that are not errors: addresses, encryption, and progress.
NEWS = ("waiting on ", "code phrase ", "encrypted, ", "connected with ", "in clear", "file: ", "  path ", "* path ")
IS_NEW = " is new: its fingerprint, "


@dataclasses.dataclass
class Ended:
    """Exit status and output of a process."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def json(self) -> dict:
        assert self.code == 0, f"exit {self.code}: {self.err}"
        return json.loads(self.out)

    def complains(self, *words: str, code: int = 1, within: float = 30.0) -> str:
        """Check that the process failed with one line of error, and at most a hint, in time (seconds, on an
        idle machine: longer means waiting for a timeout that should not have been needed); return the
        line."""
        assert self.code == code, f"exit {self.code}, not {code}: {self.out}{self.err}"
        lines = self.err.splitlines()
        while lines and (lines[0].startswith(NEWS) or IS_NEW in lines[0]):
            lines.pop(0)
        assert lines, "nothing on stderr"
        assert lines[0].startswith("polypath: "), self.err
        assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: ")), self.err
        for word in words:
            assert word in self.err, f"{word!r} is not in: {self.err}"
        assert self.seconds < BUSY * within, f"{self.seconds} s"
        return lines[0]


class Process:
    """A process with its output in files."""

    def __init__(self, words: list[str], folder: Path, number: int, **kwargs):
        self.words = words
        self.out_path = folder / f"process-{number}.out"
        self.err_path = folder / f"process-{number}.err"
        self.started = time.monotonic()
        with self.out_path.open("wb") as out, self.err_path.open("wb") as err:
            kwargs.setdefault("stdin", subprocess.DEVNULL)
            self.popen = subprocess.Popen(words, stdout=out, stderr=err, **kwargs)

    @property
    def out(self) -> str:
        return self.out_path.read_text(errors="replace")

    @property
    def err(self) -> str:
        return self.err_path.read_text()

    def said(self, text: str, timeout: float = 15.0) -> "Process":
        """Wait until the process has written this, and the rest of its line: stderr is written piece by
        piece."""
        def complete(output: str) -> bool:
            return text in output and "\n" in output[output.index(text) + len(text.rstrip("\n")):]

        wait_until(lambda: complete(self.err) or complete(self.out), timeout,
                   lambda: f"{self.words} has not said {text!r}: {self.out}{self.err}",
                   alive=self.popen)
        return self

    def say(self, line: str) -> None:
        """Write a line to its standard input."""
        self.popen.stdin.write(line.encode() + b"\n")
        self.popen.stdin.flush()

    def wait(self, timeout: float = 60.0) -> Ended:
        """Wait for its end."""
        try:
            code = self.popen.wait(BUSY * timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise AssertionError(
                f"{self.words} has not ended in {BUSY * timeout} s: {self.out}{self.err}") from None
        return Ended(code, self.out, self.err, time.monotonic() - self.started)

    def stop(self) -> None:
        """End it, whatever it is doing."""
        if self.popen.stdin:
            self.popen.stdin.close()
        if self.popen.poll() is not None:
            return
        self.popen.terminate()
        try:
            self.popen.wait(5)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class Processes:
    """All processes of a test; all are stopped at its end."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.all: list[Process] = []

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_) -> None:
        for process in reversed(self.all):
            process.stop()

    def start(self, *words: object, inside: list[str] = (), **kwargs) -> Process:
        """Start a program; `inside` is a command prefix, such as that of a namespace."""
        line = [*inside, *map(str, words)]
        process = Process(line, self.folder, len(self.all), **kwargs)
        self.all.append(process)
        return process

    def polypath(self, *words: object, inside: list[str] = (), **kwargs) -> Process:
        """Start the program under test. A sender and a receiver share a code phrase, and neither waits for a
        peer that it has lost."""
        return self.start(binary(), *words, *consent(words[0]), inside=inside, **kwargs)


def wait_until(condition, timeout: float, complaint, alive: subprocess.Popen | None = None) -> None:
    """Wait until the condition holds; fail with the complaint after the timeout (seconds, on an idle
    machine)."""
    end = time.monotonic() + BUSY * timeout
    while not condition():
        ended = alive is not None and alive.poll() is not None and not condition()
        if ended or time.monotonic() > end:
            raise AssertionError(complaint() if callable(complaint) else complaint)
        time.sleep(0.02)


def arrived(folder: Path) -> int:
    """Bytes of the files below a folder, complete or not. A file may get its final name meanwhile: then look
    again, so that it is counted once."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            paths = [path for path in folder.rglob("*") if not path.is_symlink()]
            return sum(path.lstat().st_size for path in paths if not path.is_dir())


def make_file(path: Path, size: int, seed: int = 1) -> str:
    """Create a file of random bytes; return its SHA-256."""
    content = random.Random(seed).randbytes(size)
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def sha256(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def changes(summary: dict, path: int) -> list[str]:
    """Changes of a path, in order, from a summary of `--json`."""
    return [change["change"] for change in summary["changes"] if change["path"] == path]
