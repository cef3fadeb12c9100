"""Concurrent multipath transfer between real processes: what several clean paths add up to
(Iyengar 2004, 2006)."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.program import Process, binary

MIB_A_PATH = 8
# Bytes a second of a path: 10 Mbit/s.
RATE = 1_250_000


def addresses(paths: int, host: int, number: int) -> list[str]:
    return [f"127.{111 + path}.{number}.{host}" for path in range(paths)]


def goodput(paths: int, number: int, folder: Path) -> float:
    """Bytes a second of a transfer over so many clean paths of 10 Mbit/s and 45 ms one way."""
    folder.mkdir()
    own, theirs = (addresses(paths, host, number) for host in (1, 2))
    path = '[[path]]\nrate = "10 Mbit/s"\ndelay = "45 ms"\nqueue = "100 packets"\n'
    (folder / "scenario.toml").write_text(
        'schema = 1\nname = "clean paths"\n' + path * paths +
        '[transport]\nencapsulation = "udp"\n[workload]\nkind = "bulk"\nsize = "1 B"\n'
        f"[emulator]\nsenders = {json.dumps(own)}\nreceivers = {json.dumps(theirs)}\n")
    (folder / "file").write_bytes(bytes(paths * MIB_A_PATH << 20))
    buffers = ["--config", "receive_buffer=4MiB", "--config", "send_buffer=8MiB"]
    started: list[Process] = []

    def start(*words: object, **kwargs) -> Process:
        started.append(Process([binary(), *map(str, words)], folder, len(started), **kwargs))
        return started[-1]

    try:
        emulator = start("emulate", folder / "scenario.toml", stdin=subprocess.PIPE).said("ready")
        receiver = start("recv", "--bind", ",".join(theirs), "-o", folder / "received", "--json",
                         "--timeout", 60, "--plain", "--cmt", *buffers).said("waiting on ")
        via = [word for address in theirs[1:] for word in ("--via", f"{address}:9900")]
        start("send", folder / "file", f"{theirs[0]}:9900", *via, "--bind", ",".join(own), "--json",
              "--quiet", "--timeout", 60, "--plain", "--cmt", *buffers)
        ended = receiver.wait().json
        assert ended["bytes"] == paths * MIB_A_PATH << 20
        emulator.say("report")
        return ended["bytes"] / ended["seconds"]
    finally:
        for process in reversed(started):
            process.stop()
            if process.popen.stdin:
                process.popen.stdin.close()


@pytest.mark.xdist_group("many")
def test_two_and_three_clean_paths_add_up(tmp_path):
    with ThreadPoolExecutor(3) as pool:
        alone, two, three = pool.map(lambda n: goodput(n, n, tmp_path / str(n)), (1, 2, 3))
    # A path alone fills its link, but for headers, the handshake and slow start.
    assert alone > 0.85 * RATE
    assert two >= 0.97 * 2 * alone, f"{two:.0f} bytes/s over two paths, {alone:.0f} over one"
    assert three >= 0.97 * 3 * alone, f"{three:.0f} bytes/s over three paths, {alone:.0f} over one"
