"""`polypath run --shared`: one UDP port and one SCTP port space for the programs of a host."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support import statements
from support.namespaces import Namespace, coalescing
from support.preload import run
from support.program import ROOT, binary, wait_until
from support.statements import compiled

pytestmark = [pytest.mark.needs("namespaces"), pytest.mark.needs("netinet/sctp.h")]

OWN = "127.0.0.1"

# Whether a library is preloaded or the system calls are answered.
KINDS = pytest.mark.parametrize("static", [False, True], ids=["preloaded", "answered"])


@pytest.fixture
def alone():
    with Namespace() as namespace:
        yield namespace


class Ports:
    """Runs run-ports.c."""

    def __init__(self, processes, folder: Path, inside: list[str], *, static: bool):
        self.program = compiled(folder, "run-ports", static=static)
        self.processes, self.inside = processes, inside

    def start(self, *words: object):
        return self.processes.start(*run("--shared"), self.program, *words, inside=self.inside, stdin=subprocess.PIPE)

    def holds(self, *words: object):
        return self.start("hold", *words).said("holds")

    def fails(self, *words: object) -> str:
        ended = self.start("hold", *words).wait()
        assert ended.code == 1, ended.out + ended.err
        return ended.out.strip()


@pytest.fixture(params=[False, True], ids=["preloaded", "answered"])
def ports(request, processes, tmp_path, alone):
    return Ports(processes, tmp_path, alone.inside, static=request.param)


def test_two_programs_have_one_udp_port(hosts, processes, tmp_path):
    """A preloaded and an answered server, and two clients of another host without --shared at the same time."""
    address = hosts.address("b", 1)
    programs = [compiled(tmp_path, "run-exchange", static=static) for static in (False, True)]
    servers, clients = [], []
    for port, program in enumerate(programs, 7000):
        server = processes.start(*run("--shared"), program, "server", port, address, inside=hosts.b.inside)
        servers.append(server.said("listening"))
    for port in (7000, 7001):
        clients.append(processes.start(*run(), programs[0], "client", port, address, 300, hosts.address("a", 1),
                                       inside=hosts.a.inside))
    for client, server in zip(clients, servers, strict=True):
        ended = client.wait()
        assert ended.code == 0 and "exchanged 300" in ended.out, ended.out + ended.err + server.err
        assert server.wait().code == 0, server.err


def test_programs_that_connect_have_the_udp_port_too(hosts, processes, tmp_path):
    """Two clients with --shared, which send from one UDP port, and a server of another host without."""
    program = compiled(tmp_path, "run-exchange")
    servers, clients = [], []
    for path, port in ((1, 7000), (2, 7001)):
        address = hosts.address("b", path)
        server = processes.start(*run("--bind", address), program, "server", port, address, inside=hosts.b.inside)
        servers.append(server.said("listening"))
        clients.append(processes.start(*run("--shared"), program, "client", port, address, 300,
                                       hosts.address("a", path), inside=hosts.a.inside))
    for client in clients:
        ended = client.wait()
        assert ended.code == 0 and "exchanged 300" in ended.out, ended.out + ended.err
    for server in servers:
        assert server.wait().code == 0, server.err


RECEIVER = """import socket, sys
listener = socket.socket(2, 1, 132)
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen()
print("listening", flush=True)
connection = listener.accept()[0]
size, own = 0, sys.argv[2].encode()
while data := connection.recv(65536):
    assert data == own * (len(data) // len(own)), data[:20]
    size += len(data)
print("received", size)
"""

SENDER = """import socket, sys
connection = socket.socket(2, 1, 132)
connection.connect((sys.argv[1], int(sys.argv[2])))
for _ in range(int(sys.argv[3])):
    connection.send(sys.argv[2].encode() * 4000)
"""


def test_two_programs_with_one_peer_at_the_same_time(processes):
    """Bursts of two programs of one host to two of another one, whose kernel coalesces the datagrams: udp(7), UDP_GRO.
    Each message arrives at its own program, and what another one has received is counted."""
    messages = 4000
    with coalescing() as (a, b):
        at = "10.82.0.2"
        receivers = [processes.start(*run("--shared", "--doctor"), sys.executable, "-c", RECEIVER, at, port,
                                     inside=b.inside).said("listening") for port in (7000, 7001)]
        senders = [processes.start(*run("--shared"), sys.executable, "-c", SENDER, at, port, messages, inside=a.inside)
                   for port in (7000, 7001)]
        for sender in senders:
            ended = sender.wait()
            assert ended.code == 0, ended.err
        misdirected = 0
        for receiver in receivers:
            ended = receiver.wait()
            assert ended.code == 0 and f"received {messages * 16_000}\n" in ended.out, ended.out + ended.err
            counted = re.search(r"polypath run: (\d+) datagrams of other programs", ended.err)
            misdirected += int(counted[1]) if counted else 0
        # Of about 100,000: the kernel does not go on to coalesce.
        assert 0 < misdirected < 1000


def test_the_daemon_does_not_reply_for_a_program(ports, alone):
    """RFC 9260 8.4 (5): SHUTDOWN ACK is answered with SHUTDOWN COMPLETE and the same tag. The kernel gives the daemon a
    packet for a program together with one for a port without a program: udp(7), UDP_SEGMENT."""
    ports.holds(OWN, 7000, "", "listen")
    script = f"""import socket, struct
def packet(port, tag):
    def crc(data):
        value = 2**32 - 1
        for byte in data:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        return struct.pack("<I", value ^ 2**32 - 1)
    head, chunk = struct.pack(">HHI", 5, port, tag), bytes([8, 0, 0, 4])
    return head + crc(head + bytes(4) + chunk) + chunk
s = socket.socket(2, 2)
s.bind(({OWN!r}, 0))
s.settimeout(20)
def tag():
    return struct.unpack(">I", s.recv(100)[4:8])[0]
s.sendmsg([packet(7001, 1) + packet(7000, 2)], [(17, 103, struct.pack("H", 16))], 0, ({OWN!r}, 9899))
first = tag()
s.sendto(packet(7000, 3), ({OWN!r}, 9899))
print(first, tag())
"""
    done = subprocess.run([*alone.inside, sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "1 3\n"


def test_a_port_of_another_process_is_in_use(ports):
    """bind(2): EADDRINUSE, where addresses overlap."""
    first = ports.holds(OWN, 7000)
    assert ports.fails(OWN, 7000) == "bind EADDRINUSE"
    assert ports.fails("0.0.0.0", 7000) == "bind EADDRINUSE"
    ports.holds("127.0.0.2", 7000)
    ports.holds(OWN, 7001)
    first.popen.stdin.close()
    assert first.wait().code == 0
    ports.holds(OWN, 7000)


def test_sockets_that_permit_it_have_one_port(ports):
    """socket(7): SO_REUSEADDR of both, but not while one listens; SO_REUSEPORT of both."""
    ports.holds(OWN, 7000, "reuse")
    assert ports.fails(OWN, 7000) == "bind EADDRINUSE"
    ports.holds(OWN, 7000, "reuse", "listen")
    assert ports.fails(OWN, 7000, "reuse") == "bind EADDRINUSE"
    ports.holds(OWN, 7001, "share")
    ports.holds(OWN, 7001, "share")
    assert ports.fails(OWN, 7001, "reuse") == "bind EADDRINUSE"


def test_a_killed_process_frees_its_ports(ports):
    """signal(7): SIGKILL cannot be handled; the kernel closes the connection to the daemon."""
    first = ports.holds(OWN, 7000, "", "listen")
    first.popen.kill()

    def is_free():
        held = ports.start("hold", OWN, 7000)
        wait_until(lambda: held.out.endswith("\n"), 20, lambda: held.err)
        return held.out == "holds 7000\n"

    wait_until(is_free, 20, lambda: "the port is not free")


def test_a_free_port_is_none_of_another_process(ports):
    """bind(2) with port 0, in two processes."""
    both = [ports.start("many", 200) for _ in range(2)]
    found = [port for one in both for port in one.said("\n").out.split()]
    assert len(set(found)) == len(found) == 400


@KINDS
@pytest.mark.parametrize("options", [[], ["--shared"]], ids=["alone", "shared"])
def test_children_of_fork_go_on(processes, tmp_path, alone, static, options):
    """One accepts at a socket that it has inherited before anyone has connected. Another one has its own
    connection to the daemon, which reserves the port for the parent."""
    words = [*run(*options), compiled(tmp_path, "run-ports", static=static), "forks", OWN, 7000]
    server = processes.start(*words, inside=alone.inside, stdin=subprocess.PIPE).said("listening")
    client = "import socket\n" \
             "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)\n" \
             f"s.connect(({OWN!r}, 7000))\n" \
             "s.send(b'echo')\n" \
             "assert s.recv(100) == b'echo'\n"
    ended = processes.start(*run(*options), sys.executable, "-c", client, inside=alone.inside).wait()
    assert ended.code == 0, ended.err + server.out + server.err
    server.said("children 0 0" if options or static else "children")


def test_a_port_without_a_program_is_refused(ports, processes, alone):
    """RFC 9260 8.4: the daemon replies with ABORT, also for a socket that is bound and does not listen."""
    ports.holds(OWN, 7000)
    for port in (7000, 7001):
        client = f"import socket\nsocket.socket(2, 1, 132).connect(({OWN!r}, {port}))\n"
        ended = processes.start(*run(), sys.executable, "-c", client, inside=alone.inside).wait()
        assert "ConnectionRefusedError" in ended.err, ended.err


@KINDS
def test_a_peer_without_sctp_refuses_connections(processes, alone, ports, static):
    """RFC 9260 10, ICMP 6: the kernel gives an ICMP error to any socket of the group, by a hash of the addresses. Of
    programs that run and have ended, none keeps it."""
    ports.holds(OWN, 7000)
    ports.holds(OWN, 7001).popen.kill()
    client = "import errno, socket\n" \
             "for last in range(2, 18):\n" \
             "    s = socket.socket(2, 1, 132)\n" \
             "    assert s.connect_ex((f'127.0.0.{last}', 7000)) == errno.ECONNREFUSED\n"
    options = run("--shared", "--peer-port", 5000, *(["--system-calls"] if static else []))
    ended = processes.start(*options, sys.executable, "-c", client, inside=alone.inside).wait()
    assert ended.code == 0, ended.err


def test_a_stopped_process_does_not_stall_the_others(processes, tmp_path, alone):
    """Packets for a process that does not run, and malformed ones, while two others exchange messages."""
    program = compiled(tmp_path, "run-ports")
    stopped = processes.start(*run("--shared", "--doctor", "--config", "receive_buffer=100000"), program, "hold", OWN,
                              7000, "", "listen", inside=alone.inside, stdin=subprocess.PIPE).said("holds")
    stopped.popen.send_signal(signal.SIGSTOP)
    exchange = compiled(tmp_path, "run-exchange")
    server = processes.start(*run("--shared"), exchange, "server", 7001, OWN, inside=alone.inside).said("listening")
    flood = "import os, socket, struct\n" \
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n" \
            "for at in range(40000):\n" \
            "    head = struct.pack('>HHII', 1, 7000, 0, 0)\n" \
            f"    s.sendto([head + bytes(1000), b'', b'abc', os.urandom(50)][at % 4], ({OWN!r}, 9899))\n"
    sender = processes.start(sys.executable, "-c", flood, inside=alone.inside)
    client = processes.start(*run("--shared"), exchange, "client", 7001, OWN, 300, OWN, inside=alone.inside)
    ended = client.wait()
    assert ended.code == 0 and "exchanged 300" in ended.out, ended.out + ended.err
    assert server.wait().code == 0 and sender.wait().code == 0
    stopped.popen.send_signal(signal.SIGCONT)
    stopped.popen.stdin.close()
    ended = stopped.wait()
    assert ended.code == 0
    # Of 10,000 datagrams of 1,000 bytes for the stopped process, and 30,000 others.
    dropped, malformed = (re.search(rf"polypath run: (\d+) datagrams {word}", ended.err)
                          for word in ("dropped", "malformed"))
    assert dropped and 0 < int(dropped[1]) <= 10_000, ended.err
    assert malformed and 0 < int(malformed[1]) <= 30_000, ended.err


def test_the_daemon_ends_after_its_last_program(ports, alone):
    def runs():
        command = [*alone.inside, "cat", "/proc/net/unix"]
        return "@polypath-ports-" in subprocess.run(command, capture_output=True, text=True, check=True).stdout

    first, second = ports.holds(OWN, 7000), ports.holds(OWN, 7001)
    for program in (first, second):
        assert runs()
        program.popen.stdin.close()
        assert program.wait().code == 0
    wait_until(lambda: not runs(), 20, lambda: "the daemon runs")


def test_a_udp_port_in_use_is_reported(processes, alone):
    taken = f"import socket, subprocess\ns = socket.socket(2, 2)\ns.bind(('', 9899))\n" \
            f"raise SystemExit(subprocess.call([{binary()!r}, 'run', '--shared', '--', 'true']))\n"
    ended = processes.start(sys.executable, "-c", taken, inside=alone.inside).wait()
    assert ended.code == 1
    assert ended.err == "polypath: cannot use --shared: UDP port 9899: another program uses the UDP port\n"


@pytest.mark.parametrize("option", ["--raw", "--encrypt"])
def test_shared_excludes(processes, option):
    """The kernel finds the SCTP port in the UDP payload."""
    ended = processes.start(*run("--shared", option), "true").wait()
    assert ended.code == 2 and "--shared" in ended.err


# Of those that tests/test_run.py runs without --shared.
PROGRAMS = ("run-api", "run-many", "run-calls", "run-ipv6", "run-listeners")


@KINDS
@pytest.mark.parametrize("name", PROGRAMS)
def test_statements_hold_as_without_shared(processes, tmp_path, name, static):
    """Every statement of the programs has the same result."""
    found = []
    for options in ([], ["--shared"]):
        with Namespace() as alone:
            words = [*run(*options), compiled(tmp_path, name, static=static)]
            ended = processes.start(*words, inside=alone.inside).wait()
        found.append((ended.code, statements.results(ended.out)))
    assert found[0][1]
    assert found[1] == found[0]


@pytest.mark.parametrize("part", range(4))
def test_threads_and_processes_share_sockets(processes, tmp_path, alone, part):
    """run-shared.c, as in tests/test_run.py."""
    ended = processes.start(*run("--shared"), compiled(tmp_path, "run-shared"), part, inside=alone.inside).wait()
    failed = [line for line in ended.out.splitlines() if not line.startswith("ok ")]
    assert not failed and ended.code == 0 and ended.out, f"{ended.code}: {failed} {ended.out} {ended.err}"


def test_the_page_has_the_option():
    assert "`--shared`" in (ROOT / "docs" / "run.md").read_text()
