"""Concurrent multipath transfer between real processes: the combined goodput of several clean paths (Iyengar
2004, 2006)."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.program import Processes

MIB_A_PATH = 8
# Rate of a path in bytes a second: 10 Mbit/s.
RATE = 1_250_000
EQUAL = ("10 Mbit/s", "45 ms")


def addresses(paths: int, host: int, number: int) -> list[str]:
    return [f"127.{111 + path}.{number}.{host}" for path in range(paths)]


def goodput(paths: list[tuple[str, str]], number: int, folder: Path, size: int,
            receive_buffer: str = "4MiB") -> float:
    """Goodput in bytes a second of a transfer of `size` bytes over clean paths with these rates and one-way
    delays."""
    folder.mkdir()
    own, theirs = (addresses(len(paths), host, number) for host in (1, 2))
    path = "".join(f'[[path]]\nrate = "{rate}"\ndelay = "{delay}"\nqueue = "100 packets"\n'
                   for rate, delay in paths)
    (folder / "scenario.toml").write_text(
        'schema = 1\nname = "clean paths"\n' + path +
        '[transport]\nencapsulation = "udp"\n[workload]\nkind = "bulk"\nsize = "1 B"\n'
        f"[emulator]\nsenders = {json.dumps(own)}\nreceivers = {json.dumps(theirs)}\n")
    (folder / "file").write_bytes(bytes(size))
    buffers = ["--config", f"receive_buffer={receive_buffer}", "--config", "send_buffer=8MiB"]
    with Processes(folder) as processes:
        start = processes.polypath
        emulator = start("emulate", folder / "scenario.toml", stdin=subprocess.PIPE).said("ready")
        receiver = start("recv", "--bind", ",".join(theirs), "-o", folder / "received", "--json",
                         "--timeout", 60, "--plain", "--cmt", *buffers).said("waiting on ")
        via = [word for address in theirs[1:] for word in ("--via", f"{address}:9900")]
        start("send", folder / "file", f"{theirs[0]}:9900", *via, "--bind", ",".join(own), "--json",
              "--quiet", "--timeout", 60, "--plain", "--cmt", *buffers)
        ended = receiver.wait().json
        assert ended["bytes"] == size
        emulator.say("report")
        return ended["bytes"] / ended["seconds"]


@pytest.mark.clock
def test_two_and_three_clean_paths_add_up(tmp_path, clock):
    def run(n: int) -> float:
        return goodput([EQUAL] * n, n, tmp_path / str(n), n * MIB_A_PATH << 20)

    with ThreadPoolExecutor(3) as pool:
        alone, two, three = pool.map(run, (1, 2, 3))
    # A single path fills its link, apart from headers, the handshake and slow start.
    own = 1 - clock.late().share
    assert alone > 0.85 * RATE * own
    assert two >= 0.97 * 2 * alone * own, f"{two:.0f} bytes/s over two paths, {alone:.0f} over one"
    assert three >= 0.97 * 3 * alone * own, f"{three:.0f} bytes/s over three paths, {alone:.0f} over one"


@pytest.mark.clock
def test_paths_of_unequal_rate_and_delay_add_up(tmp_path, clock):
    """The receive buffer is twice the sum of both bandwidth-delay products."""
    fast, slow = ("10 Mbit/s", "20 ms"), ("2 Mbit/s", "200 ms")

    def run(case: tuple[int, list[tuple[str, str]], int]) -> float:
        number, paths, size = case
        return goodput(paths, 10 + number, tmp_path / str(number), size, "300kB")

    cases = [(1, [fast], 10_000_000), (2, [slow], 2_000_000), (3, [fast, slow], 12_000_000)]
    with ThreadPoolExecutor(3) as pool:
        first, second, both = pool.map(run, cases)
    own = 1 - clock.late().share
    assert both >= 0.95 * (first + second) * own, f"{both:.0f} of {first:.0f} + {second:.0f} bytes/s"
