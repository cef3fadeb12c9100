"""Runs the commands of README.md as written; `make newcomer` does so in a clean Debian, installation included."""

import re
import shlex
import subprocess

import pytest

from support.program import ROOT, binary, make_file, sha256

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [shlex.split(line, comments=True) for block in BLOCKS for line in block.splitlines()]


def test_the_readme_is_short_and_has_both_pictures():
    assert len(README.splitlines()) < 120
    pictures = re.findall(r'(?:srcset|src)="([^"]+)"', README)
    assert len(pictures) == 4
    assert all((ROOT / picture).exists() for picture in pictures)


def commands(*beginning: str) -> list[list[str]]:
    """The commands with this beginning."""
    return [words for words in COMMANDS if tuple(words[:len(beginning)]) == beginning]


@pytest.mark.parametrize("words", commands("make"), ids=shlex.join)
def test_make_knows_the_target(words):
    done = subprocess.run([words[0], "-n", *words[1:]], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", commands("polypath", "sim"), ids=shlex.join)
def test_simulations(processes, tmp_path, words):
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    ended = processes.start(binary(), *words[1:], cwd=tmp_path).wait()
    assert ended.code == 0, ended.err
    assert ended.out
    for option in ("--pcap", "--series"):
        if option in words:
            assert (tmp_path / words[words.index(option) + 1]).stat().st_size > 1000


@pytest.mark.needs("namespaces")
def test_a_file_between_two_hosts(processes, tmp_path, hosts):
    """The receiver has the address of the README, and one in a second network, which the README does not
    name: both become paths."""
    (receive,), (send,) = commands("polypath", "recv"), commands("polypath", "send")
    wanted = [send[3], "198.51.100.10"]
    for path in (1, 2):
        hosts.a.ip("addr", "flush", "dev", f"va{path}")
        hosts.b.ip("addr", "flush", "dev", f"vb{path}")
    for path, address in enumerate(wanted, start=1):
        network = address.rpartition(".")[0]
        hosts.a.ip("addr", "add", f"{network}.1/24", "dev", f"va{path}")
        hosts.b.ip("addr", "add", f"{address}/24", "dev", f"vb{path}")
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    sent = make_file(tmp_path / "here" / send[2], 1_000_000)
    receiver = processes.start(
        binary(), *receive[1:], inside=hosts.b.inside, cwd=tmp_path / "there").said("code phrase ")
    send[send.index("--code") + 1] = receiver.err.rpartition("code phrase ")[2].strip()
    sender = processes.start(
        binary(), *send[1:], inside=hosts.a.inside, cwd=tmp_path / "here").wait()
    assert sender.code == 0, sender.err
    assert receiver.wait().code == 0, receiver.err
    assert sha256(tmp_path / "there" / send[2]) == sent
    assert sent in sender.out
    for address in wanted:
        assert f"> {address}  " in sender.out, sender.out
