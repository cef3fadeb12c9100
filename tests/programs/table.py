"""The table in docs/run.md: program, version, exchange, peer, and whether a path was cut in between.

Each test reports the exchange that has completed (`tell`). `make programs` runs all of them and writes the
table; other runs check that the existing table has the exchange.
"""

import os
import re
import subprocess

from support.program import ROOT

DOCUMENT = ROOT / "docs" / "run.md"
BEGIN, END = "<!-- written by make programs: begin -->\n", "<!-- end -->\n"
WRITES = os.environ.get("POLYPATH_PROGRAMS") == "write"
# The programs in the order of the table, and the Debian package whose version it shows; "go" for a Go module.
PACKAGES = {
    "iperf3": "iperf3",
    "ncat": "ncat",
    "socat": "socat",
    "sctp_test": "lksctp-tools",
    "sctp_darn": "lksctp-tools",
    "netperfmeter": "netperfmeter",
    "Erlang's gen_sctp": "erlang-base",
    "Java's com.sun.nio.sctp": "openjdk-17-jdk-headless",
    "freeDiameter": "freediameterd",
    "kamailio": "kamailio",
    "osmo-stp": "osmo-stp",
    "nextepc-mme": "nextepc-mme",
    "Go's ishidawataru/sctp": "go",
}
PEERS = ("polypath", "Linux", "usrsctp")
HEAD = ["| program | version | exchange | peer | path cut in between |", "|---|---|---|---|---|"]

# What was reported: (program, exchange, peer, whether a path was cut).
Exchange = tuple[str, str, str, bool]
reported: list[Exchange] = []


def tell(program: str, exchange: str, peer: str = "polypath", cut: bool = False) -> None:
    """Report an exchange that has completed."""
    assert program in PACKAGES, program
    assert peer in PEERS, peer
    key = (program, exchange, peer, cut)
    reported.append(key)
    if not WRITES:
        assert key in read(), f"{key} is not in the table of {DOCUMENT.name}: make programs"


def version(program: str) -> str:
    """The version of the installed package, or of the Go module."""
    if PACKAGES[program] == "go":
        module = (ROOT / "tests" / "programs" / "go" / "go.mod").read_text()
        return re.search(r"^require \S+ v(\S+)$", module, re.MULTILINE)[1]
    words = ["dpkg-query", "--show", "--showformat=${Version}", PACKAGES[program]]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def read() -> dict[Exchange, str]:
    """The exchanges in the document's table, each with the program's version."""
    written = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in written.splitlines()
            if line.startswith("| ") and line not in HEAD]
    return {(row[0], row[2], row[3], row[4] == "yes"): row[1] for row in rows}


def write() -> None:
    """Write the reported exchanges into the document. The rows of programs that no test has run stay."""
    rows = {key: shown for key, shown in read().items()
            if key[0] in PACKAGES and key[0] not in {key[0] for key in reported}}
    rows |= {key: version(key[0]) for key in reported}
    order = list(PACKAGES)
    lines = [f"| {key[0]} | {rows[key]} | {key[1]} | {key[2]} | {'yes' if key[3] else 'no'} |"
             for key in sorted(rows, key=lambda key: (order.index(key[0]), PEERS.index(key[2]), key[3], key[1]))]
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(before + BEGIN + "\n" + "\n".join(HEAD + lines) + "\n\n" + END + after)
