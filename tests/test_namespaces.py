"""A file between two hosts over two paths; the path in use is cut and restored."""

import subprocess

import pytest

from support import program
from support.program import BRISK, changes, make_file, sha256, wait_until

SIZE = 9_000_000
# A path fails after four consecutive timeouts, 2.4 s: a busy machine may delay a process by two of them.
# One path at a time, as in RFC 9260.
STEADY = ["--profile", "rfc9260", *BRISK, *program.tuning(path_max_retrans=3)]


@pytest.mark.needs("namespaces", "tc", "ethtool")
@pytest.mark.parametrize("ipv6", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("raw", [False, True], ids=["udp", "raw"])
def test_a_transfer_survives_the_path_in_use_and_returns_to_it(tmp_path, processes, hosts, ipv6, raw):
    sent = make_file(tmp_path / "file", SIZE)
    out = tmp_path / "out"
    out.mkdir()
    to = [hosts.address("b", path, ipv6) for path in (1, 2)]
    of = [hosts.address("a", path, ipv6) for path in (1, 2)]
    below = ["--raw"] if raw else []

    receiver = processes.polypath(
        "recv", "--bind", ",".join(to), "-o", out, "--json", *below, *STEADY, inside=hosts.b.inside,
    ).said("waiting on")
    sender = processes.polypath(
        "send", tmp_path / "file", to[0], "--via", to[1], "--bind", ",".join(of), "--json",
        *below, *STEADY, inside=hosts.a.inside,
    )

    def passed(path: int, count: int) -> None:
        """Waits until `count` more bytes have been sent over the path."""
        start = hosts.a.sent(f"va{path}")
        wait_until(lambda: hosts.a.sent(f"va{path}") > start + count, 20,
                   lambda: f"no data over path {path}: {sender.err}", alive=sender.popen)

    passed(1, 1_500_000)
    hosts.a.ip("link", "set", "va1", "down")
    passed(2, 1_500_000)
    hosts.a.ip("link", "set", "va1", "up")
    if ipv6:  # "down" has removed it
        hosts.a.ip("addr", "replace", f"{of[0]}/64", "dev", "va1", "nodad")
    passed(1, 1_500_000)

    summary = sender.wait().json
    received = receiver.wait().json
    assert sha256(out / "file") == sent == summary["sha256"] == received["sha256"]
    assert [entry.name for entry in out.iterdir()] == ["file"]
    assert changes(summary, 0) == ["inactive", "active", "takes_new_data"], summary["changes"]
    assert changes(summary, 1) == ["takes_new_data"]
    assert summary["blackout_s"] < 8
    assert all(path["bytes"] > 1_000_000 for path in summary["paths"])
    assert {path["state"] for path in summary["paths"]} == {"active"}


@pytest.mark.needs("namespaces", "tc", "ethtool")
def test_a_transfer_waits_while_both_paths_are_cut(tmp_path, processes, hosts):
    """While both paths are down, nothing is lost and the association does not fail."""
    sent = make_file(tmp_path / "file", 3_000_000)
    to = [hosts.address("b", path) for path in (1, 2)]
    patient = [*BRISK, *program.tuning(association_max_retrans=30)]
    receiver = processes.polypath(
        "recv", "--bind", ",".join(to), "-o", tmp_path / "arrived", "--json", *patient,
        inside=hosts.b.inside,
    ).said("waiting on")
    sender = processes.polypath(
        "send", tmp_path / "file", to[0], "--via", to[1], "--json", *patient, inside=hosts.a.inside)
    wait_until(lambda: hosts.a.sent("va1") > 500_000, 20, "no data")
    for device in ("vb1", "vb2"):
        hosts.b.ip("link", "set", device, "down")
    with pytest.raises(subprocess.TimeoutExpired):
        sender.popen.wait(3)
    for device in ("vb1", "vb2"):
        hosts.b.ip("link", "set", device, "up")
    assert sender.wait().json["blackout_s"] > 2.5
    receiver.wait().json
    assert sha256(tmp_path / "arrived") == sent


@pytest.mark.needs("namespaces", "tc", "ethtool")
def test_the_receivers_answer_comes_over_the_path_that_is_left(tmp_path, processes, hosts):
    """The receiver has sent nothing before and must detect that its primary path is cut."""
    sent = make_file(tmp_path / "file", 3_000_000)
    to = [hosts.address("b", path) for path in (1, 2)]
    slow = program.tuning(rto_initial="6s")
    receiver = processes.polypath("recv", "--bind", ",".join(to), "-o", tmp_path / "arrived", "--json", *slow,
                                  inside=hosts.b.inside).said("waiting on")
    sender = processes.polypath(
        "send", tmp_path / "file", to[0], "--via", to[1], "--json", *BRISK, inside=hosts.a.inside)
    wait_until(lambda: hosts.a.sent("va1") > 500_000, 20, "no data")
    for side in ("a", "b"):
        hosts.swallow(side, 1)
    assert receiver.wait().json["sha256"] == sender.wait(20).json["sha256"] == sent


@pytest.mark.needs("namespaces", "tc", "ethtool")
def test_a_metered_interface_is_used_only_when_no_other_works(tmp_path, processes, hosts):
    sent = make_file(tmp_path / "file", 12_000_000)
    to = [hosts.address("b", path) for path in (1, 2)]
    receiver = processes.polypath("recv", "--bind", ",".join(to), "-o", tmp_path / "arrived", "--json",
                                  inside=hosts.b.inside).said("waiting on")
    before = hosts.a.sent("va2")
    sender = processes.polypath("send", tmp_path / "file", to[0], "--via", to[1], "--metered", "va2", "--json",
                                inside=hosts.a.inside)
    wait_until(lambda: hosts.a.sent("va1") > 2_000_000, 20, lambda: f"no data: {sender.err}")
    # The handshake, HEARTBEATs, and what is sent again while a busy machine keeps the other path waiting; without
    # the option both paths carry the same.
    metered, other = hosts.a.sent("va2") - before, hosts.a.sent("va1")
    assert metered < other / 5, (metered, other)
    hosts.swallow("a", 1)
    summary = sender.wait(20).json
    assert receiver.wait().json["sha256"] == summary["sha256"] == sent
    assert hosts.a.sent("va2") - before > 2_000_000
    assert summary["blackout_s"] < 3
