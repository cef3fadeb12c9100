"""OpenJDK's com.sun.nio.sctp: one-to-one and one-to-many sockets, bound to two addresses."""

import subprocess
from pathlib import Path

import pytest

from interop.conftest import NEEDS
from programs.exchange import COUNT, PORT, Echo

pytestmark = pytest.mark.needs("namespaces", "nft", "java", "javac")
CUTS = pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
# The server, and what it is called in the table.
SERVERS = {"server": "one-to-one server (SctpServerChannel, Selector)", "many": "one-to-many server (SctpMultiChannel)"}


@pytest.fixture(scope="module", params=SERVERS)
def echo(request, tmp_path_factory) -> Echo:
    folder = tmp_path_factory.mktemp("java")
    subprocess.run(["javac", "-Xlint:all", "-Werror", "-d", folder, Path(__file__).with_name("Echo.java")], check=True)
    # Little memory: the guest has little.
    command = ["java", "-Xmx48m", "-Xint", "-XX:+UseSerialGC", "-cp", folder, "Echo"]
    return Echo(
        "Java's com.sun.nio.sctp",
        server=lambda addresses: [*command, request.param, PORT, *addresses],
        client=lambda remote, addresses: [*command, "client", PORT, remote, COUNT, *addresses],
        exchange=f"{COUNT} messages of up to 16,000 bytes, each answered, {SERVERS[request.param]}")


@CUTS
def test_messages_are_answered(hosts, processes, echo, is_cut):
    echo.between(hosts, processes, is_cut=is_cut)


@pytest.mark.needs(*NEEDS["linux"])
@CUTS
@pytest.mark.parametrize("connects", [True, False], ids=["connects", "listens"])
def test_linux_answers(linux, processes, echo, is_cut, connects):
    echo.with_linux(linux, processes, is_cut=is_cut, connects=connects)
