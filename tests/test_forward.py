"""`polypath forward` and `polypath serve`: real programs over one association, and rules that hold."""

import os
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time

import pytest

from support.program import BRISK, CODE, binary, consent, make_file, sha256, wait_until

# Loopback addresses used only by these tests, and only by this worker.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
LOCAL = f"127.0.97.{1 + WORKER}"
# Where the programs listen that are reached through the server.
INSIDE = f"127.0.98.{1 + WORKER}"
PHRASE = ("--code-file", CODE)


class Echo(socketserver.ThreadingTCPServer):
    """Sends back what it receives, up to the end."""

    daemon_threads = True
    allow_reuse_address = True

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            while content := self.request.recv(65536):
                self.request.sendall(content)
            self.request.shutdown(socket.SHUT_WR)

    def __init__(self, host: str = INSIDE):
        super().__init__((host, 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self.server_address[1]


@pytest.fixture
def echo():
    with Echo() as server:
        yield server
        server.shutdown()


@pytest.fixture
def serve(processes):
    """A server with these rules; returns its process and the address for clients."""
    def run(*words: object):
        server = processes.start(binary(), "serve", "--bind", LOCAL, "-u", "0", *PHRASE, *words).said("waiting on")
        return server, f"{LOCAL}:" + re.search(r"UDP port (\d+)", server.err)[1]
    return run


@pytest.fixture
def forward(processes):
    def run(to: str, *words: object, **kwargs):
        return processes.start(binary(), "forward", to, *PHRASE, *words, **kwargs)
    return run


def port_of(client) -> int:
    """The local port that a client forwards."""
    return int(re.search(r"forwarding \S+?:(\d+) ", client.said("forwarding ").err)[1])


def exchange(port: int, content: bytes, host: str = "127.0.0.1") -> bytes:
    with socket.create_connection((host, port), timeout=30) as connection:
        sender = threading.Thread(target=lambda: (connection.sendall(content), connection.shutdown(socket.SHUT_WR)))
        sender.start()
        found = b"".join(iter(lambda: connection.recv(65536), b""))
        sender.join()
    return found


def test_a_local_port(serve, forward, echo):
    server, to = serve("--allow", f"{INSIDE}:*")
    client = forward(to, "-L", f"127.0.0.1:0:{INSIDE}:{echo.port}")
    content = os.urandom(3_000_000)
    assert exchange(port_of(client), content) == content
    client.stop()
    server.said("has disconnected")


def test_a_remote_port(serve, forward, echo):
    _, to = serve("--allow-listen", f"{LOCAL}:*")
    client = forward(to, "-R", f"{LOCAL}:0:{INSIDE}:{echo.port}").said("forwarding the server's port ")
    port = int(re.search(r"server\'s port (\d+) to", client.err)[1])
    content = os.urandom(1_000_000)
    assert exchange(port, content, LOCAL) == content


def test_socks(serve, forward, tmp_path, processes):
    """curl through -D, with a name that the server resolves."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    _, to = serve("--allow", "localhost:*")
    sent = make_file(tmp_path / "file", 2_000_000)
    web = processes.start(sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory",
                          tmp_path).said("Serving HTTP")
    port = re.search(r"port (\d+)", web.out)[1]
    client = forward(to, "-D", "127.0.0.1:0")
    words = ["curl", "-sS", "--socks5-hostname", f"127.0.0.1:{port_of(client)}"]
    subprocess.run([*words, "-o", tmp_path / "copy", f"http://localhost:{port}/file"], check=True, timeout=60)
    assert sha256(tmp_path / "copy") == sent
    refused = subprocess.run([*words, f"http://127.0.0.1:{port}/"], check=False, timeout=60, capture_output=True,
                             text=True)
    assert refused.returncode == 97, refused.stderr


def test_standard_input_and_output(serve, forward, echo):
    _, to = serve("--allow", f"{INSIDE}:{echo.port}")
    client = forward(to, "-W", f"{INSIDE}:{echo.port}", stdin=subprocess.PIPE)
    client.say("hello")
    wait_until(lambda: client.out == "hello\n", 10, lambda: client.err, alive=client.popen)
    client.popen.stdin.close()
    assert client.wait().code == 0
    client = forward(to, "-W", f"{INSIDE}:1", stdin=subprocess.PIPE)
    client.wait().complains(f"cannot connect to {INSIDE}:1", "its rules do not allow it")


def test_rules(serve, forward, echo):
    server, to = serve("--allow", f"{INSIDE}:1", "--allow-listen", "127.0.0.1:1")
    client = forward(to, "-L", f"127.0.0.1:0:{INSIDE}:{echo.port}")
    with pytest.raises(ConnectionResetError), socket.create_connection(("127.0.0.1", port_of(client))) as connection:
        connection.recv(1)
    server.said(f"may not reach {INSIDE}:{echo.port}")
    client.said("its rules do not allow it")
    forward(to, "-R", f"0:{INSIDE}:{echo.port}").wait().complains("cannot listen on port 0")
    assert server.popen.poll() is None


def test_a_server_without_rules_and_a_client_without_work(processes):
    processes.start(binary(), "serve").wait().complains("--allow", code=2)
    processes.start(binary(), "forward", LOCAL).wait().complains("-L, -R, -D or -W", code=2)
    processes.start(binary(), "forward", LOCAL, "-L", "1:2").wait().complains("[BIND:]PORT:HOST:PORT", code=2)


def test_a_stranger(serve, processes, echo):
    server, to = serve("--allow", "*:*")
    ended = processes.start(binary(), "forward", to, "-L", f"0:{INSIDE}:{echo.port}").wait()
    assert ended.code == 1 and "asks for a code phrase" in ended.err, ended.err
    ended = processes.start(
        binary(), "forward", to, "-L", f"0:{INSIDE}:{echo.port}", "--code", "lusab-babad-wrong").wait()
    assert ended.code == 1 and "the code phrase is wrong" in ended.err, ended.err
    assert server.popen.poll() is None


@pytest.mark.needs("namespaces", "tc", "ethtool")
def test_the_path_in_use_is_cut(processes, hosts):
    """A session over two paths goes on when the one in use is cut."""
    to = [hosts.address("b", path) for path in (1, 2)]
    processes.start(sys.executable, "-c", (
        "import socketserver\n"
        "class H(socketserver.BaseRequestHandler):\n"
        "    def handle(self):\n"
        "        while b := self.request.recv(4096): self.request.sendall(b)\n"
        "s = socketserver.ThreadingTCPServer(('127.0.0.1', 4007), H)\n"
        "print('ready', flush=True); s.serve_forever()\n"), inside=hosts.b.inside).said("ready")
    processes.start(binary(), "serve", "--bind", ",".join(to), *PHRASE, "--allow", "127.0.0.1:*", *BRISK,
                    inside=hosts.b.inside).said("waiting on")
    client = processes.start(binary(), "forward", to[0], "--via", to[1], *PHRASE, "-W", "127.0.0.1:4007", *BRISK,
                             inside=hosts.a.inside, stdin=subprocess.PIPE)
    def round_trip(number: int) -> float:
        began = time.monotonic()
        client.say(f"line {number}")
        wait_until(lambda: f"line {number}\n" in client.out, 20, lambda: client.err, alive=client.popen)
        return time.monotonic() - began
    round_trip(0)
    hosts.a.ip("link", "set", "va1", "down")
    assert round_trip(1) < 4 * 4
    assert round_trip(2) < 4
    client.popen.stdin.close()
    assert client.wait().code == 0


def test_other_services_are_refused(serve, processes, tmp_path):
    _, to = serve("--allow", "*:*")
    make_file(tmp_path / "file", 10)
    ended = processes.start(binary(), "send", tmp_path / "file", to, *consent("send")).wait()
    ended.complains("serves only forward")
