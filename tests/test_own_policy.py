"""Policies of a crate of its own on sockets: the program of examples/own-policy."""

import subprocess

from support.program import BRISK, Processes, binary, target


def test_a_transfer_with_policies_of_another_crate(tmp_path, monkeypatch):
    """Both run, and what was chosen is what is listed; a wrong parameter is one line."""
    program = target() / "debug" / "own-policy"
    monkeypatch.setenv("POLYPATH", str(program))
    assert binary() == str(program)
    (tmp_path / "file").write_bytes(bytes(range(256)) * 8192)
    policies = ["--cmt", "--policy", "scheduler=fastest",
                "--policy", "congestion=aimd:increase=2,decrease=0.7"]
    own, theirs = "127.110.1.1,127.110.2.1", "127.110.1.2,127.110.2.2"
    with Processes(tmp_path) as processes:
        receiver = processes.polypath("recv", "--bind", theirs, "-o", tmp_path / "received", "--json", "--timeout", 60,
                                      "--plain", *BRISK, *policies).said("waiting on ")
        processes.polypath("send", tmp_path / "file", "127.110.1.2:9899", "--via", "127.110.2.2:9899", "--bind", own,
                           "--plain", "--timeout", 60, *BRISK, *policies)
        assert receiver.wait().json["bytes"] == 256 * 8192
    assert (tmp_path / "received").read_bytes() == (tmp_path / "file").read_bytes()
    listed = subprocess.run([program, "policies"], capture_output=True, text=True, check=True).stdout
    assert "aimd" in listed and "decrease=0.5: share of the window left by a loss, from 0.05 to 0.95" in listed
    wrong = subprocess.run([program, "send", tmp_path / "file", "127.110.1.2",
                            "--policy", "congestion=aimd:decrease=7"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[0] == ('polypath: congestion is "aimd:decrease=7", but must be aimd with decrease '
                                            "from 0.05 to 0.95")
