"""nextepc's MME: it listens for S1AP and for Diameter, on two SCTP ports."""

import sys
from pathlib import Path

import pytest

from programs import table
from programs.diameter import configured, opened
from support.preload import cut, run
from support.program import wait_until

pytestmark = pytest.mark.needs("namespaces", "nft", "nextepc-mmed", "freeDiameterd", "openssl")
COUNT = 12
NEXTEPC = Path("/usr/lib/nextepc/freeDiameter")
DICTIONARIES = [f'LoadExtension = "{NEXTEPC}/dict_{name}.so";'
                for name in ("rfc5777", "mip6i", "nasreq", "nas_mipv6", "dcca", "dcca_3gpp", "s6a")]
CONFIGURATION = """logger:
    file: {log}
parameter:
    no_ipv6: true
mme:
    freeDiameter: {diameter}
    s1ap:
      addr: {address}
    gtpc:
      addr: 127.0.0.2
    gummei:
      plmn_id:
        mcc: 001
        mnc: 01
      mme_gid: 2
      mme_code: 1
    tai:
      plmn_id:
        mcc: 001
        mnc: 01
      tac: 12345
    security:
        integrity_order : [ EIA1, EIA2, EIA0 ]
        ciphering_order : [ EEA0, EEA1, EEA2 ]
    network_name:
        full: NextEPC
sgw:
    gtpc:
      addr: 127.0.0.3
pgw:
    gtpc:
      addr: 127.0.0.4
"""


@pytest.mark.parametrize("is_cut", [False, True], ids=["whole", "cut"])
def test_a_base_station_sets_up_s1(hosts, processes, tmp_path, is_cut):
    """freeDiameter on the other host takes the place of the subscriber server, whose database Debian has not."""
    diameter = configured(tmp_path, "mme", "hss", None, *DICTIONARIES)
    path, log = tmp_path / "nextepc.conf", tmp_path / "mme.log"
    path.write_text(CONFIGURATION.format(log=log, diameter=diameter, address="0.0.0.0"))
    mme = processes.start(*run("--doctor"), "nextepc-mmed", "-f", path, "-p", tmp_path / "pid", inside=hosts.b.inside)
    wait_until(lambda: log.exists() and "NextEPC daemon start" in log.read_text(), 30, lambda: mme.out + mme.err)
    subscribers = configured(tmp_path, "hss", "mme", hosts.address("b", 1))
    hss = processes.start(*run("--doctor"), "freeDiameterd", "-c", subscribers, inside=hosts.a.inside)
    hss.said(opened("mme"), 60)
    script = Path(__file__).with_name("s1ap.py")
    station = processes.start(*run(), sys.executable, script, hosts.address("b", 1), COUNT, inside=hosts.a.inside)
    station.said("3 successful")
    if is_cut:
        cut(hosts)
    ended = station.wait()
    assert ended.code == 0, ended.err + mme.out + mme.err
    assert ended.out.splitlines() == [f"{number} successful" for number in range(COUNT)]
    table.tell("nextepc-mme", f"{COUNT} S1 setups, beside Diameter with freeDiameter", cut=is_cut)
