"""HEARTBEATs of the profiles that follow ns-2's SCTP module, release by release."""

import pytest

from polypath import Scenario, simulate

#: Seconds at which the primary path breaks.
BREAK = 1.0


def probes(confirmation: str) -> list[tuple[float, int]]:
    """Time and path of the sender's HEARTBEATs after the primary of three paths broke."""
    scenario = Scenario(
        path=[{"rate": "10 Mbit/s", "delay": "45 ms"}] * 3,
        transport={
            "profile": "paper-2006",
            "path_max_retrans": 0,
            "heartbeat_interval": "10 s",
        },
        workload={
            "kind": "periodic",
            "messages": 400,
            "interval": "200 ms",
            "message_size": "1 kB",
        },
        fault=[{"at": f"{BREAK} s", "path": "path0", "kind": "down"}],
        run={"limit": "60 s"},
    )
    scenario = scenario.with_({"transport.path_confirmation": confirmation})
    packets = simulate(scenario, packets=True).packets()
    own = packets[(packets["direction"] == "forward") & (packets["time"] > BREAK)]
    sent = own[own["chunks"].str.contains("HEARTBEAT") & ~own["chunks"].str.contains("ACK")]
    return list(zip(sent["time"], sent["path"], strict=True))


@pytest.mark.parametrize("confirmation", ["off", "before-data"])
def test_up_to_release_3_6_a_heartbeat_on_another_path_replaces_the_timer(
    confirmation: str,
) -> None:
    """CHANGES of 3.5: "an outstanding HB may be forgotten about if another HB is sent to any
    destination before the outstanding HB gets acked or times out"; 3.7 has a timer per path."""
    sent = probes(confirmation)
    # The failover probes the primary at once, and again at each timeout.
    assert [path for _, path in sent[:3]] == [0, 0, 0]
    other = next(time for time, path in sent if path != 0)
    again = [time - other for time, path in sent if path == 0 and time > other]
    if confirmation == "off":
        # Not before the generator of HEARTBEATs ticks again.
        assert not again or again[0] >= 10
    else:
        assert again
        assert again[0] < 10
