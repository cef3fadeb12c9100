"""ssh, rsync and curl through `polypath forward`, between two hosts with two paths, one of which is cut."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.program import BUSY, CODE, binary, make_file, sha256, wait_until

pytestmark = pytest.mark.needs("namespaces", "tc", "ethtool")
# Data goes over both paths, and a path that falls silent is left at once.
SECRET = ("--code-file", str(CODE))
# Seconds without progress of a session when the path in use is cut, on an idle machine.
STANDSTILL = 1


@pytest.fixture
def server(processes, hosts):
    """`polypath serve` on host b; returns the addresses for clients."""
    addresses = [hosts.address("b", path) for path in (1, 2)]
    processes.start(binary(), "serve", "--bind", ",".join(addresses), *SECRET, "--allow", "127.0.0.1:*",
                    inside=hosts.b.inside).said("waiting on")
    return [addresses[0], "--via", addresses[1]]


@pytest.fixture
def ssh(processes, hosts, server, tmp_path):
    """sshd on host b that only b itself can reach; returns ssh's words on host a, without the host."""
    daemon = shutil.which("sshd") or "/usr/sbin/sshd"
    if not (Path(daemon).exists() and shutil.which("ssh")):
        pytest.skip("no ssh")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    (tmp_path / "config").write_text(
        f"HostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\nListenAddress 127.0.0.1:2222\n"
        "StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin prohibit-password\n")
    processes.start(daemon, "-D", "-e", "-f", tmp_path / "config", inside=hosts.b.inside).said("Server listening")
    proxy = " ".join([binary(), "forward", *server, *SECRET, "-W", "%h:%p"])
    return ["ssh", "-q", "-F", "none", "-i", str(tmp_path / "user"), "-o", "StrictHostKeyChecking=no",
            "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-o", f"ProxyCommand={proxy}",
            "-p", "2222"]


def test_an_ssh_session_survives_a_cut(processes, hosts, ssh):
    session = processes.start(*ssh, "root@127.0.0.1", "cat", inside=hosts.a.inside, stdin=subprocess.PIPE)
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
        assert max(waits) < BUSY * STANDSTILL, waits
        hosts.a.ip("link", "set", f"va{path}", "up")
        # The path has to be back before the other one is cut.
        before = hosts.a.sent(f"va{path}")
        wait_until(lambda path=path, before=before: hosts.b.sent(f"vb{path}") > 0
                   and hosts.a.sent(f"va{path}") > before + 500, 30, "the path is not used again")
    session.popen.stdin.close()
    assert session.wait().code == 0, session.err


def test_rsync_over_ssh_survives_a_cut(processes, hosts, ssh, tmp_path):
    if shutil.which("rsync") is None:
        pytest.skip("no rsync")
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(20):
        make_file(folder / f"file-{number}", 300_000, number)
    copy = tmp_path / "copy"
    running = processes.start("rsync", "-a", "-e", " ".join(f"'{word}'" for word in ssh), f"{folder}/",
                              f"root@127.0.0.1:{copy}/", inside=hosts.a.inside)
    wait_until(lambda: hosts.a.sent("va1") > 1_000_000, 20, lambda: running.err, alive=running.popen)
    hosts.a.ip("link", "set", "va1", "down")
    assert running.wait(60).code == 0, running.err
    assert [sha256(copy / path.name) for path in sorted(folder.iterdir())] == [
        sha256(path) for path in sorted(folder.iterdir())]


# Bytes of user data in a frame of 1514 bytes: less headers of IPv4, UDP, DTLS, SCTP and I-DATA.
GOODPUT = (1500 - 20 - 8 - 22 - 12 - 20) / 1514


@pytest.mark.clock
def test_a_download_uses_both_paths(processes, hosts, server, tmp_path):
    """curl through -L gets the sum of both paths, and hardly less than `polypath perf`."""
    if shutil.which("curl") is None:
        pytest.skip("no curl")
    size = 25_000_000
    make_file(tmp_path / "file", size)
    processes.start(sys.executable, "-u", "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", tmp_path,
                    inside=hosts.b.inside).said("Serving HTTP")
    client = processes.start(binary(), "forward", *server, *SECRET, "-L", "0:127.0.0.1:8000",
                             inside=hosts.a.inside).said("forwarding ")
    port = re.search(r"forwarding \S+?:(\d+) ", client.err)[1]
    began = time.monotonic()
    subprocess.run([*hosts.a.inside, "curl", "-sS", "-o", tmp_path / "copy", f"http://127.0.0.1:{port}/file"],
                   check=True, timeout=120)
    rate = 8 * size / (time.monotonic() - began)
    assert sha256(tmp_path / "copy") == sha256(tmp_path / "file")
    addresses = [hosts.address("b", path) for path in (1, 2)]
    processes.start(binary(), "perf", "-s", "--bind", ",".join(addresses), "-u", "9900", *SECRET,
                    inside=hosts.b.inside).said("waiting on")
    measured = processes.start(binary(), "perf", "-c", f"{addresses[0]}:9900", "--via", f"{addresses[1]}:9900", "-R",
                               "-n", f"{size}B", "-i", "0", "--json", *SECRET, inside=hosts.a.inside).wait(60).json
    perf = measured["end"]["sum_received"]["bits_per_second"]
    print(f"curl {rate / 1e6:.2f} Mbit/s, perf {perf / 1e6:.2f} Mbit/s, both paths {GOODPUT * 20:.2f} Mbit/s")
    assert rate > 0.95 * GOODPUT * 20e6, f"{rate / 1e6:.2f} Mbit/s"
    assert rate > 0.9 * perf, f"{rate / 1e6:.2f} of {perf / 1e6:.2f} Mbit/s"
