"""The packets of a run: each one at every link, with its content and its fate."""

import math

import pandas as pd
import pytest

from polypath import Scenario, simulate
from polypath.packets import COLUMNS


@pytest.fixture
def scripted() -> Scenario:
    """Thirty chunks over a path with edges, whose core loses the 8th packet and the 5th back."""
    return Scenario(
        path=[
            {
                "rate": "10 Mbit/s",
                "delay": "20 ms",
                "forward": {"loss": {"packets": [8]}},
                "back": {"loss": {"packets": [5]}},
                "edge": {"rate": "100 Mbit/s", "delay": "1 ms"},
            }
        ],
        workload={"kind": "bulk", "messages": 30},
    )


def test_the_frame_has_the_documented_columns_and_agrees_with_the_counters(
    scripted: Scenario,
) -> None:
    result = simulate(scripted, packets=True)
    packets = result.packets()
    assert list(packets) == list(COLUMNS)
    for link in result.links.itertuples():
        own = packets[packets["link"] == link.link]
        assert len(own) == link.offered
        assert own["size"].sum() == link.offered_bytes
        assert (own["fate"] == "delivered").sum() == link.delivered
        assert (own["fate"] == "lost").sum() == link.lost
    assert packets["time"].is_monotonic_increasing


def test_a_packet_passes_its_links_one_after_the_other(scripted: Scenario) -> None:
    packets = simulate(scripted, packets=True).packets()
    forward = ["path0/forward/first", "path0/forward", "path0/forward/last"]
    data = packets[packets["tsns"].map(bool)]
    for _, hops in data.groupby("packet"):
        assert hops["link"].tolist() == forward[: len(hops)]
        for (_, before), (_, after) in zip(
            hops.iloc[:-1].iterrows(), hops.iloc[1:].iterrows(), strict=True
        ):
            assert before["arrival"] == after["time"]
    first = data.iloc[0]
    # 1500 bytes at 100 Mbit/s, then 1 ms.
    assert first["arrival"] - first["time"] == pytest.approx(120e-6 + 1e-3)


def test_what_is_lost_is_sent_again_and_acknowledged_around(scripted: Scenario) -> None:
    packets = simulate(scripted, packets=True).packets()
    core = packets[packets["link"] == "path0/forward"]
    lost = core[core["fate"] == "lost"]
    assert len(lost) == 1
    assert lost.index[0] == core.index[7]
    assert math.isnan(lost["arrival"].iloc[0])
    (tsn,) = lost["tsns"].iloc[0]
    again = core[core["retransmission"]]
    assert again["tsns"].tolist() == [(tsn,)]
    first = packets.drop_duplicates("packet")
    gaps = first[first["gaps"].map(bool)]
    assert (gaps["cumulative_ack"] == tsn - 1).all()
    assert {block[0][0] for block in gaps["gaps"]} == {tsn + 1}
    sacks = first[first["chunks"] == "SACK"]
    assert sacks["cumulative_ack"].max() == 30
    assert sacks["a_rwnd"].notna().all()
    originals = first[~first["retransmission"]]["tsns"]
    assert [t for tsns in originals for t in tsns] == list(range(1, 31))


@pytest.mark.parametrize("size", ["1452 B", "200 B"])
def test_data_arrivals_are_those_of_the_packets(scripted: Scenario, size: str) -> None:
    """With small messages several chunks share a packet."""
    workload = {"kind": "bulk", "messages": 60, "message_size": size}
    result = simulate(scripted.with_({"workload": workload}), packets=True)
    data = result.data_arrivals()
    packets = result.packets()
    own = packets[packets["arrival"].notna()].explode("tsns").dropna(subset=["tsns"])
    assert list(data) == ["link", "arrival", "tsn"]
    for column, of_packets in (("link", "link"), ("arrival", "arrival"), ("tsn", "tsns")):
        assert data[column].tolist() == own[of_packets].tolist()
    assert set(data["tsn"]) == set(range(1, 61))
    assert own["packet"].nunique() < len(own) / 3 or size == "1452 B"


def test_packets_are_the_same_whether_kept_or_run_again(scripted: Scenario) -> None:
    kept, again = simulate(scripted, packets=True), simulate(scripted)
    pd.testing.assert_frame_equal(kept.packets(), again.packets())
    assert kept.metrics == again.metrics


def test_what_a_broken_link_had_taken_is_down(scripted: Scenario) -> None:
    broken = scripted.with_({"fault": [{"at": "100 ms", "for": "2 s", "path": 0, "kind": "down"}]})
    result = simulate(broken, packets=True)
    packets = result.packets()
    down = packets[packets["fate"] == "down"]
    assert len(down) == result.links["lost_outage"].sum() > 0
    assert down["arrival"].isna().all()


def test_chunks_of_extensions_have_names() -> None:
    scenario = Scenario(
        path=[{"rate": "10 Mbit/s", "delay": "5 ms"}] * 2,
        transport={"authentication": True, "dynamic_addresses": True},
        workload={"size": "1 MB"},
        address=[
            {"at": "100 ms", "node": "sender.1", "kind": "goes"},
            {"at": "200 ms", "node": "sender.1", "kind": "comes"},
        ],
    )
    packets = simulate(scenario, packets=True).packets()
    told = packets[packets["chunks"].str.contains("ASCONF")]
    assert list(told["chunks"]) == ["AUTH+ASCONF", "AUTH+ASCONF-ACK"] * 2
    assert told["time"].iloc[0] == 0.1


def test_packets_of_several_associations_are_told_apart() -> None:
    scenario = Scenario(
        path=[{"rate": "10 Mbit/s", "delay": "5 ms", "duplicate": "10 %"}],
        association=[
            {"name": name, "from": a, "to": b, "port": port, "workload": {"size": "30 kB"}}
            for name, a, b, port in [
                ("there", "sender", "receiver", 1),
                ("here", "receiver", "sender", 2),
            ]
        ],
    )
    packets = simulate(scenario, packets=True).packets()
    for name, link in [("there", "path0/forward"), ("here", "path0/back")]:
        own = packets[(packets["association"] == name) & packets["tsns"].map(bool)]
        assert set(own["direction"]) == {"forward"}
        assert set(own["link"]) == {link}
        assert own["tsns"].iloc[0] == (1,)
