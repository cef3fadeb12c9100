"""`--auth-key-file`: only peers with the secret are accepted, even in clear."""

import os

import pytest

from support.program import BRISK, make_file, tuning

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
LOCAL = f"127.0.93.{1 + WORKER}"
HASTY = [*BRISK, *tuning(max_init_retransmits=2)]
SIZE = 300_000


@pytest.fixture
def transfer(processes, tmp_path):
    """`transfer(sender's words, receiver's words)`: both processes, with a key file for each name."""
    for name in ("one", "other"):
        (tmp_path / name).write_text(f"the secret of {name}\nnot this line\n")
    sha256 = make_file(tmp_path / "file", SIZE)
    (tmp_path / "out").mkdir()

    def words(name, number, more):
        key = [] if name is None else ["--auth-key-file", tmp_path / name, "--auth-key-number", number]
        return ["--plain", *HASTY, *key, *more]

    def run(sends, receives):
        receiver = processes.polypath("recv", "--json", "--bind", LOCAL, "-o", tmp_path / "out",
                                      *words(*receives)).said("waiting on")
        sender = processes.polypath("send", "--json", tmp_path / "file", LOCAL, *words(*sends))
        return sender, receiver, sha256

    return run


@pytest.mark.parametrize("number", [0, 1, 65535])
def test_the_same_key(transfer, number):
    sender, receiver, sha256 = transfer(("one", number, []), ("one", number, []))
    assert sender.wait().json["sha256"] == receiver.wait().json["sha256"] == sha256


@pytest.mark.parametrize("sends, receives, words", [
    pytest.param(("one", 1, []), ("other", 1, []), "the same authentication key", id="another-secret"),
    pytest.param(("one", 1, []), ("one", 2, []), "the same authentication key", id="another-number"),
    pytest.param(("one", 1, []), (None, 0, []), "the same authentication key", id="the-receiver-has-none"),
    pytest.param((None, 0, []), ("one", 1, []), "does not complete the handshake", id="the-sender-has-none"),
    pytest.param((None, 0, tuning(authentication="false")), ("one", 1, []),
                 "does not complete the handshake", id="the-sender-authenticates-nothing"),
    pytest.param(("one", 1, []), (None, 0, tuning(authentication="false")),
                 "does not authenticate chunks", id="the-receiver-authenticates-nothing"),
])
def test_not_the_same_key(transfer, tmp_path, sends, receives, words):
    """The sender reports the failure; nothing is received, and the receiver keeps waiting."""
    sender, receiver, _ = transfer(sends, receives)
    sender.wait().complains(LOCAL, words, within=10)
    assert receiver.popen.poll() is None
    assert not any((tmp_path / "out").iterdir())


def test_an_empty_key(processes, tmp_path):
    (tmp_path / "empty").write_text("\nnot this line\n")
    ended = processes.polypath("recv", "--auth-key-file", tmp_path / "empty", "-o", tmp_path).wait()
    ended.complains("empty", "is empty", code=2, within=5)
