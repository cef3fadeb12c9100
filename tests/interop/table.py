"""The table in docs/interoperability.md: feature x peer x direction.

Each test reports its outcome (`tell`). `make interop` runs all of them and writes the table;
other runs check the outcomes against the existing table.
"""

import dataclasses
import os

from support.program import ROOT

DOCUMENT = ROOT / "docs" / "interoperability.md"
BEGIN, END = "<!-- written by make interop: begin -->\n", "<!-- end -->\n"
WRITES = os.environ.get("POLYPATH_INTEROP") == "write"
OUTCOMES = ("works", "declined", "not offered by the peer", "not by the RFC", "-")

FEATURES = {
    "establishment": "establishment (four-way handshake)",
    "messages": "messages of 1 byte to 1 MB, 64 streams, ordered and unordered, both ways",
    "bulk-ours": "100 MB from polypath to the peer",
    "bulk-theirs": "100 MB from the peer to polypath",
    "close": "graceful close, begun by who has connected",
    "abort-ours": "abort by polypath, its words reach the peer",
    "abort-theirs": "abort by the peer, noticed at once",
    "restart-ours": "polypath restarts: the association goes on",
    "restart-theirs": "the peer restarts: the association goes on",
    "heartbeats": "second path confirmed by heartbeats, both sides",
    "failover": "the path in use cut under load both ways, and taken back when restored",
    "loss": "5 % loss each way",
    "mtu": "unequal MTUs: 1500 and 1280, the larger one cut",
    "pmtud": "polypath finds what a path carries, where what is larger vanishes (RFC 8899)",
    "ipv6": "over IPv6: messages both ways; two paths where the peer has them, one cut",
    "partial-ours": "messages of polypath given up, by age and by retransmissions (RFC 3758, RFC 7496)",
    "partial-theirs": "messages of the peer given up, likewise",
    "prompt-ours": "polypath asks for a SACK at once (RFC 7053)",
    "prompt-theirs": "the peer asks for a SACK at once",
    "ecn-ours": "data of polypath marked by the network: ECNE, CWR (RFC 4960 A)",
    "ecn-theirs": "data of the peer marked by the network, likewise",
    "nat": "address-less INIT through a NAT",
    "nat-path": "second path through the NAT learnt and confirmed by both sides",
    "reset-ours": "polypath resets its streams, the peer's, and the association, and adds streams (RFC 6525)",
    "reset-theirs": "the peer does all that",
    "auth": "DATA both ways only authenticated, with a secret that both have (RFC 4895)",
    "move-ours": "polypath changes its address while data flows both ways (RFC 5061)",
    "move-theirs": "the peer does",
    "adaptation": "Adaptation Layer Indications both ways (RFC 5061 4.2.6)",
    "interleaving": "messages of a chunk each in I-DATA (RFC 8260)",
    "fragments": "fragments of several streams' messages by turns",
    "nr-sack": "NR-SACK instead of SACK both ways, over 5 % loss (draft-natarajan-tsvwg-sctp-nrsack)",
    "dtls": "encrypted (DTLS 1.2, as WebRTC), fingerprints compared both ways",
    "zero-checksum": "checksums left out both ways below DTLS (RFC 9653)",
    "tshark": "every packet of polypath sound for tshark",
    "ours-offered": "timestamps, retransmission flag and counts of packets (DAC), offered by polypath alone",
    "theirs-offered": "extensions offered by the peer alone",
}
# Features that a peer does not support.
LACKS = {peer: dict.fromkeys(features, "not offered by the peer") for peer, features in {
    "usrsctp": ("dtls", "zero-checksum"),
    "linux": ("nr-sack", "dtls", "zero-checksum"),
    "pion": (
        "heartbeats", "failover", "mtu", "restart-ours", "restart-theirs", "nat-path",
        "reset-ours", "reset-theirs", "auth", "move-ours", "move-theirs", "fragments",
        "prompt-theirs", "ecn-ours", "ecn-theirs", "adaptation", "nr-sack"),
}.items()}
# Only the host behind a NAT can connect, and only over UDP.
BEHIND_NAT = ("nat", "nat-path")
STACKS = {
    "usrsctp": ("usrsctp (FreeBSD's stack in user space)", (False, True)),
    "linux": ("Linux (the kernel's SCTP)", (False, True)),
    "pion": ("pion (Go; one address, UDP)", (False,)),
}


@dataclasses.dataclass
class Results:
    """Outcomes by (stack, raw, we_connect, feature)."""

    cells: dict[tuple[str, bool, bool, str], str]

    def rows(self, stack: str) -> list[str]:
        """The table of one peer."""
        columns = [(raw, we) for raw in STACKS[stack][1] for we in (True, False)]
        words = [f"{'IP' if raw else 'UDP'}, {'polypath' if we else 'the peer'} connects"
                 for raw, we in columns]
        rows = [f"| feature | {' | '.join(words)} |", "|---|" + "---|" * len(columns)]
        for feature, text in FEATURES.items():
            cells = [self.cells[stack, raw, we, feature] for raw, we in columns]
            rows.append(f"| {text} | {' | '.join(cells)} |")
        return rows

    def text(self) -> str:
        parts = []
        for stack, (title, _) in STACKS.items():
            parts += [f"## {title}", "", *self.rows(stack), ""]
        return "\n".join(parts)


def keys(stack: str) -> list[tuple[str, bool, bool, str]]:
    return [(stack, raw, we, feature) for feature in FEATURES
            for raw in STACKS[stack][1] for we in (True, False)]


def read() -> dict[tuple[str, bool, bool, str], str]:
    """Parse the document's table, which must have exactly the form that `write` produces."""
    written = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    cells = [cell.strip() for line in written.splitlines() if line.startswith("| ")
             and not line.startswith("| feature") for cell in line.split("|")[2:-1]]
    expected = [key for stack in STACKS for key in keys(stack)]
    assert len(cells) == len(expected), "the table is not complete: make interop"
    found = dict(zip(expected, cells, strict=True))
    assert Results(found).text().strip() == written.strip(), "not as make interop writes it"
    assert set(cells) <= set(OUTCOMES), set(cells) - set(OUTCOMES)
    return found


# usrsctp lets the host choose the source address of its UDP datagrams.
MOVES = ("move-ours", "move-theirs")


def known(stack: str, raw: bool, we_connect: bool, feature: str) -> str | None:
    """The outcome, if it is known without a test."""
    if feature in MOVES and stack == "usrsctp" and not raw:
        return "-"
    if feature in BEHIND_NAT and (raw or not we_connect):
        return "-"
    return LACKS.get(stack, {}).get(feature)


told = Results({key: outcome for stack in STACKS for key in keys(stack)
                if (outcome := known(*key))})


def tell(feature: str, case, outcome: str = "works") -> None:
    """Report the outcome of a test."""
    assert outcome in OUTCOMES, outcome
    key = (case.stack, case.raw, case.we_connect, feature)
    told.cells[key] = outcome
    if not WRITES:
        assert read()[key] == outcome, f"{key} is {outcome}, but not so in {DOCUMENT.name}: make interop"


def write() -> None:
    """Write the reported outcomes into the document."""
    missing = [key for stack in STACKS for key in keys(stack) if key not in told.cells]
    assert not missing, f"not written, for nothing was told of {missing}"
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{told.text()}\n{END}{after}")
