"""Programs under `polypath run`, between the hosts of a test."""

from support import program
from support.namespaces import TwoHosts


def run(*options: object) -> list[str]:
    """The command line up to the program's own."""
    return [program.binary(), "run", *map(str, options), "--"]


def bound(hosts: TwoHosts, side: str, option: str = "--bind") -> list[str]:
    """An option that names both addresses of a host, for two paths."""
    return [word for path in (1, 2) for word in (option, hosts.address(side, path))]


def cut(hosts: TwoHosts, path: int = 1) -> None:
    """Drop all UDP packets that arrive over a path; other connections of the programs go on."""
    for host, device in ((hosts.a, f"va{path}"), (hosts.b, f"vb{path}")):
        host.filter(f"add table netdev {device}")
        host.filter(f"add chain netdev {device} in {{ type filter hook ingress device {device} priority 0; }}")
        host.filter(f"add rule netdev {device} in meta l4proto udp drop")
