"""Files and folders between real processes: resume after `kill -9`, full disks, changing files, streams."""

import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.program import CODE, Process, arrived, binary, consent, make_file, sha256, wait_until

# Loopback addresses used only by these tests, and only by this worker.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
LOCAL = f"127.0.93.{1 + WORKER}"
# Bytes of each of the four large files of the folder whose transfer is killed ten times.
LARGE = int(os.environ.get("POLYPATH_KILLED_BYTES", 40_000_000))


def tree(folder: Path) -> dict[str, object]:
    """Everything in a folder: digests of files, targets of links, permissions and times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name, about = str(path.relative_to(folder)), path.lstat()
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            content = sha256(path) if path.is_file() else None
            found[name] = (content, stat.S_IMODE(about.st_mode), about.st_mtime_ns)
    return found


def make_folder(folder: Path, large: int = 3_000_000) -> Path:
    """A folder with large and small files, folders and links."""
    (folder / "deep" / "er").mkdir(parents=True)
    for number in range(4):
        make_file(folder / f"large-{number}", large, seed=number)
    for number in range(150):
        make_file(folder / "deep" / f"small {number}", 100 * number, seed=number)
    (folder / "deep" / "program").write_text("#!/bin/sh\n")
    (folder / "deep" / "program").chmod(0o750)
    (folder / "deep" / "er" / "private").write_text("x")
    (folder / "deep" / "er" / "private").chmod(0o600)
    os.utime(folder / "deep" / "er" / "private", ns=(1, 1_000_000_000_123_456_789))
    os.utime(folder / "deep" / "er", ns=(1, 1_100_000_000_000_000_000))
    (folder / "link").symlink_to("deep/program")
    return folder


def start_receiver(processes, out: Path, *words: object) -> tuple[Process, str]:
    """A receiver on a free port."""
    receiver = processes.polypath("recv", "--bind", LOCAL, "-u", "0", "-o", out, *words).said("waiting on")
    return receiver, f"{LOCAL}:" + re.search(r"UDP port (\d+)", receiver.err)[1]


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def test_a_folder_and_files_with_all_that_belongs_to_them(processes, tmp_path, out):
    folder = make_folder(tmp_path / "folder")
    one = make_file(tmp_path / "one", 10)
    receiver, to = start_receiver(processes, out, "--json")
    sent = processes.polypath("send", folder, tmp_path / "one", to, "--json").wait().json
    received = receiver.wait().json
    assert tree(out / "folder") == tree(folder)
    assert sha256(out / "one") == one
    assert sent["files"] == received["files"] == 157
    assert sent["bytes_kept"] == 0 and sent["rejected"] == []
    digests = {entry["path"]: entry["sha256"] for entry in received["listed"]}
    assert digests[str(out / "folder" / "large-1")] == sha256(folder / "large-1")
    # Again: nothing is sent, and everything is compared.
    receiver, to = start_receiver(processes, out, "--json")
    again = processes.polypath("send", folder, tmp_path / "one", to, "--json").wait().json
    assert again["bytes_kept"] == again["bytes"] == sent["bytes"]
    receiver.wait()


def test_hidden_names_only_on_request(processes, tmp_path, out):
    (tmp_path / "folder" / ".git").mkdir(parents=True)
    (tmp_path / "folder" / ".git" / "config").write_text("x")
    (tmp_path / "folder" / "file").write_text("y")
    receiver, to = start_receiver(processes, out)
    ended = processes.polypath("send", tmp_path / "folder", to).wait()
    assert ended.code == 1 and "it is a hidden name" in ended.err, ended.err
    assert receiver.wait().code == 1
    assert [str(path.relative_to(out)) for path in out.rglob("*")] == ["folder", "folder/file"]
    receiver, to = start_receiver(processes, out, "--hidden")
    assert processes.polypath("send", tmp_path / "folder", to).wait().code == 0
    assert (out / "folder" / ".git" / "config").read_text() == "x"


def test_streams(processes, tmp_path, out):
    content = random.Random(3).randbytes(3_000_000)
    (tmp_path / "stdin").write_bytes(content)
    receiver, to = start_receiver(processes, "-")
    with (tmp_path / "stdin").open("rb") as stdin:
        sent = processes.polypath("send", "-", to, stdin=stdin).wait()
    assert sent.code == 0, sent.err
    receiver.wait()
    assert receiver.out_path.read_bytes() == content
    receiver, to = start_receiver(processes, out)
    with (tmp_path / "stdin").open("rb") as stdin:
        assert processes.polypath("send", "-", to, "--as", "named", stdin=stdin).wait().code == 0
    assert (out / "named").read_bytes() == content


def test_a_limit_of_the_rate(processes, tmp_path, out):
    make_file(tmp_path / "file", 4_000_000)
    _, to = start_receiver(processes, out)
    sent = processes.polypath("send", tmp_path / "file", to, "--limit", "16 Mbit/s", "--json").wait().json
    assert 1.7 < sent["seconds"] < 8, sent["seconds"]


def test_kill_9_of_either_side_at_random_moments(processes, tmp_path, out):
    """Each run continues where the last one was killed; at most 1 % is sent again."""
    folder = make_folder(tmp_path / "folder", LARGE)
    total = arrived(folder)
    chance = random.Random(7)
    port = "0"
    for number in range(10):
        receiver = processes.polypath(
            "recv", "--forever", "--bind", LOCAL, "-u", port, "-o", out, "--json").said("waiting on")
        to = f"{LOCAL}:" + re.search(r"UDP port (\d+)", receiver.err)[1]
        before = arrived(out)
        sender = processes.polypath("send", folder, to, "--limit", "60MB", "--json")
        more = before + 1 + chance.uniform(0, total / 15)
        wait_until(lambda more=more: arrived(out) > more, 60, "it does not continue", alive=sender.popen)
        time.sleep(chance.uniform(0, 0.15))
        for victim in [sender, receiver] if number % 2 else [receiver, sender]:
            victim.popen.send_signal(signal.SIGKILL)
            victim.popen.wait()
            time.sleep(chance.uniform(0, 0.05))
    before = arrived(out)
    assert before < total, "too slow to be killed ten times"
    receiver, to = start_receiver(processes, out, "--json")
    sent = processes.polypath("send", folder, to, "--json").wait(120).json
    receiver.wait()
    assert tree(out / "folder") == tree(folder)
    again = before - sent["bytes_kept"]
    # A block of 1 MiB at most, of the file that was open.
    assert 0 <= again <= 1 << 20, f"{again} of {total} bytes were sent again"


@pytest.mark.parametrize("words", [["--forever"], []], ids=["forever", "once"])
def test_a_killed_sender_comes_back_at_once(processes, tmp_path, out, words):
    """The receiver runs on, and has not noticed that the first one has died."""
    make_file(tmp_path / "file", 60_000_000)
    _, to = start_receiver(processes, out, *words)
    first = processes.polypath("send", tmp_path / "file", to, "--limit", "30MB")
    wait_until(lambda: arrived(out) > 5_000_000, 20, lambda: first.err, alive=first.popen)
    first.popen.kill()
    first.popen.wait()
    before, began = arrived(out), time.monotonic()
    second = processes.polypath("send", tmp_path / "file", to, "--json")
    wait_until(lambda: arrived(out) > before, 15, lambda: second.err, alive=second.popen)
    assert time.monotonic() - began < 15
    second = second.wait().json
    assert second["bytes_kept"] > 3_000_000
    assert sha256(out / "file") == sha256(tmp_path / "file")


def test_a_restarted_receiver_is_noticed_and_the_sender_continues(processes, tmp_path, out):
    make_file(tmp_path / "file", 60_000_000)
    receiver, to = start_receiver(processes, out, "--forever")
    sender = processes.start(binary(), "send", tmp_path / "file", to, "--code-file", CODE, "--json",
                             "--limit", "15MB")
    wait_until(lambda: arrived(out) > 5_000_000, 20, lambda: sender.err, alive=sender.popen)
    receiver.popen.kill()
    receiver.popen.wait()
    port = to.rpartition(":")[2]
    restarted = time.monotonic()
    processes.start(binary(), "recv", "--bind", LOCAL, "-u", port, "-o", out, *consent("recv")).said("connected with")
    assert time.monotonic() - restarted < 5
    sent = sender.wait().json
    assert "to continue" in sender.err
    assert sent["bytes_kept"] > 3_000_000
    assert sent["standstill_s"] > 0
    assert sha256(out / "file") == sha256(tmp_path / "file")


@pytest.mark.needs("namespaces")
def test_a_read_only_target(processes, tmp_path, out, hosts):
    make_file(tmp_path / "file", 1000)
    read_only = 'out=$1; shift; mount --bind "$out" "$out" && mount -o remount,bind,ro "$out" || exit; exec "$@"'
    receiver = processes.start(
        "unshare", "-m", "sh", "-c", read_only, "sh", out, binary(), "recv", "--bind", hosts.address("b", 1),
        "-o", out, *consent("recv"), inside=hosts.b.inside).said("waiting on")
    sent = processes.polypath("send", tmp_path / "file", hosts.address("b", 1), inside=hosts.a.inside).wait()
    sent.complains(hosts.address("b", 1), "cannot create", "read-only file system")
    receiver.wait().complains("cannot create", "read-only file system")
    assert list(out.iterdir()) == []


def test_a_file_that_changes_while_it_is_sent(processes, tmp_path, out):
    make_file(tmp_path / "file", 20_000_000)
    receiver, to = start_receiver(processes, out)
    sender = processes.polypath("send", tmp_path / "file", to, "--limit", "10MB")
    wait_until(lambda: arrived(out) > 2_000_000, 20, lambda: sender.err, alive=sender.popen)
    with (tmp_path / "file").open("r+b") as file:
        file.seek(19_000_000)
        file.write(b"changed")
    sender.wait().complains("has changed while it was sent")
    receiver.wait().complains("has changed while it was sent")
    assert not (out / "file").exists()
    # The next run sends what differs.
    receiver, to = start_receiver(processes, out)
    sent = processes.polypath("send", tmp_path / "file", to, "--json").wait().json
    assert sha256(out / "file") == sha256(tmp_path / "file") == sent["sha256"]
    assert sent["bytes_kept"] > 15_000_000


def test_two_senders_of_one_name(processes, tmp_path, out):
    """One file arrives, and the other sender learns why its own did not."""
    receiver, to = start_receiver(processes, out, "--forever")
    senders = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        make_file(tmp_path / name / "file", 8_000_000, seed=ord(name))
        senders.append(processes.polypath(
            "send", tmp_path / name / "file", to, "--limit", "8MB",
            env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / name)}))
    ended = [sender.wait() for sender in senders]
    assert sorted(end.code for end in ended) == [0, 1]
    (failed,) = (end for end in ended if end.code)
    failed.complains("exists and is not replaced")
    assert [path.name for path in out.iterdir()] == ["file"]
    assert sha256(out / "file") in [sha256(tmp_path / name / "file") for name in ("a", "b")]
    assert receiver.popen.poll() is None


@pytest.mark.needs("namespaces")
def test_a_disk_that_fills_up(processes, tmp_path, out, hosts):
    """Another program fills the disk during the transfer."""
    make_file(tmp_path / "file", 60_000_000)
    small_disk = ('out=$1; shift; mount -t tmpfs -o size=80m none "$out" || exit; '
                  '"$@"; code=$?; ls -A "$out"; exit $code')
    receiver = processes.start(
        "unshare", "-m", "sh", "-c", small_disk, "sh", out, binary(), "recv", "--bind", hosts.address("b", 1),
        "-o", out, *consent("recv"), inside=hosts.b.inside).said("waiting on")
    sender = processes.polypath("send", tmp_path / "file", hosts.address("b", 1), inside=hosts.a.inside)
    wait_until(lambda: hosts.a.sent("va1") > 1_000_000, 20, lambda: sender.err, alive=sender.popen)
    program = subprocess.run(["pgrep", "-P", str(receiver.popen.pid)], capture_output=True, text=True, check=False)
    inner = (program.stdout.split() or [str(receiver.popen.pid)])[0]
    subprocess.run(["nsenter", "-t", inner, "-m", "dd", "if=/dev/zero", f"of={out}/other", "bs=1M", "count=79"],
                   capture_output=True, check=False)
    sender.wait().complains(hosts.address("b", 1), "no space left on device")
    ended = receiver.wait()
    assert ended.code == 1 and "no space left on device" in ended.err
    assert ended.out.split() == ["other"], ended.out


@pytest.mark.clock
@pytest.mark.needs("namespaces", "tc", "ethtool")
def test_senders_have_fair_shares(processes, tmp_path, out, hosts):
    """Three senders of equal files over the same two paths: the fastest has less than twice the rate of the slowest."""
    make_file(tmp_path / "file", 4_000_000)
    to = [hosts.address("b", path) for path in (1, 2)]
    processes.polypath("recv", "--forever", "--bind", ",".join(to), "-o", out, inside=hosts.b.inside).said("waiting on")
    senders = [processes.polypath("send", tmp_path / "file", to[0], "--via", to[1], "--as", f"file-{number}", "--json",
                                  inside=hosts.a.inside,
                                  env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / f"host-{number}")})
               for number in range(3)]
    seconds = sorted(sender.wait().json["seconds"] for sender in senders)
    print(f"{seconds} s")
    assert seconds[-1] < 2 * seconds[0], seconds


def test_many_senders_at_once(processes, tmp_path, out):
    """None waits for another."""
    make_file(tmp_path / "file", 100_000)
    receiver, to = start_receiver(processes, out, "--forever", "--per-address", 1000)
    count = 60
    senders = [processes.polypath("send", tmp_path / "file", to, "--as", f"file-{number}", "--quiet")
               for number in range(count)]
    for sender in senders:
        ended = sender.wait(60)
        assert ended.code == 0, ended.err
    assert len(list(out.iterdir())) == count
    assert receiver.popen.poll() is None


@pytest.mark.clock
def test_a_thousand_senders(processes, tmp_path, out, clock):
    """None waits for another, although ten have stopped or died. They have twenty addresses, so that the default limit
    for one address suffices."""
    senders, at_once = 1000, 100
    receiver, to = start_receiver(processes, out, "--forever")
    make_file(tmp_path / "file", 10_000)
    make_file(tmp_path / "large", 10_000_000)
    for number in range(10):
        lost = processes.polypath("send", tmp_path / "large", to, "--as", f"lost-{number}", "--limit", "100kB")
        wait_until(lambda number=number: list(out.glob(f".lost-{number}.*")), 20, lambda lost=lost: lost.err,
                   alive=lost.popen)
        lost.popen.send_signal(signal.SIGKILL if number % 2 else signal.SIGSTOP)

    def send(number: int) -> float:
        began = time.monotonic()
        # At most five at a time from one address.
        address = f"127.0.{102 + WORKER}.{1 + number % 20}"
        words = ["--timeout", "60", "--bind", address, "--as", f"file-{number}"]
        ended = subprocess.run([binary(), "send", tmp_path / "file", to, *consent("send"), *words],
                               capture_output=True, text=True, check=False, timeout=600)
        assert ended.returncode == 0, ended.stderr
        return time.monotonic() - began

    with ThreadPoolExecutor(at_once) as pool:
        times = list(pool.map(send, range(senders)))
    digest = sha256(tmp_path / "file")
    whole = [path for path in out.iterdir() if not path.name.startswith(".lost-")]
    assert {path.name for path in whole} == {f"file-{number}" for number in range(senders)}
    assert all(sha256(path) == digest for path in whole)
    # The slowest one is delayed by less than five seconds.
    late = clock.late()
    assert max(times) < statistics.median(times) + 5 + late.seconds, (statistics.median(times), max(times), late)
    assert receiver.popen.poll() is None


@pytest.mark.needs("namespaces")
def test_a_disk_without_inodes(processes, tmp_path, out):
    """Empty folders fill a disk too: one percent of its inodes is in reserve."""
    for number in range(300):
        (tmp_path / "folder" / str(number)).mkdir(parents=True)
    small_disk = ('out=$1; shift; mount -t tmpfs -o size=80m,nr_inodes=200 none "$out" || exit; '
                  '"$@"; code=$?; df --output=iavail "$out" | tail -n 1; exit $code')
    receiver = processes.start("unshare", "-m", "sh", "-c", small_disk, "sh", out, binary(), "recv", "--bind", LOCAL,
                               "-u", "0", "-o", out, *consent("recv")).said("waiting on")
    to = f"{LOCAL}:" + re.search(r"UDP port (\d+)", receiver.err)[1]
    processes.polypath("send", tmp_path / "folder", to).wait().complains("no space left on device")
    ended = receiver.wait()
    assert ended.code == 1 and "no space left on device" in ended.err, ended.err
    assert int(ended.out) == 2, ended.out


@pytest.mark.needs("namespaces")
def test_a_stream_leaves_the_reserve_of_a_disk(processes, out):
    """One that does not end is stopped before the disk is full, and its file is removed."""
    small_disk = ('out=$1; shift; mount -t tmpfs -o size=20m none "$out" || exit; '
                  '"$@"; code=$?; ls -A "$out"; exit $code')
    receiver = processes.start("unshare", "-m", "sh", "-c", small_disk, "sh", out, binary(), "recv", "--bind", LOCAL,
                               "-u", "0", "-o", out, *consent("recv")).said("waiting on")
    to = f"{LOCAL}:" + re.search(r"UDP port (\d+)", receiver.err)[1]
    with Path("/dev/zero").open("rb") as zeros:
        sent = processes.polypath("send", "-", to, stdin=zeros).wait()
    # Reported by the check, not by a write that has failed.
    sent.complains("no space left on device: ", " needed, 0 B free")
    ended = receiver.wait()
    assert ended.code == 1 and not ended.out, ended.out


def test_the_limit_of_open_files_is_raised(processes, out):
    """Each sender needs some, and shells often set a limit of 1024."""
    receiver = processes.start("sh", "-c", 'ulimit -Sn 100; exec "$@"', "sh", binary(), "recv", "--bind", LOCAL,
                               "-u", "0", "-o", out, *consent("recv")).said("waiting on")
    limits = Path(f"/proc/{receiver.popen.pid}/limits").read_text()
    soft, hard = re.search(r"Max open files +(\S+) +(\S+)", limits).groups()
    assert soft == hard != "100"


def test_a_remembered_sender_needs_no_phrase(processes, tmp_path, out):
    """Nor does it need one for the host, which it knows by the proof of the first time."""
    make_file(tmp_path / "file", 1000)
    there, here = ({**os.environ, "XDG_CONFIG_HOME": str(tmp_path / name)} for name in ("there", "here"))
    def run(*words: object) -> tuple[Process, str]:
        receiver = processes.start(binary(), "recv", "--bind", LOCAL, "-u", "0", "-o", out, *words, env=there)
        port = re.search(r"UDP port (\d+)", receiver.said("encrypted, ").err)[1]
        return receiver, f"{LOCAL}:{port}"
    receiver, to = run("--code-file", CODE, "--remember", "--forever", "--overwrite")
    first = processes.start(binary(), "send", tmp_path / "file", to, "--code-file", CODE, env=here).wait()
    assert first.code == 0, first.err
    assert processes.start(binary(), "send", tmp_path / "file", to, env=here).wait().code == 0
    receiver.stop()
    assert len((tmp_path / "there" / "polypath" / "known_senders").read_text().split()) == 2
    # A new run makes a phrase up, which this sender does not need; the UDP port is another one.
    receiver, to = run("--overwrite")
    fingerprint = re.search(r"fingerprint (\S+)", receiver.err)[1]
    again = processes.start(binary(), "send", tmp_path / "file", to, "--fingerprint", fingerprint, env=here).wait()
    assert again.code == 0, again.err


def test_a_phrase_is_good_for_one_sender(processes, tmp_path, out):
    make_file(tmp_path / "file", 1000)
    receiver = processes.start(binary(), "recv", "--forever", "--bind", LOCAL, "-u", "0", "-o", out)
    port = re.search(r"UDP port (\d+)", receiver.said("code phrase ").err)[1]
    phrase = receiver.err.split("code phrase ")[1].split()[0]
    def send(name: str):
        return processes.start(
            binary(), "send", tmp_path / "file", f"{LOCAL}:{port}", "--code", phrase, "--as", name,
            env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / name)}).wait()
    assert send("first").code == 0
    send("second").complains("the code phrase is wrong")
    # The receiver has made up another one.
    assert receiver.err.count("code phrase ") >= 2
    # The first sender may come back.
    assert send("first").code == 0
    assert [path.name for path in out.iterdir()] == ["first"]


def test_a_folder_with_odd_entries(processes, tmp_path, out):
    """What is no file, folder or inner link is rejected by name; the rest arrives."""
    folder = tmp_path / "folder"
    (folder / "empty" / ("n" * 255)).mkdir(parents=True)
    kept = {"nothing": b"", "x" * 255: b"x", "-dash": b"x", "a b": b"x", "Case": b"1", "case": b"2",
            "caf\u00e9": b"composed", "cafe\u0301": b"decomposed"}
    for name, content in kept.items():
        (folder / name).write_bytes(content)
    os.truncate(folder / "nothing", 5_000_000)  # a hole
    kept["nothing"] = bytes(5_000_000)
    (folder / "program").write_bytes(b"x")
    (folder / "program").chmod(0o6755)
    os.utime(folder / "program", ns=(1, -300_000_000_500_000_000))
    os.link(folder / "program", folder / "other name")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to(".")
    rejected = ["fifo", "socket", "new\nline", "absolute", "/".join(["deep"] * 64)]
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as node:
        node.bind(os.path.relpath(folder / "socket"))
    (folder / "new\nline").write_bytes(b"x")
    (folder / "absolute").symlink_to("/etc/passwd")
    (folder / rejected[-1]).mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(folder) + b"/not \xff utf8")).write_bytes(b"x")
    receiver, to = start_receiver(processes, out)
    ended = processes.polypath("send", folder, to, "--json").wait()
    assert ended.code == 1 and ended.err.count("polypath: ") == 1, ended.err
    assert receiver.wait().code == 1
    found = json.loads(ended.out)["rejected"]
    for name in ["fifo", "socket", "new\nline", "absolute", "deep/" * 62 + "deep", "utf8"]:
        assert any(name in line for line in found), (name, found)
    assert len(found) == len(rejected) + 1, found
    copy = out / "folder"
    names = {path.name for path in copy.iterdir()}
    assert names == {*kept, "program", "other name", "dangling", "loop", "empty", "deep"}
    for name, content in kept.items():
        assert (copy / name).read_bytes() == content, name
    assert (copy / "empty" / ("n" * 255)).is_dir()
    about = (copy / "program").stat()
    # The bits that change the user of a program are dropped.
    assert (stat.S_IMODE(about.st_mode), about.st_mtime_ns) == (0o755, -300_000_000_500_000_000)
    assert (copy / "loop").readlink() == Path()


@pytest.mark.parametrize("how", ["grows", "shrinks", "goes", "becomes a link", "its folder becomes a link"])
def test_a_file_that_is_replaced_while_it_is_sent(processes, tmp_path, out, how):
    """The other files arrive, and the receiver has nothing that was not meant for it."""
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    make_file(folder / "a", 12_000_000)
    last = make_file(folder / "z", 1000)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("secret")
    victim = folder / "inner" / "file"
    make_file(victim, 8_000_000)
    receiver, to = start_receiver(processes, out)
    sender = processes.polypath("send", folder, to, "--limit", "8MB", "--json")
    wait_until(lambda: arrived(out) > 1_000_000, 20, lambda: sender.err, alive=sender.popen)
    match how:
        case "grows":
            with victim.open("ab") as file:
                file.write(b"more")
        case "shrinks":
            os.truncate(victim, 1000)
        case "goes":
            victim.unlink()
        case "becomes a link":
            victim.unlink()
            victim.symlink_to(tmp_path / "secret" / "file")
        case "its folder becomes a link":
            shutil.move(folder / "inner", tmp_path / "elsewhere")
            (folder / "inner").symlink_to(tmp_path / "secret")
    ended = sender.wait()
    assert ended.code == 1 and ended.err.count("polypath: ") == 1, ended.err
    (rejected,) = json.loads(ended.out)["rejected"]
    assert "folder/inner" in rejected, rejected
    assert receiver.wait().code == 1
    assert sha256(out / "folder" / "z") == last
    assert not (out / "folder" / "inner" / "file").exists()
    parts = [path for path in out.rglob("*") if path.is_file()]
    assert all(b"secret" not in path.read_bytes() for path in parts)
