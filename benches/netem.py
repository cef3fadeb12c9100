"""Two hosts in network namespaces with the simulator's links between them (crates/polypath-sim/examples/netem.rs).

Root is needed. Host a sends, host b receives; the n-th path is 10.9n.0.1 - 10.9n.0.2. What a sends from its address
on a path takes that path, whatever address of b it goes to, and b replies by the network of a's address. So the
kernel's MPTCP, whose server has one address, uses the same paths as polypath.
"""

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

PREFIX = "pn"
# Packets that a device holds while netem does not run: more than any host sends at once.
DEVICE_QUEUE = 5000
# A run in which a larger share of the packets left more than a millisecond late, or one of them later than this
# many milliseconds, does not count.
LATE_SHARE, LATE_MS = 0.01, 25.0


def sh(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


class Net:
    """The hosts and the links, from `with` to its end."""

    def __init__(self, program: Path, scenario: str, paths: int, folder: Path, number: int = 0):
        self.program, self.scenario, self.paths, self.folder = program, scenario, paths, folder
        self.a, self.b = f"{PREFIX}{number}a", f"{PREFIX}{number}b"
        self.devices = [(f"{self.a}{path}", f"{self.b}{path}") for path in range(1, paths + 1)]
        self.netem: subprocess.Popen | None = None

    def __enter__(self) -> "Net":
        self._remove()
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.netem:
            self.netem.kill()
            self.netem.wait()
        self._remove()

    def _remove(self) -> None:
        for name in (self.a, self.b):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def _make(self) -> None:
        for name in (self.a, self.b):
            sh("ip", "netns", "add", name)
            sh("ip", "-n", name, "link", "set", "lo", "up")
            sh(*self.inside(name), "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0",
               "net.ipv4.conf.default.rp_filter=0", "net.ipv6.conf.default.disable_ipv6=1")
        file = self.folder / f"{self.a}.toml"
        file.write_text(self.scenario)
        # Before all ordinary processes: others may use the processors meanwhile.
        first = ["chrt", "-f", "50"] if shutil.which("chrt") else []
        self.netem = subprocess.Popen([*first, self.program, file, *(",".join(pair) for pair in self.devices)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.netem.stdout.readline() != "ready\n":
            raise RuntimeError("netem did not start")
        for path, pair in enumerate(self.devices, 1):
            for name, device, number in zip((self.a, self.b), pair, (1, 2), strict=True):
                sh("ip", "link", "set", device, "netns", name)
                ip = ["ip", "-n", name]
                sh(*ip, "link", "set", device, "txqueuelen", DEVICE_QUEUE, "mtu", 1500)
                sh(*ip, "addr", "add", f"10.9{path}.0.{number}/24", "dev", device)
                sh(*ip, "link", "set", device, "up")
            sh("ip", "-n", self.a, "route", "add", "default", "dev", pair[0], "table", path)
            sh("ip", "-n", self.a, "rule", "add", "from", f"10.9{path}.0.1", "table", path, "pref", 100 + path)

    def multipath(self) -> None:
        """MPTCP with a subflow for each path. One lost SYN must not end it for an hour."""
        for name in (self.a, self.b):
            sh(*self.inside(name), "sysctl", "-qw", "net.mptcp.enabled=1", "net.mptcp.blackhole_timeout=0")
            sh("ip", "-n", name, "mptcp", "limits", "set", "subflow", 2, "add_addr_accepted", 2)
        for path in range(2, self.paths + 1):
            sh("ip", "-n", self.a, "mptcp", "endpoint", "add", f"10.9{path}.0.1", "dev", self.devices[path - 1][0],
               "subflow")

    @staticmethod
    def inside(name: str) -> list[str]:
        """Command prefix that runs a program in a namespace."""
        return ["ip", "netns", "exec", name]

    def do(self, command: str) -> dict:
        """Give netem a command; return its answer."""
        self.netem.stdin.write(command + "\n")
        self.netem.stdin.flush()
        return json.loads(self.netem.stdout.readline())

    def dropped(self) -> int:
        """Packets that the devices dropped because netem did not read them in time."""
        count = 0
        for name, devices in zip((self.a, self.b), zip(*self.devices, strict=True), strict=True):
            for device in devices:
                shown = json.loads(sh("ip", "-n", name, "-s", "-j", "link", "show", device))
                count += shown[0]["stats64"]["tx"]["dropped"]
        return count

    def counters(self, name: str) -> dict[str, int]:
        """The TCP counters of a host."""
        found = {}
        for file in ("snmp", "netstat"):
            lines = sh(*self.inside(name), "cat", f"/proc/net/{file}").splitlines()
            for keys, values in zip(lines[::2], lines[1::2], strict=True):
                group, *keys = keys.split()
                found |= {group + key: int(value) for key, value in zip(keys, values.split()[1:], strict=True)}
        return found


def late(report: dict, dropped: int) -> str:
    """Why a run does not count; empty if it does."""
    of = report["late"]
    if dropped:
        return f"{dropped} packets were not read"
    if of["ms_most"] > LATE_MS or of["over_1_ms"] > LATE_SHARE * max(1, of["packets"]):
        return f"late: {of['over_1_ms']} of {of['packets']} over 1 ms, {of['ms_most']:.1f} ms at most"
    return ""


def problem() -> str | None:
    """Why nothing can be measured here."""
    if os.geteuid() != 0:
        return "not root"
    if not Path("/dev/net/tun").exists():
        return "no /dev/net/tun"
    return None if shutil.which("ip") else "no ip"


def offers(controller: str) -> bool:
    """Whether the kernel's TCP has a congestion control."""
    with contextlib.suppress(OSError):
        names = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
        return controller in names
    return False
