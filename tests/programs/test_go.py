"""Go's library github.com/ishidawataru/sctp, which makes its system calls itself: one-to-one sockets, bound to two
addresses."""

import os
import subprocess
from pathlib import Path

import pytest

from interop.conftest import NEEDS
from programs.exchange import COUNT, PORT, Echo
from support.statements import compiled

pytestmark = pytest.mark.needs("namespaces", "nft", "go", "netinet/sctp.h")
CUTS = pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
NAME, EXCHANGE = "Go's ishidawataru/sctp", f"{COUNT} messages of up to 16,000 bytes, each answered"


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("go") / "echo"
    # Static: the guest has no other C library.
    subprocess.run(["go", "build", "-trimpath", "-o", out, "."], cwd=Path(__file__).with_name("go"), check=True,
                   env={**os.environ, "CGO_ENABLED": "0"})
    return out


def echo(server: Path, client: Path, exchange: str = EXCHANGE) -> Echo:
    return Echo(
        NAME,
        server=lambda addresses: [server, "server", PORT, *addresses],
        client=lambda remote, addresses: [client, "client", PORT, remote, COUNT, *addresses],
        exchange=exchange)


@CUTS
def test_messages_are_answered(hosts, processes, program, is_cut):
    echo(program, program).between(hosts, processes, is_cut=is_cut)


@CUTS
@pytest.mark.parametrize("connects", [True, False], ids=["connects", "listens"])
def test_a_preloaded_program_answers(hosts, processes, program, tmp_path, is_cut, connects):
    other = compiled(tmp_path, "run-exchange")
    ends = (other, program) if connects else (program, other)
    exchange = f"{EXCHANGE}, with a C program that {'listens' if connects else 'connects'}"
    echo(*ends, exchange).between(hosts, processes, is_cut=is_cut)


# The client fails in user-mode Linux with an error of Go's runtime, on the kernel's SCTP: the server runs there.
@pytest.mark.needs(*NEEDS["linux"])
@CUTS
def test_linux_answers(linux, processes, program, is_cut):
    echo(program, program).with_linux(linux, processes, is_cut=is_cut)
