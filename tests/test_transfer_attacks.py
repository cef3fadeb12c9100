"""What a peer cannot do to a receiver or to a sender: one attack for each way. The attacker is
`crates/polypath-apps/examples/attacker.rs`."""

import json
import os
import re
import threading
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
    [".x.0123456789ab.polypath-part"], ["..\\precious"], ["a\0b"], ["\u2066x"], ["\ufeff"], ["\u00e9" * 128],
    ["x" * 200] * 21, ["a", "..", "b"],
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


def entries(*listed: tuple[list[str], object]) -> list[str]:
    """Entries in this order."""
    return [json.dumps({**json.loads(entry(path, kind)), "id": number}) for number, (path, kind) in enumerate(listed)]


def test_a_link_through_a_link(receiver, attack, place):
    """The first link leads to the top folder, so that the second one would lead out of it."""
    _, port = receiver()
    folders = [["top", "a", "b"][:depth] for depth in (1, 2, 3)]
    ended = attack(port, "entry", *entries(*((folder, "folder") for folder in folders),
                                           (["top", "a", "b", "up"], {"link": "../.."}),
                                           (["top", "a", "b", "out"], {"link": "up/../precious"}),
                                           (["top", "a", "b", "up", "file"], {"file": 3}))).wait(20)
    *made, out, through = ended.out.splitlines()
    assert len(made) == 4 and all("Done" in line for line in made), ended.out
    assert "points outside" in out and "Refused" in through, ended.out
    assert (place / "top" / "a" / "b" / "up").resolve() == place / "top"
    assert not list(place.glob("**/out")) and not list(place.glob("**/file"))


def test_a_folder_that_becomes_a_link(receiver, attack, place):
    """A local user replaces a folder of the transfer by a link, again and again."""
    (place / "inner").mkdir()
    outside = place.parent / "outside"
    outside.mkdir()
    (place / "inner.link").symlink_to(outside)
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            (place / "inner").rename(place / "inner.kept")
            (place / "inner.link").rename(place / "inner")
            (place / "inner").rename(place / "inner.link")
            (place / "inner.kept").rename(place / "inner")

    _, port = receiver()
    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        count = 1000
        replies = attack(port, "entry", *entries(
            *((["inner", f"folder-{number}"], "folder") for number in range(count)))).wait(30).out
    finally:
        ended.set()
        swapping.join()
    made = {path.name for path in (place / "inner").iterdir()}
    assert replies.count("Done") == len(made) and 0 < len(made) < count, (len(made), replies[-200:])
    assert list(outside.iterdir()) == []


def test_the_time_of_a_folder_that_was_not_sent(receiver, attack, place):
    """Nor does a name that is not announced change anything."""
    (place / "theirs").mkdir()
    os.utime(place / "theirs", ns=(1, 1_000_000_000))
    before = (place / "theirs").stat().st_mtime_ns
    _, port = receiver()
    close = {"id": 0, "path": ["theirs"], "kind": "folder", "mode": 0o777, "modified": [7, 0]}
    ended = attack(port, "close", json.dumps(close)).wait(10)
    assert "Finished" in ended.out, ended.out
    assert (place / "theirs").stat().st_mtime_ns == before


@pytest.mark.parametrize("version, oldest, words", [
    (99, 99, "the receiver's polypath is older"), (1, None, "the sender's polypath is older"),
    (0, 0, "the sender's polypath is older"), (99, 2, '"version":2'),
])
def test_other_versions(receiver, attack, place, version, oldest, words):
    """Older and newer senders learn what is the matter; a newer one that still has this version is served."""
    process, port = receiver()
    hello = {"version": version, "oldest": oldest, "service": "files", "code": False, "name": "", "size": 0}
    ended = attack(port, "raw", 0x70660001, json.dumps(hello)).wait(10)
    assert words in ended.out, ended.out
    assert process.popen.poll() is None and list(place.iterdir()) == []


@pytest.fixture
def sent_to(processes, place):
    """Sends a file to a receiver that keeps to no rule; returns the ended sender and the attacker."""
    def run(*how: object, words: tuple = ("--timeout", 2)):
        program = target() / "debug" / "examples" / "attacker"
        attacker = processes.start(program, ATTACKER, "serve", *how).said("UDP port ")
        port = re.search(r"UDP port (\d+)", attacker.out)[1]
        ended = processes.start(os.environ.get("POLYPATH", target() / "debug" / "polypath"), "send",
                                place.parent.parent / "file", f"{ATTACKER}:{port}", "--plain", "--bind", LOCAL,
                                *words).wait(20)
        assert not any(ord(c) < 32 and c != "\n" for c in ended.err), ended.err
        assert "\u202e" not in ended.err, ended.err
        return ended, attacker
    return run


def test_a_receiver_that_never_replies(sent_to):
    ended, _ = sent_to("mute")
    ended.complains("accepted the connection and does not reply", within=5)


@pytest.mark.parametrize("reason, words", [
    ("10.0.0.1: the file protocol has version 1, not 2", "the receiver's polypath is older than this one"),
    ("\x1b[2J\u202eno\nhint: run this", "aborted the connection"),
])
def test_a_receiver_that_aborts(sent_to, reason, words):
    ended, attacker = sent_to("abort", reason)
    ended.complains(words)
    assert attacker.out.count("accepted") == 1


def test_a_receiver_that_guesses_the_phrase(sent_to):
    """It learns whether one guess was right; the sender does not come back for another, however it ends."""
    ended, attacker = sent_to("guess", words=("--code", "lusab-babad-gutih"))
    assert ended.code == 1
    attacker.said("proof ")
    assert attacker.out.count("accepted") == 1


HAVE = '{"have":{"id":0,"bytes":1000000,"block":1048576}}'


@pytest.mark.parametrize("replies", [
    [HAVE] * 3,
    ['{"have":{"id":0,"bytes":1000001,"block":1048576}}'],
    ['{"have":{"id":0,"bytes":1000000,"block":1}}'],
    ['{"have":{"id":7,"bytes":1,"block":4096}}'],
    ['{"from":{"id":0,"offset":1}}'],
    ['{"from":{"id":0,"offset":0}}'] * 2,
    ['{"from":{"id":18446744073709551615,"offset":0}}'],
    ['{"from":{"id":0,"offset":0}}', HAVE],
    ['{"done":{"id":0}}'],
], ids=repr)
def test_replies_that_do_not_fit(sent_to, replies):
    """A receiver cannot make the sender read its file again and again, or accept that it has arrived."""
    ended, _ = sent_to("replies", *replies)
    ended.complains("the receiver's replies do not fit what was sent")


@pytest.mark.parametrize("reply", [
    '{"refused":{"id":0,"reason":"\\u001b[2J\\u202eno\\nhint: run this"}}', '{"error":"\\u001b]0;x\\u0007\\nno"}',
    "nonsense", '{"error":"' + "x" * 40_000 + '"}',
], ids=["refused", "error", "nonsense", "large"])
def test_replies_that_disturb(sent_to, reply):
    """Reasons are shown in one line, without what could disturb a terminal."""
    ended, _ = sent_to("replies", reply, '"finished"')
    assert ended.code == 1 and len(ended.err) < 1000, ended.err
    ended.complains(ATTACKER)


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
