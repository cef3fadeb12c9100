"""A path that swallows large packets (RFC 8899): PAD chunks are the peer's to skip."""

from interop.conftest import cases
from interop.peers import assert_all_arrived
from support.program import wait_until


@cases(quick=False)
def test_the_path_mtu_is_found(pair, result):
    """Packets of more than 1280 bytes vanish, without a word."""
    pair.network.lose(1, "meta length > 1280 drop")
    ours, theirs = pair.join(options=(), our_options=("pmtud", "brisk"))
    address = pair.network.address("b", 1)
    wait_until(lambda: 1270 <= int(ours.paths()[address]["mtu"]) <= 1280, 40,
               lambda: f"{ours.paths()}")
    ours.send(50, 10_000, 4)
    assert_all_arrived(ours, theirs, 50)
    result("pmtud")
    # What the peer sends is its own matter.
    ours.tell("abort")
