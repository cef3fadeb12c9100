"""Failures are reported in one line, end with an exit code, and leave no partial file behind."""

import os
import signal

import pytest

from support.program import BRISK, binary, consent, make_file, sha256, tuning, wait_until

# Loopback addresses used only by these tests, and only by this worker.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
LOCAL, BESIDE = f"127.0.91.{1 + 2 * WORKER}", f"127.0.91.{2 + 2 * WORKER}"
# Gives up after a few seconds rather than a minute.
HASTY = [*BRISK, *tuning(association_max_retrans=4, max_init_retransmits=3)]


@pytest.fixture
def a_file(tmp_path):
    """A file of 12 MB and a folder to put it into."""
    make_file(tmp_path / "file", 12_000_000)
    (tmp_path / "out").mkdir()
    return tmp_path / "file"


def test_nobody_listens(processes, a_file):
    ended = processes.polypath("send", a_file, LOCAL).wait()
    ended.complains(LOCAL, "nothing listens", within=5)


def test_the_port_is_in_use(processes, tmp_path):
    processes.polypath("recv", "--bind", LOCAL, "-o", tmp_path).said("waiting on")
    second = processes.polypath("recv", "--bind", LOCAL, "-o", tmp_path).wait()
    second.complains(LOCAL, "in use", within=5)


def test_an_address_that_is_not_this_hosts(processes, tmp_path):
    ended = processes.polypath("recv", "--bind", "192.0.2.1", "-o", tmp_path).wait()
    ended.complains("192.0.2.1", within=5)


def test_no_such_file(processes, tmp_path):
    ended = processes.polypath("send", tmp_path / "nothing", LOCAL).wait()
    ended.complains("nothing", "no such file", within=5)


def test_a_sender_that_sends_no_file(processes, a_file):
    """The sender's data waits for the confirmation of a path without a peer (RFC 9260 5.4)."""
    receiver = processes.polypath(
        "recv", "--bind", LOCAL, "-o", a_file.parent / "out", "--timeout", 1).said("waiting on")
    sender = processes.polypath(
        "send", a_file, LOCAL, "--via", BESIDE, *tuning(path_confirmation="before-data"))
    sender.wait().complains("sent nothing", within=5)
    # The receiver keeps waiting for the next sender.
    assert receiver.said("connected and sent nothing").popen.poll() is None
    assert not any((a_file.parent / "out").iterdir())


def test_a_patience_that_is_none(processes, tmp_path):
    ended = processes.polypath("recv", "--timeout", "0", "-o", tmp_path).wait()
    ended.complains("--timeout", "above 0", code=2, within=5)


@pytest.mark.parametrize("words, allowed", [
    (["--config", "rto_mni=1s"], "rto_min"),
    (["--config", "rto_min=soon"], "45 ms"),
    (["--config", "path_mtu=100"], "576"),
    (["--policy", "retransmission=nowhere"], "same"),
    (["--profile", "rfc0"], "rfc9260"),
])
def test_a_wrong_setting_names_what_is_allowed(processes, a_file, words, allowed):
    ended = processes.polypath("send", a_file, LOCAL, *words).wait()
    ended.complains(allowed, code=2, within=5)


@pytest.mark.needs("namespaces", "tc", "ethtool")
class TestBetweenHosts:
    """Two hosts whose links can be cut."""

    def start(self, processes, hosts, a_file, *words, receives=()):
        """A transfer over one path; returns receiver and sender once data flows."""
        receiver = processes.polypath(
            "recv", "--bind", hosts.address("b", 1), "-o", a_file.parent / "out", *HASTY, *receives,
            inside=hosts.b.inside).said("waiting on")
        sender = processes.polypath(
            "send", a_file, hosts.address("b", 1), *HASTY, *words, inside=hosts.a.inside)
        wait_until(lambda: hosts.a.sent("va1") > 1_000_000, 20,
                   lambda: f"no data: {sender.err}{receiver.err}", alive=sender.popen)
        return receiver, sender

    def only_a_part_is_left(self, a_file):
        """The next run can continue with it."""
        (left,) = (a_file.parent / "out").iterdir()
        assert left.name.startswith(".file.") and left.name.endswith(".polypath-part")
        assert left.stat().st_size > 0

    def test_no_route(self, processes, hosts, a_file):
        ended = processes.polypath("send", a_file, "10.99.0.1", inside=hosts.a.inside).wait()
        ended.complains("10.99.0.1", "no route", within=5)

    def test_host_unreachable(self, processes, hosts, a_file):
        """No host has this address: the local host reports it unreachable after three seconds."""
        ended = processes.polypath("send", a_file, "10.81.0.77", inside=hosts.a.inside).wait()
        ended.complains("10.81.0.77", within=17)

    def test_no_answer(self, processes, hosts, a_file):
        hosts.b.ip("link", "set", "vb1", "down")
        ended = processes.polypath("send", a_file, hosts.address("b", 1), "--timeout", 2,
                                   inside=hosts.a.inside).wait()
        ended.complains(hosts.address("b", 1), within=10)

    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
    def test_the_receiver_dies(self, processes, hosts, a_file, how):
        receiver, sender = self.start(processes, hosts, a_file)
        receiver.popen.send_signal(how)
        sender.wait().complains(hosts.address("b", 1), within=30)
        receiver.popen.wait(10)
        self.only_a_part_is_left(a_file)

    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
    def test_the_sender_dies(self, processes, hosts, a_file, how):
        receiver, sender = self.start(processes, hosts, a_file)
        sender.popen.send_signal(how)
        receiver.wait().complains(hosts.address("a", 1), within=30)
        self.only_a_part_is_left(a_file)

    def test_the_network_dies(self, processes, hosts, a_file):
        """Both sides detect the failure by themselves."""
        receiver, sender = self.start(processes, hosts, a_file)
        hosts.a.ip("link", "set", "va1", "down")
        sender.wait().complains(hosts.address("b", 1), within=30)
        receiver.wait().complains(hosts.address("a", 1), within=30)
        self.only_a_part_is_left(a_file)

    def test_the_receivers_disk_is_full(self, processes, hosts, a_file):
        """Both sides report it. The small disk is only mounted in the receiver's mount namespace."""
        out = a_file.parent / "out"
        small_disk = ('out=$1 listing=$2; shift 2; mount -t tmpfs -o size=2m none "$out" || exit; '
                      '"$@"; code=$?; ls -A "$out" >"$listing"; exit $code')
        listing = a_file.parent / "listing"
        receiver = processes.start(
            "unshare", "-m", "sh", "-c", small_disk, "sh", out, listing,
            binary(), "recv", "--bind", hosts.address("b", 1), "-o", out, *consent("recv"),
            inside=hosts.b.inside).said("waiting on")
        sender = processes.polypath("send", a_file, hosts.address("b", 1), inside=hosts.a.inside)
        sender.wait().complains(hosts.address("b", 1), "no space left", within=5)
        receiver.wait().complains("no space left", within=5)
        assert listing.read_text() == ""

    def test_what_was_there_stays_until_the_new_file_is_whole(self, processes, hosts, a_file):
        old = make_file(a_file.parent / "out" / "file", 1000, seed=2)
        _, sender = self.start(processes, hosts, a_file, receives=["--overwrite"])
        sender.popen.kill()
        assert sha256(a_file.parent / "out" / "file") == old

