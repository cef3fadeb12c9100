"""What a sender cannot do to a receiver: one attack for each way. The attacker is
`crates/polypath-apps/examples/attacker.rs`."""

import json
import os
import re
import time

import pytest

from support.program import CODE, make_file, sha256, target, wait_until

# Loopback addresses used only by these tests, and only by this worker.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
LOCAL, ATTACKER, FRIEND = (f"127.0.92.{3 * WORKER + n}" for n in (1, 2, 3))
# Others are delayed by less than this.
DELAY = 5


@pytest.fixture
def place(tmp_path):
    """The receiver's folder, inside of one that must stay as it is."""
    (tmp_path / "target" / "inside").mkdir(parents=True)
    (tmp_path / "target" / "precious").write_text("old")
    make_file(tmp_path / "file", 1_000_000)
    return tmp_path / "target" / "inside"


@pytest.fixture
def receiver(processes, place):
    """A receiver that accepts anyone; returns its process and its UDP port."""
    def run(*words: object, consent: tuple = ("--plain", "--anyone")):
        process = processes.start(
            os.environ.get("POLYPATH", target() / "debug" / "polypath"), "recv", "--forever", "--bind", LOCAL,
            "-u", "0", "-o", place, *consent, *words).said("waiting on")
        return process, re.search(r"UDP port (\d+)", process.err)[1]
    return run


@pytest.fixture
def attack(processes):
    """Starts an attack."""
    def run(port: str, *words: object):
        return processes.start(target() / "debug" / "examples" / "attacker", ATTACKER, f"{LOCAL}:{port}", *words)
    return run


def a_friend_sends(processes, place, port: str, name: str = "friend") -> None:
    """Another sender is not delayed."""
    began = time.monotonic()
    sent = processes.polypath("send", place.parent.parent / "file", f"{LOCAL}:{port}", "--plain", "--as", name,
                              "--bind", FRIEND).wait()
    assert sent.code == 0, sent.err
    assert time.monotonic() - began < DELAY
    assert sha256(place / name) == sha256(place.parent.parent / "file")


def entry(path: list[str], kind: object = None) -> str:
    return json.dumps({"id": 0, "path": path, "kind": kind or {"file": 3}, "mode": 0o777, "modified": None})


@pytest.mark.parametrize("path", [
    [".bashrc"], [".ssh", "authorized_keys"], ["..", "precious"], ["../precious"], ["/etc/passwd"], [""], ["."], [],
    ["a\nb"], ["\x1b[2J"], ["gpj.\u202eexe"], ["x" * 256], ["a"] * 65, ["out", "file"],
    [".x.0123456789ab.polypath-part"],
], ids=repr)
def test_names(receiver, attack, place, path):
    (place / "out").symlink_to("..")
    process, port = receiver()
    ended = attack(port, "entry", entry(path)).wait(10)
    assert "Ok(Refused(" in ended.out, ended.out
    assert [found.name for found in place.iterdir()] == ["out"]
    assert sorted(found.name for found in place.parent.iterdir()) == ["inside", "precious"]
    assert process.popen.poll() is None
    assert not any(ord(c) < 32 and c != "\n" for c in process.err), process.err


@pytest.mark.parametrize("link", ["/etc/passwd", "../precious", "..", "a/../../precious"])
def test_links(receiver, attack, place, link):
    _, port = receiver()
    ended = attack(port, "entry", entry(["link"], {"link": link})).wait(10)
    assert "points outside" in ended.out, ended.out
    assert list(place.iterdir()) == []


def test_an_existing_file(receiver, attack, place):
    (place / "file").write_text("old")
    _, port = receiver()
    ended = attack(port, "entry", entry(["file"], {"file": 7})).wait(10)
    assert "exists and is not replaced" in ended.out, ended.out
    assert (place / "file").read_text() == "old"


@pytest.mark.parametrize("begin, reason", [
    ({"size": 1 << 62, "entries": 1}, "no space left on device"),
    ({"size": 1 << 62, "entries": 1, "limit": True}, "exceeds the limit of 1000000 bytes"),
    ({"size": 0, "entries": 1 << 60}, "exceed the limit of 1000000"),
])
def test_sizes_and_counts(receiver, attack, place, begin, reason):
    _, port = receiver(*(["--max-size", "1MB"] if begin.pop("limit", False) else []))
    ended = attack(port, "begin", json.dumps({"name": "x", "tops": ["x"], **begin})).wait(10)
    assert reason in ended.out, ended.out
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("how", ["silent", "hello"])
def test_silence(receiver, attack, processes, place, how):
    """Silent peers delay no other, and are dropped."""
    process, port = receiver("--timeout", 3)
    attacker = attack(port, how, 10, 10).said("opened 10")
    a_friend_sends(processes, place, port)
    attacker.said("open 0\n", 8)
    assert process.popen.poll() is None


def test_slow_drip(receiver, attack, processes, place):
    """Ten transfers of a byte a second delay no other."""
    _, port = receiver()
    attack(port, "drip", 10, 8).said("drips")
    a_friend_sends(processes, place, port)


def test_a_flood_of_associations(receiver, attack, processes, place):
    """An address gets 16 places, however many associations it opens; others get in meanwhile."""
    process, port = receiver()
    attacker = attack(port, "flood", 6).said("begins")
    wait_until(lambda: attacker.out.count("\n") > 100, 10, lambda: attacker.out, alive=attacker.popen)
    a_friend_sends(processes, place, port)
    ended = attacker.wait(20).out
    opened = int(re.findall(r"opened (\d+)", ended)[-1])
    # Some do not learn that they were turned away: an ABORT is sent once, and may be lost.
    held = int(re.search(r"open (\d+)", ended)[1])
    assert opened > 200 and 0 < held <= 16 + opened // 50, ended[-100:]
    assert process.popen.poll() is None
    # The flood does not fill the terminal either.
    assert process.err.count("\n") < 100


def test_guessed_phrases(receiver, processes, place):
    """Three guesses, then a pause in which not even the right phrase is accepted."""
    process, port = receiver(consent=("--plain", "--code-file", CODE))
    def guess(phrase: str) -> str:
        ended = processes.start(
            os.environ.get("POLYPATH", target() / "debug" / "polypath"), "send", place.parent.parent / "file",
            f"{LOCAL}:{port}", "--plain", "--code", phrase, "--retry", 0).wait(10)
        assert ended.code == 1
        return ended.err
    for number in range(3):
        assert "the code phrase is wrong" in guess(f"lusab-babad-guti{number}")
    assert "too many wrong code phrases: wait" in guess(CODE.read_text().strip())
    assert list(place.iterdir()) == []
    assert process.popen.poll() is None


def test_no_phrase_and_no_terminal(receiver, processes, place):
    """Neither side assumes anything where no person can be asked."""
    program = os.environ.get("POLYPATH", target() / "debug" / "polypath")
    _, port = receiver(consent=("--code-file", CODE))
    hosts = place.parent.parent / "settings"
    def send(*words: object):
        return processes.start(program, "send", place.parent.parent / "file", f"{LOCAL}:{port}", "--retry", 0,
                               *words, env={**os.environ, "XDG_CONFIG_HOME": str(hosts)}).wait(10)
    ended = send()
    assert ended.code == 1 and "asks for a code phrase" in ended.err, ended.err
    assert not (hosts / "polypath" / "known_hosts").exists()
    assert send("--code-file", CODE).code == 0
    assert LOCAL in (hosts / "polypath" / "known_hosts").read_text()
    # A receiver that accepts anyone proves nothing to a new sender.
    _, port = receiver(consent=("--anyone", "--overwrite"))
    ended = send()
    assert ended.code == 1 and "is not known" in ended.err and "--fingerprint" in ended.err, ended.err
    (hosts / "polypath" / "known_hosts").chmod(0o666)
    ended = send("--code-file", CODE)
    assert ended.code == 1 and "other users may write" in ended.err, ended.err
