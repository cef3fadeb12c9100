"""Fixtures of the tests with programs of the distribution."""

import pytest

from interop.guest import Guest
from interop.network import Network
from programs.exchange import BRISK


@pytest.fixture(scope="session")
def booted(tmp_path_factory):
    """Linux with SCTP at the other end of a network, once for all tests."""
    with Network() as network:
        guest = Guest(network, tmp_path_factory.mktemp("guest"))
        guest.run(f"sysctl -qw {BRISK}")
        yield network, guest
        guest.stop()


@pytest.fixture
def linux(booted):
    """The network and the guest, with both paths up."""
    network, guest = booted
    yield network, guest
    for path in (1, 2):
        network.restore(path)
