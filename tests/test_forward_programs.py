"""ssh, rsync and curl through `polypath forward`, between two hosts with two paths, one of which is cut."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netem import Net
from support.program import BUSY, CODE, binary, make_file, sha256, target, wait_until

SECRET = ("--code-file", str(CODE))
# Round-trip times of the paths in milliseconds, and their rate in Mbit/s.
RTTS, RATE = (40, 100), 20
# Seconds that a program may wait when the path in use is cut: twice the longer round trip, and 10 ms.
STANDSTILL = 2 * max(RTTS) / 1000 + 0.01
# What is measured runs before other processes.
FIRST = ["chrt", "-r", "10"] if shutil.which("chrt") else []
WATCH = [sys.executable, str(Path(__file__).parent.parent / "benches" / "bulk.py"), "watch"]
# Runs a command that sends back what it gets, types a line every 20 ms, and prints when lines arrive.
TYPIST = """
import json, subprocess, sys, threading, time
session = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
session.stdin.write(b"first\\n")
count = len(session.stdout.read(65536))
print("ready", flush=True)
end, typed = time.monotonic() + float(sys.argv[1]), [6]
def type_lines():
    while time.monotonic() < end:
        session.stdin.write(b"line\\n")
        typed[0] += 5
        time.sleep(0.02)
    session.stdin.close()
threading.Thread(target=type_lines).start()
last, gaps = time.monotonic(), []
while part := session.stdout.read(65536):
    now = time.monotonic()
    gaps.append((last, now - last))
    last, count = now, count + len(part)
print(json.dumps({"code": session.wait(), "typed": typed[0], "bytes": count, "gaps": gaps}))
"""


@dataclasses.dataclass
class Paths:
    """Two hosts with two paths of the emulator."""

    net: Net

    @property
    def a(self) -> list[str]:
        """Command prefix that runs a program on host a."""
        return [*Net.inside(self.net.a), *FIRST]

    @property
    def b(self) -> list[str]:
        return [*Net.inside(self.net.b), *FIRST]

    def cut(self, after: float) -> float:
        """Cuts the shorter path after some seconds; returns the time."""
        time.sleep(after)
        self.net.do("down p0")
        return time.monotonic()

    def restore(self) -> None:
        """The path works again, and is used."""
        self.net.do("up p0")
        time.sleep(2.5)


@pytest.fixture
def paths(tmp_path, worker_id):
    program = target() / "debug" / "examples" / "netem"
    assert program.exists(), f"{program} is not there: cargo build --all-targets"
    scenario = "schema = 1\nseed = 1\n" + "".join(
        f'[[path]]\nname = "p{number}"\nrate = "{RATE} Mbit/s"\ndelay = "{rtt * 500} us"\n'
        f'queue = "{RATE * rtt * 125} B"\n'
        for number, rtt in enumerate(RTTS))
    number = 80 + (0 if worker_id == "master" else int(worker_id.removeprefix("gw")))
    with Net(program, scenario, 2, tmp_path, number) as net:
        yield Paths(net)


def start_sshd(processes, inside: list[str], folder: Path) -> list[str]:
    """sshd that only its own host can reach; returns the words of ssh, without ProxyCommand and host."""
    daemon = shutil.which("sshd") or "/usr/sbin/sshd"
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "config").write_text(
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nListenAddress 127.0.0.1:2222\n"
        "StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin prohibit-password\n")
    processes.start(daemon, "-D", "-e", "-f", folder / "config", inside=inside).said("Server listening")
    return ["ssh", "-q", "-F", "none", "-i", str(folder / "user"), "-o", "StrictHostKeyChecking=no",
            "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-p", "2222"]


def longest(log: dict, cut: float) -> float:
    """Longest time without new bytes after an instant, in seconds."""
    return max((length for start, length in log["gaps"] if start + length > cut), default=0.0)


@pytest.mark.clock
@pytest.mark.needs("root", "tun", "ssh", "ssh-keygen", "rsync", "curl")
def test_a_cut_stops_no_program_for_long(processes, paths, tmp_path, clock):
    """An ssh session through ProxyCommand, a download by curl and one by rsync: the shorter path is cut under each
    of them."""
    far, near = (["10.91.0.2", "10.92.0.2"], ["10.91.0.1", "10.92.0.1"])
    to = [f"{far[0]}={near[0]}", "--via", f"{far[1]}={near[1]}", *SECRET]
    processes.start(binary(), "serve", "--bind", ",".join(far), *SECRET, "--allow", "127.0.0.1:*",
                    inside=paths.b).said("waiting on")
    ssh = start_sshd(processes, paths.b, tmp_path)
    ssh += ["-o", "ProxyCommand=" + " ".join([binary(), "forward", *to, "-W", "%h:%p"])]
    stood: dict[str, float] = {}

    session = processes.start(sys.executable, "-c", TYPIST, 3, *ssh, "root@127.0.0.1", "cat", inside=paths.a,
                              env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)})
    cut = session.said("ready", 30) and paths.cut(1.5)
    log = json.loads(session.wait(30).out.splitlines()[-1])
    assert log["code"] == 0 and log["bytes"] == log["typed"], log
    stood["ssh"] = longest(log, cut)
    # The longer path was not yet up when the host was stored.
    assert (tmp_path / "polypath" / "known_hosts").read_text().startswith("10.91.0.2,10.92.0.2 ")
    paths.restore()

    sent, copies = tmp_path / "sent", tmp_path / "copies"
    copies.mkdir()
    for name in ("curl", "rsync"):
        make_file(sent.with_name(name), 12_000_000, seed=len(name))
    processes.start(sys.executable, "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", tmp_path,
                    inside=paths.b).said("Serving HTTP")
    client = processes.start(binary(), "forward", *to, "-L", "0:127.0.0.1:8000", inside=paths.a).said("forwarding ")
    port = re.search(r"forwarding \S+?:(\d+) ", client.err)[1]
    programs = {
        "curl": ["curl", "-sS", "-o", copies / "curl", f"http://127.0.0.1:{port}/curl"],
        "rsync": ["rsync", "--inplace", "-e", " ".join(f"'{word}'" for word in ssh), f"root@127.0.0.1:{tmp_path}/rsync",
                  copies / "rsync"],
    }
    for name, words in programs.items():
        watch = processes.start(*WATCH, copies, 20, inside=paths.a).said("ready")
        running = processes.start(*words, inside=paths.a)
        while not (copies / name).exists() or (copies / name).stat().st_size < 2_000_000:
            time.sleep(0.005)
        cut = paths.cut(0)
        ended = running.wait(60)
        assert ended.code == 0, ended.err
        watch.popen.terminate()
        log = json.loads(watch.wait().out.splitlines()[-1])
        # Behind the last byte, nothing is to come.
        log["gaps"].pop()
        stood[name] = longest(log, cut)
        assert sha256(copies / name) == sha256(tmp_path / name)
        (copies / name).unlink()
        paths.restore()
    late = paths.net.do("report")["late"]
    print({name: f"{1000 * seconds:.0f} ms" for name, seconds in stood.items()}, late)
    # rsync writes its file in blocks of 256 KiB.
    stood["rsync"] -= (1 << 18) * 8 / (len(RTTS) * RATE * 1e6)
    allowed = clock.late().worst
    assert max(stood.values()) < STANDSTILL + allowed, (stood, allowed, late)


def here(hosts) -> list[str]:
    """Command prefix that runs a program on host a, before other processes."""
    return [*hosts.a.inside, *FIRST]


def there(hosts) -> list[str]:
    return [*hosts.b.inside, *FIRST]


@pytest.fixture
def server(processes, hosts):
    """`polypath serve` on host b; returns the addresses for clients."""
    addresses = [hosts.address("b", path) for path in (1, 2)]
    processes.start(binary(), "serve", "--bind", ",".join(addresses), *SECRET, "--allow", "127.0.0.1:*",
                    inside=there(hosts)).said("waiting on")
    return [addresses[0], "--via", addresses[1]]


@pytest.fixture
def ssh(processes, hosts, server, tmp_path):
    """sshd on host b; returns ssh's words on host a, without the host."""
    words = start_sshd(processes, there(hosts), tmp_path)
    proxy = " ".join([binary(), "forward", *server, *SECRET, "-W", "%h:%p"])
    return [*words, "-o", f"ProxyCommand={proxy}"]


@pytest.mark.needs("namespaces", "tc", "ethtool", "ssh", "ssh-keygen")
def test_an_ssh_session_survives_a_cut(processes, hosts, ssh):
    session = processes.start(*ssh, "root@127.0.0.1", "cat", inside=here(hosts), stdin=subprocess.PIPE)
    def round_trip(number: int) -> float:
        began = time.monotonic()
        session.say(f"line {number}")
        wait_until(lambda: f"line {number}\n" in session.out, 20, lambda: session.err, alive=session.popen)
        return time.monotonic() - began
    round_trip(0)
    # Each path in turn, so that one of the cuts is that of the path in use.
    for path in (1, 2):
        hosts.a.ip("link", "set", f"va{path}", "down")
        waits = [round_trip(10 * path + number) for number in range(5)]
        assert max(waits) < BUSY, waits
        hosts.a.ip("link", "set", f"va{path}", "up")
        # The path has to be back before the other one is cut.
        before = hosts.a.sent(f"va{path}")
        wait_until(lambda path=path, before=before: hosts.b.sent(f"vb{path}") > 0
                   and hosts.a.sent(f"va{path}") > before + 500, 30, "the path is not used again")
    session.popen.stdin.close()
    assert session.wait().code == 0, session.err


@pytest.mark.needs("namespaces", "tc", "ethtool", "ssh", "ssh-keygen", "rsync")
def test_rsync_over_ssh_survives_a_cut(processes, hosts, ssh, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(20):
        make_file(folder / f"file-{number}", 300_000, number)
    copy = tmp_path / "copy"
    running = processes.start("rsync", "-a", "-e", " ".join(f"'{word}'" for word in ssh), f"{folder}/",
                              f"root@127.0.0.1:{copy}/", inside=here(hosts))
    wait_until(lambda: hosts.a.sent("va1") > 1_000_000, 20, lambda: running.err, alive=running.popen)
    hosts.a.ip("link", "set", "va1", "down")
    assert running.wait(60).code == 0, running.err
    assert [sha256(copy / path.name) for path in sorted(folder.iterdir())] == [
        sha256(path) for path in sorted(folder.iterdir())]


# Bytes of user data in a frame of 1514 bytes: less headers of IPv4, UDP, DTLS, SCTP and I-DATA.
GOODPUT = (1500 - 20 - 8 - 22 - 12 - 20) / 1514


@pytest.mark.clock
@pytest.mark.needs("namespaces", "tc", "ethtool", "curl")
def test_a_download_uses_both_paths(processes, hosts, server, tmp_path):
    """curl through -L gets the sum of both paths, and hardly less than `polypath perf`."""
    size = 25_000_000
    make_file(tmp_path / "file", size)
    processes.start(sys.executable, "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", tmp_path,
                    inside=there(hosts)).said("Serving HTTP")
    client = processes.start(binary(), "forward", *server, *SECRET, "-L", "0:127.0.0.1:8000",
                             inside=here(hosts)).said("forwarding ")
    port = re.search(r"forwarding \S+?:(\d+) ", client.err)[1]
    began = time.monotonic()
    subprocess.run([*here(hosts), "curl", "-sS", "-o", tmp_path / "copy", f"http://127.0.0.1:{port}/file"],
                   check=True, timeout=120)
    rate = 8 * size / (time.monotonic() - began)
    assert sha256(tmp_path / "copy") == sha256(tmp_path / "file")
    addresses = [hosts.address("b", path) for path in (1, 2)]
    processes.start(binary(), "perf", "-s", "--bind", ",".join(addresses), "-u", "9900", *SECRET,
                    inside=there(hosts)).said("waiting on")
    measured = processes.start(binary(), "perf", "-c", f"{addresses[0]}:9900", "--via", f"{addresses[1]}:9900", "-R",
                               "-n", f"{size}B", "-i", "0", "--json", *SECRET, inside=here(hosts)).wait(60).json
    perf = measured["end"]["sum_received"]["bits_per_second"]
    print(f"curl {rate / 1e6:.2f} Mbit/s, perf {perf / 1e6:.2f} Mbit/s, both paths {GOODPUT * 20:.2f} Mbit/s")
    assert rate > 0.95 * GOODPUT * 20e6, f"{rate / 1e6:.2f} Mbit/s"
    assert rate > 0.9 * perf, f"{rate / 1e6:.2f} of {perf / 1e6:.2f} Mbit/s"
