"""Questions to a person: `polypath send` at a terminal."""

import os
import pty
import re
import subprocess
import time

import pytest

from support.program import BUSY, binary, make_file, sha256

# Loopback addresses used only by these tests, and only by this worker.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
LOCAL = f"127.0.100.{1 + WORKER}"


class Terminal:
    """`polypath send` at a pseudo-terminal."""

    def __init__(self, *words: object, settings):
        self.end, inner = pty.openpty()
        self.text = ""
        self.popen = subprocess.Popen(
            [binary(), "send", *map(str, words), "--quiet"], stdin=inner, stderr=inner, stdout=subprocess.DEVNULL,
            env={**os.environ, "XDG_CONFIG_HOME": str(settings)})
        os.close(inner)

    def asked(self, question: str) -> None:
        """Wait for a question."""
        limit = time.monotonic() + 15 * BUSY
        while question not in self.text:
            assert time.monotonic() < limit, self.text
            try:
                self.text += os.read(self.end, 4096).decode(errors="replace")
            except OSError:
                raise AssertionError(f"it has ended: {self.text}") from None

    def types(self, line: str) -> None:
        os.write(self.end, line.encode() + b"\n")

    def ends(self) -> int:
        code = self.popen.wait(15 * BUSY)
        try:
            while more := os.read(self.end, 4096):
                self.text += more.decode(errors="replace")
        except OSError:
            pass
        os.close(self.end)
        return code


@pytest.fixture
def receiver(processes, tmp_path):
    """A receiver with a phrase that it makes up, or with other options."""
    make_file(tmp_path / "file", 100_000)
    (tmp_path / "out").mkdir()

    def run(*words: object):
        process = processes.start(binary(), "recv", "--bind", LOCAL, "-u", "0", "-o", tmp_path / "out", *words)
        port = re.search(r"UDP port (\d+)", process.said("encrypted, ").err)[1]
        return process, f"{LOCAL}:{port}"
    return run


def test_the_phrase_is_asked_for_and_proves_the_host(receiver, tmp_path):
    process, to = receiver()
    phrase = process.said("code phrase ").err.rpartition("code phrase ")[2].strip()
    consonant, vowel = "[bdfghjklmnprstvz]", "[aiou]"
    word = 2 * (consonant + vowel) + consonant
    assert re.fullmatch(f"{word}-{word}-{word}", phrase), phrase
    terminal = Terminal(tmp_path / "file", to, settings=tmp_path / "here")
    terminal.asked("code phrase printed on ")
    # As a person types it.
    terminal.types(f" {phrase.upper().replace('-', ' ')} ")
    assert terminal.ends() == 0, terminal.text
    assert sha256(tmp_path / "out" / "file") == sha256(tmp_path / "file")
    assert process.wait().code == 0
    assert LOCAL in (tmp_path / "here" / "polypath" / "known_hosts").read_text()


def test_a_wrong_phrase(receiver, tmp_path):
    process, to = receiver()
    terminal = Terminal(tmp_path / "file", to, settings=tmp_path / "here")
    terminal.asked("code phrase printed on ")
    terminal.types("lusab-babad-gutih")
    assert terminal.ends() == 1
    assert "the code phrase is wrong" in terminal.text
    assert process.popen.poll() is None
    assert list((tmp_path / "out").iterdir()) == []
    assert not (tmp_path / "here" / "polypath" / "known_hosts").exists()


@pytest.mark.parametrize("reply, code", [("yes", 0), ("no", 1), ("maybe", 1)])
def test_a_new_host_that_proves_nothing(receiver, tmp_path, reply, code):
    """The receiver accepts anyone, so that the person has to compare the fingerprint."""
    process, to = receiver("--anyone", "--forever")
    fingerprint = re.search(r"fingerprint (\S+)", process.err)[1]
    terminal = Terminal(tmp_path / "file", to, settings=tmp_path / "here")
    terminal.asked(f"print the fingerprint {fingerprint} itself? (yes/no)")
    terminal.types(reply)
    assert terminal.ends() == code, terminal.text
    assert (tmp_path / "out" / "file").exists() == (code == 0)
    if code == 0:
        # Known from now on, under each of its names.
        again = Terminal(tmp_path / "file", to, "--as", "again", settings=tmp_path / "here")
        assert again.ends() == 0, again.text
