"""Erlang's gen_sctp: one-to-many sockets, bound to two addresses."""

import subprocess
from pathlib import Path

import pytest

from interop.conftest import NEEDS
from programs.exchange import COUNT, PORT, Echo

pytestmark = pytest.mark.needs("namespaces", "nft", "erl", "erlc")
CUTS = pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])


@pytest.fixture(scope="module")
def echo(tmp_path_factory) -> Echo:
    folder = tmp_path_factory.mktemp("erlang")
    subprocess.run(["erlc", "-Werror", "-o", folder, Path(__file__).with_name("echo.erl")], check=True)
    command = ["erl", "-noshell", "-env", "ERL_CRASH_DUMP_BYTES", "0", "-pa", folder, "-run", "echo", "main"]
    return Echo(
        "Erlang's gen_sctp",
        server=lambda addresses: [*command, "server", PORT, *addresses],
        client=lambda remote, addresses: [*command, "client", PORT, remote, COUNT, *addresses],
        exchange=f"{COUNT} messages of up to 16,000 bytes, each answered")


@CUTS
def test_messages_are_answered(hosts, processes, echo, is_cut):
    echo.between(hosts, processes, is_cut=is_cut)


@pytest.mark.needs(*NEEDS["linux"])
@CUTS
@pytest.mark.parametrize("connects", [True, False], ids=["connects", "listens"])
def test_linux_answers(linux, processes, echo, is_cut, connects):
    echo.with_linux(linux, processes, is_cut=is_cut, connects=connects)
