"""Shared fixtures of the interoperability tests: networks, guest and programs are created once."""

import pytest

from interop import table
from interop.guest import Guest
from interop.network import Network
from interop.peers import Case, Pair, compiled

NEEDS = {
    "usrsctp": ("namespaces", "ethtool", "nft", "gcc", "usrsctp.h"),
    "linux": ("namespaces", "ethtool", "nft", "gcc", "netinet/sctp.h", "linux.uml", "insmod",
              "tun"),
    "pion": ("namespaces", "ethtool", "nft", "go"),
}


# The combinations for each peer in a short run with one column: IP or not, and whether polypath connects.
ONE = {"usrsctp": (True, True), "linux": (False, False), "pion": (False, True)}


def cases(*stacks: str, quick: bool = True, once: bool = False,
          feature: str = "") -> pytest.MarkDecorator:
    """Parametrize a test by peer, encapsulation and the side that connects. In the short run, a test that is
    not quick gets two of a peer's four combinations, which cover both encapsulations and both directions,
    or one if `once`. Combinations with a known outcome of the feature are left out."""
    params = []
    for stack in stacks or ("usrsctp", "linux"):
        for raw in table.STACKS[stack][1]:
            for we_connect in (True, False):
                if table.known(stack, raw, we_connect, feature):
                    continue
                case = Case(stack, raw, we_connect)
                marks = [pytest.mark.needs(*NEEDS[stack])]
                left_out = ((not quick and (raw == we_connect) == (stack == "usrsctp"))
                            or (once and (raw, we_connect) != ONE[stack]))
                if left_out:
                    marks.append(pytest.mark.thorough)
                params.append(pytest.param(case, id=str(case), marks=marks))
    return pytest.mark.parametrize("case", params)


# First: pytest-xdist must see the groups, even if only this folder is run.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Run the tests of one peer on one worker; run the thorough ones only for `make interop`."""
    long = []
    for item in items:
        if "interop" in item.path.parts:
            case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
            stack = f"-{case.stack}" if case is not None else ""
            item.add_marker(pytest.mark.xdist_group(f"interop{stack}"))
            # A run that writes a new table does not check the existing one.
            if item.path.stem == "test_table" if table.WRITES else item.get_closest_marker("thorough"):
                long.append(item)
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_sessionfinish(session, exitstatus):
    if table.WRITES and exitstatus == 0:
        table.write()


class Made:
    """Creates the objects of a stack when they are first needed."""

    def __init__(self, factory):
        self.factory = factory
        self.networks, self.programs, self.guests = {}, {}, {}
        self.failed = {}

    def network(self, stack: str) -> Network:
        if stack not in self.networks:
            self.networks[stack] = Network().__enter__()
        return self.networks[stack]

    def program(self, stack: str) -> str:
        if stack not in self.programs:
            self.programs[stack] = compiled(stack)
        return self.programs[stack]

    def guest(self, stack: str) -> Guest | None:
        if stack == "linux" and stack not in self.guests:
            # Do not boot a guest again for each test after a failure.
            assert stack not in self.failed, self.failed[stack]
            try:
                self.guests[stack] = Guest(self.network(stack), self.factory.mktemp("guest"))
            except AssertionError as failure:
                self.failed[stack] = f"the guest did not boot: {failure}"
                raise
        return self.guests.get(stack)

    def stop(self) -> None:
        for guest in self.guests.values():
            guest.stop()
        for network in self.networks.values():
            network.__exit__()


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    everything = Made(tmp_path_factory)
    yield everything
    everything.stop()


@pytest.fixture
def pair(made, tmp_path, case):
    """Hosts for polypath and for a peer, without running programs."""
    guest = made.guest(case.stack)
    program = made.program(case.stack)
    with Pair(case, made.network(case.stack), tmp_path, program, guest) as both:
        yield both


@pytest.fixture
def result(case):
    """`result(feature, outcome)` for the table in docs/interoperability.md."""
    return lambda feature, outcome="works": table.tell(feature, case, outcome)
